#!/usr/bin/env python3
"""beside_torch.py TOPT [--rounds N] - a step of GPTs of widths 128 and 384 on one thread, by topt run and by PyTorch, in turn.

Processor time, of a run of few steps and of one of more, so that starting does not count and what else the machine does counts little.
Prints the least, the median and the largest ratio of the rounds, and what share of topt's steps is spent where.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import tempfile

SHAPES = [(128, 4, 4, 128, 8), (384, 6, 4, 128, 4)]
FEW, MORE = 2, 12
HERE = os.path.dirname(os.path.abspath(__file__))
ONE = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


def processor(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=ONE, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def step(command):
    return (processor(command(MORE))[0] - processor(command(FEW))[0]) / (MORE - FEW)


def shares(text):
    """Of a step's time: products, attention, elementwise operators, the optimizer."""
    unit = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
    part = {"products": 0.0, "attention": 0.0, "elementwise": 0.0, "update": 0.0, "other": 0.0}
    for name, number, u in re.findall(r"^  (\w+) +([\d.]+) (\w+) per step", text, re.M):
        kind = ("products" if name.startswith("linear") else "attention" if name.startswith("atten") else
                name if name in part else "elementwise")
        part[kind] += float(number) * unit[u]
    whole = sum(part.values())
    return ", ".join("%s %.1f %%" % (k, 100 * v / whole) for k, v in part.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    args = parser.parse_args()
    topt = os.path.abspath(args.topt)
    os.chdir(tempfile.mkdtemp())
    with open("text", "w", encoding="utf-8") as file:
        file.write("a small crowd of numbers adds itself up over four quiet machines. " * 100)
    for width, heads, layers, seq, batch in SHAPES:
        with open("gpt.json", "w", encoding="utf-8") as file:
            json.dump({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "n_embd": width,
                       "n_head": heads, "n_layer": layers, "n_positions": seq, "tie_word_embeddings": True, "vocab_size": 128}, file)
        processor([topt, "plan", "gpt.json", "--framework", "topt", "--hw", "lab-cpu", "--batch", str(batch), "--seq", str(seq),
                   "--gpus", "1", "--optimizer", "adam", "-o", "plan.json"])

        def ours(steps):
            return [topt, "run", "plan.json", "--data", "text", "--steps", str(steps), "--quiet"]

        def theirs(steps, shape=(width, heads, layers, seq, batch)):
            return [args.python, os.path.join(HERE, "torch_gpt.py")] + [str(x) for x in shape + (steps,)]

        pairs = [(step(ours), step(theirs)) for _ in range(args.rounds)]
        ratio = sorted(a / b for a, b in pairs)
        print("width %d, %d layers, %d x %d tokens: topt %.0f ms, PyTorch %.0f ms a step (medians); ratio %.2f (%.2f to %.2f)" % (
            width, layers, batch, seq, 1e3 * statistics.median(a for a, _ in pairs), 1e3 * statistics.median(b for _, b in pairs),
            statistics.median(ratio), ratio[0], ratio[-1]))
        print("  " + shares(processor([topt, "run", "plan.json", "--data", "text", "--steps", "20", "--times"])[1]))


main()
