#!/usr/bin/env python3
"""reality.py BIN [--plans N] [--steps N] [--only alone|time|memory] [--hold] - random plans as predicted, and as this machine runs them, as a table.

BIN is the folder of a build's `topt`.  Models of ten families run on one rank, all by one profile, by processor time, which other
programs hardly change (with --hold it fails where their errors are 15 % on the mean or one is 30 %, or the band misses more than
two); random plans on 2 ranks, by the fastest step after the first two, which needs as many idle cores as ranks; and random plans
on 1 to 8 ranks, by memory: what the process grew by between its start and the end, as the kernel says (VmHWM), so that it holds what
libraries and messages take, too, beside memory_bytes of the plan.  `topt profile` measures the machine before each that is timed, since
the speed of a virtual machine drifts by a quarter within minutes.
"""

import argparse
import json
import os
import random
import resource
import struct
import subprocess
import tempfile

MODELS = {
    "gpt": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 256, "n_head": 4, "n_layer": 4, "n_positions": 128,
            "tie_word_embeddings": True, "vocab_size": 256},
    "wide": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 512, "n_head": 8, "n_layer": 2, "n_positions": 64,
             "tie_word_embeddings": True, "vocab_size": 256},
}
ROWS = [("gpt", 8, 128), ("wide", 16, 64)]
# Open MPI by itself starts no more ranks than cores, and nothing as root.
MPI = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
FEW = 2


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit("%s\n%s" % (" ".join(map(str, command)), done.stderr))
    return done.stdout


def measured(topt, plan, ranks, steps):
    report = plan + ".report"
    run("mpirun", "-n", ranks, topt, "run", plan, "--data", "text", "--steps", steps, "--quiet", "--report", report)
    with open(report, encoding="utf-8") as file:
        doc = json.load(file)
    return min(doc["step_ns"][2:]), doc


def compare(topt, hw, ranks, seed, args, which):
    """Rows (model, strategy, predicted and measured time, memory) of one random plan."""
    name, batch, seq = ROWS[which % len(ROWS)]
    folder = "plans-%d-%d" % (ranks, seed)
    run(topt, "sample", name + ".json", "--hw", hw, "--framework", "topt", "--batch", batch, "--seq", seq, "--gpus", ranks,
        "--count", 1, "--seed", seed, "-o", folder)
    plan = os.path.join(folder, "plan-0000.json")
    with open(plan, encoding="utf-8") as file:
        doc = json.load(file)
    took, report = measured(topt, plan, ranks, args.steps)
    return {"model": name, "ranks": ranks, "seed": seed, "strategy": doc["strategy"], "predicted": report["predicted"]["time_ns"],
            "took": took, "bytes": report["predicted"]["memory_bytes"], "counted": report["peak_bytes"],
            "grew": report["process_growth_bytes"]}


def error(predicted, seen):
    return 100.0 * (predicted - seen) / seen


def mean(values):
    return sum(values) / max(1, len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--plans", type=int, default=20)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--only", choices=["alone", "time", "memory"])
    parser.add_argument("--hold", action="store_true")
    args = parser.parse_args()
    topt = os.path.join(os.path.abspath(args.bin), "topt")
    os.environ.update(MPI)
    os.chdir(tempfile.mkdtemp())
    with open("text", "w", encoding="utf-8") as file:
        file.write("a small crowd of numbers adds itself up over four quiet machines. " * 100)
    for name, doc in MODELS.items():
        with open(name + ".json", "w", encoding="utf-8") as file:
            json.dump(doc, file)
    for name, show in (("alone", show_alone), ("time", show_times), ("memory", show_memory)):
        if args.only in (None, name):
            show(topt, args)


def processor(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


VOCABULARY = {"vocab_size": 256}
# Each with sizes that no model of the profile's has (runtime/profile/specimens.h); batch, length, and where the samples come from.
FAMILIES = [
    ("GPT-2", {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 160, "n_head": 5, "n_layer": 3, "n_positions": 128,
               "tie_word_embeddings": True, **VOCABULARY}, 6, 112),
    ("Llama", {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 192, "intermediate_size": 512,
               "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 3, **VOCABULARY}, 8, 96),
    ("Mamba-2", {"architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "hidden_size": 144, "num_heads": 6, "head_dim": 48,
                 "state_size": 24, "n_groups": 1, "chunk_size": 64, "conv_kernel": 4, "expand": 2, "num_hidden_layers": 3, **VOCABULARY}, 6, 112),
    ("T5", {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 144, "d_kv": 24, "num_heads": 6, "num_layers": 2,
            "d_ff": 384, **VOCABULARY}, 8, 96),
    ("ViT", {"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 96, "intermediate_size": 384, "image_size": 28,
             "patch_size": 4, "num_channels": 1, "num_attention_heads": 6, "num_hidden_layers": 3, "num_labels": 10}, 32, None),
    ("Mixtral", {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 96, "intermediate_size": 192,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
                 **VOCABULARY}, 8, 48),
    ("ResNet", {"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 1, "embedding_size": 24,
                "hidden_sizes": [24, 48], "depths": [2, 2], "layer_type": "basic", "num_labels": 10, "image_size": 28}, 16, None),
    ("BERT", {"architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": 160, "intermediate_size": 320, "num_attention_heads": 5,
              "num_hidden_layers": 3, "max_position_embeddings": 128, "type_vocab_size": 2, **VOCABULARY}, 8, 72),
    ("DeepSeek-V2", {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 160, "num_hidden_layers": 2,
                     "num_attention_heads": 4, "intermediate_size": 320, "moe_intermediate_size": 48, "kv_lora_rank": 32, "q_lora_rank": None,
                     "qk_nope_head_dim": 24, "qk_rope_head_dim": 16, "v_head_dim": 24, "n_routed_experts": 8, "n_shared_experts": 1,
                     "num_experts_per_tok": 2, "first_k_dense_replace": 1, "topk_method": "greedy", "max_position_embeddings": 128,
                     **VOCABULARY}, 8, 80),
    ("Qwen3-MoE", {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 144, "intermediate_size": 256,
                   "moe_intermediate_size": 72, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 48, "num_hidden_layers": 2,
                   "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True, **VOCABULARY}, 8, 96),
]
MEAN, WORST, OUTSIDE = 15, 30, 2


def write_pictures(n):
    """Grey noise of 28 x 28 with labels, as idx files."""
    drawn = random.Random(1)
    with open("train-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, n, 28, 28) + bytes(drawn.randrange(256) for _ in range(n * 784)))
    with open("train-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 0x801, n) + bytes(i % 10 for i in range(n)))


def took_alone(topt, data, steps):
    """Processor time of a step, in ms: what more steps take beyond a few; the least of three."""
    def spent(n):
        return processor(topt, "run", "alone.plan", "--data", data, "--steps", n, "--quiet", "--report", "report")

    return min((spent(FEW + steps) - spent(FEW)) / steps * 1e3 for _ in range(3))


def show_alone(topt, args):
    """Random plans do not differ on one rank, so models do."""
    rows = []
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    write_pictures(2000)
    hw = profile(topt, 1, "1KiB")
    print("| family | predicted, ms | band | processor time, ms | error |")
    print("|---|---|---|---|---|")
    for name, config, batch, seq in FAMILIES:
        with open("alone.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        run(topt, "plan", "alone.json", "--framework", "topt", "--hw", hw, "--batch", batch, *(("--seq", seq) if seq else ()), "--gpus", 1, "-o",
            "alone.plan")
        with open("alone.plan", encoding="utf-8") as file:
            plan = json.load(file)["predicted"]
        took = took_alone(topt, "text" if seq else "train-images-idx3-ubyte", max(6, min(60, int(8e8 / plan["time_ns"]))))
        with open("report", encoding="utf-8") as file:
            said = json.load(file)["predicted"]["time_ns"] / 1e6
        low, high = (plan["band"]["time"][end] / plan["time_ns"] * said for end in ("low_ns", "high_ns"))
        rows.append((error(said, took), low <= took <= high))
        print("| %s | %.1f | %.1f to %.1f | %.1f | %+.0f %% |" % (name, said, low, high, took, rows[-1][0]))
    errors, missed = [abs(e) for e, _ in rows], sum(not inside for _, inside in rows)
    print("\nTime on one rank: mean error %.1f %%, with its sign %+.1f %%, at most %.0f %%, %d of %d within the band.\n" % (
        mean(errors), mean([e for e, _ in rows]), max(errors), len(rows) - missed, len(rows)))
    if args.hold and (mean(errors) > MEAN or max(errors) > WORST or missed > OUTSIDE):
        raise SystemExit("which is more than it may be: %d %% on the mean, %d %% at most, %d outside" % (MEAN, WORST, OUTSIDE))


def profile(topt, ranks, size):
    run("mpirun", "-n", ranks, topt, "profile", "-o", "hw%d.json" % ranks, "--quiet", "--max-bytes", size)
    return "hw%d.json" % ranks


def show_times(topt, args):
    rows = [compare(topt, profile(topt, 2, "4MiB"), 2, 100 + i, args, i) for i in range(args.plans)]
    print("| model | ranks | strategy | predicted, ms | measured, ms | error |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        print("| %s | %d | %s | %.1f | %.1f | %+.0f %% |" % (
            r["model"], r["ranks"], r["strategy"], r["predicted"] / 1e6, r["took"] / 1e6, error(r["predicted"], r["took"])))
    times = [error(r["predicted"], r["took"]) for r in rows]
    print("\nTime: mean error %.1f %%, with its sign %+.1f %%, of %d." % (mean([abs(t) for t in times]), mean(times), len(rows)))


def show_memory(topt, args):
    """On as many ranks as 1 to 8, in turn."""
    hw = profile(topt, 8, "64KiB")
    args.steps = 3
    rows = [compare(topt, hw, 1 + i % 8, 200 + i, args, i) for i in range(args.plans)]
    print("| model | ranks | strategy | buffers predicted, MiB | at their peak | the process grew by | error of buffers |")
    print("|---|---|---|---|---|---|---|")
    for r in rows:
        print("| %s | %d | %s | %.1f | %.1f | %.1f | %+.1f %% |" % (
            r["model"], r["ranks"], r["strategy"], r["bytes"] / 2**20, r["counted"] / 2**20, r["grew"] / 2**20,
            error(r["bytes"], r["grew"])))
    grown = [error(r["bytes"], r["grew"]) for r in rows]
    print("\nMemory against what the process grew by: mean error %.1f %%, with its sign %+.1f %%, of %d; no peak of buffers was above its "
          "prediction: %s." % (mean([abs(g) for g in grown]), mean(grown), len(rows),
                               "true" if all(r["counted"] <= r["bytes"] for r in rows) else "false"))


main()
