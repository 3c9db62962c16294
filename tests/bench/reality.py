#!/usr/bin/env python3
"""reality.py BIN [--plans N] [--steps N] [--only time|memory] - random plans as predicted, and as this machine runs them, as a table.

BIN is the folder of a build's `topt`.  `topt profile` measures the machine first; then random plans of two GPTs run on 1 and
2 ranks, whose times are compared, and on 1 to 8, whose memory is: on fewer cores than ranks time says nothing.  Time is that of the fastest step
after the first two, since what else runs only ever adds.  Memory is what the process grew by between
its start and the end, as the kernel says (VmHWM), so that it holds what libraries and messages take, too; the prediction is memory_bytes of the plan.
"""

import argparse
import json
import os
import subprocess
import tempfile

MODELS = {
    "gpt": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 256, "n_head": 4, "n_layer": 4, "n_positions": 128,
            "tie_word_embeddings": True, "vocab_size": 256},
    "wide": {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 512, "n_head": 8, "n_layer": 2, "n_positions": 64,
             "tie_word_embeddings": True, "vocab_size": 256},
}
ROWS = [("gpt", 8, 128), ("wide", 16, 64)]


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
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--only", choices=["time", "memory"])
    args = parser.parse_args()
    topt = os.path.join(os.path.abspath(args.bin), "topt")
    os.chdir(tempfile.mkdtemp())
    with open("text", "w", encoding="utf-8") as file:
        file.write("a small crowd of numbers adds itself up over four quiet machines. " * 100)
    for name, doc in MODELS.items():
        with open(name + ".json", "w", encoding="utf-8") as file:
            json.dump(doc, file)
    if args.only != "memory":
        show_times(topt, args)
    if args.only != "time":
        show_memory(topt, args)


def profile(topt, ranks, size):
    run("mpirun", "-n", ranks, topt, "profile", "-o", "hw%d.json" % ranks, "--quiet", "--max-bytes", size)
    return "hw%d.json" % ranks


def show_times(topt, args):
    """The first two plans are on one rank, where random plans do not differ."""
    hw = profile(topt, 2, "4MiB")
    rows = [compare(topt, hw, 1 if i < 2 else 2, 100 + i, args, i) for i in range(args.plans)]
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
