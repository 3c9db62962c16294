#!/usr/bin/env python3
"""reality.py BIN [--plans N] [--steps N] [--only alone|time|memory] - random plans as predicted, and as this machine runs them, as a table.

BIN is the folder of a build's `topt`.  GPTs of several sizes run on one rank, by processor time, which other programs hardly
change; random plans on 2 ranks, by the fastest step after the first two, which needs as many idle cores as ranks; and random plans
on 1 to 8 ranks, by memory: what the process grew by between its start and the end, as the kernel says (VmHWM), so that it holds what
libraries and messages take, too, beside memory_bytes of the plan.  `topt profile` measures the machine before each that is timed, since
the speed of a virtual machine drifts by a quarter within minutes.
"""

import argparse
import json
import os
import resource
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
FEW, MORE = 2, 12


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


def show_alone(topt, _):
    """Random plans do not differ on one rank, so models do."""
    errors = []
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    print("| width, layers, tokens | predicted, ms | processor time, ms | error |")
    print("|---|---|---|---|")
    for width, layers, batch, seq in ((64, 4, 8, 128), (128, 4, 8, 128), (128, 4, 32, 32), (256, 4, 8, 128), (384, 4, 4, 128), (512, 2, 16, 64)):
        with open("alone.json", "w", encoding="utf-8") as file:
            json.dump(dict(MODELS["gpt"], n_embd=width, n_layer=layers, n_positions=seq), file)
        hw = profile(topt, 1, "1KiB")
        run(topt, "plan", "alone.json", "--framework", "topt", "--hw", hw, "--batch", batch, "--seq", seq, "--gpus", 1, "-o", "alone.plan")
        with open("alone.plan", encoding="utf-8") as file:
            said = json.load(file)["predicted"]["time_ns"] / 1e6

        def spent(steps):
            return processor(topt, "run", "alone.plan", "--data", "text", "--steps", steps, "--quiet")

        took = min((spent(MORE) - spent(FEW)) / (MORE - FEW) * 1e3 for _ in range(2))
        errors.append(error(said, took))
        print("| %d, %d, %d x %d | %.1f | %.1f | %+.0f %% |" % (width, layers, batch, seq, said, took, errors[-1]))
    print("\nTime on one rank: mean error %.1f %%, with its sign %+.1f %%, of %d.\n" % (mean([abs(e) for e in errors]), mean(errors), len(errors)))


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
