#!/usr/bin/env python3
"""beside_handwritten.py TOPT HANDWRITTEN [--ranks N] [--rounds N] - a data parallel step by topt run and by a loop written by hand, in turn.

HANDWRITTEN is the program of tests/bench/handwritten.c.  The same network, batch and optimizer; one thread a rank.  Prints the fastest step
of each, since what else runs only ever adds, the medians, and the ratios.
"""

import argparse
import json
import os
import subprocess
import tempfile

STEPS = 300


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout


def model(width, batch):
    ops = [{"name": "x", "kind": "input", "inputs": [], "features": width}]
    last = "x"
    for i, n in enumerate([width, width, 10]):
        ops += [{"name": "w%d" % i, "kind": "linear", "inputs": [last], "features": n},
                {"name": "b%d" % i, "kind": "bias", "inputs": ["w%d" % i]}]
        last = "b%d" % i
        if i < 2:
            ops.append({"name": "r%d" % i, "kind": "unary", "inputs": [last], "activation": "relu"})
            last = "r%d" % i
    ops.append({"name": "loss", "kind": "cross_entropy", "inputs": [last]})
    return {"format": "topt-model/1", "name": "net", "batch": batch, "seq": 1, "ops": ops}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topt")
    parser.add_argument("handwritten")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    topt, hand = os.path.abspath(args.topt), os.path.abspath(args.handwritten)
    os.chdir(tempfile.mkdtemp())
    for width, batch in ((512, 128), (1024, 256)):
        with open("net.json", "w", encoding="utf-8") as file:
            json.dump(model(width, batch), file)
        with open("data.csv", "w", encoding="utf-8") as file:
            for i in range(2 * batch):
                file.write(",".join("%.2f" % ((i * 31 + k) % 100 / 100) for k in range(width)) + ",%d\n" % (i % 10))
        run(topt, "plan", "net.json", "--framework", "topt", "--space", "uniform", "--hw", "lab-cpu", "--gpus", args.ranks,
            "--pin", "*=b:%d" % args.ranks, "--factors", "none", "--optimizer", "momentum", "-o", "plan.json")
        ours, theirs = [], []
        for _ in range(args.rounds):
            run("mpirun", "-n", args.ranks, topt, "run", "plan.json", "--data", "data.csv", "--steps", STEPS, "--quiet", "--report", "report")
            with open("report", encoding="utf-8") as file:
                took = sorted(json.load(file)["step_ns"])
            ours.append((took[0] / 1e3, took[len(took) // 2] / 1e3))
            theirs.append(tuple(float(x) for x in run("mpirun", "-n", args.ranks, hand, width, batch, STEPS).split()[:2]))
        best, other = min(o[0] for o in ours), min(t[0] for t in theirs)
        middle = sorted(o[1] / t[1] for o, t in zip(ours, theirs))
        print("width %d, batch %d, %d ranks: fastest step %.0f us by topt, %.0f us by hand, %.2f times; medians of rounds %.2f times (%.2f to %.2f)" % (
            width, batch, args.ranks, best, other, best / other, middle[len(middle) // 2], middle[0], middle[-1]))


main()
