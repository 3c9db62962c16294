#!/usr/bin/env python3
"""curves.py SIA goodput|fixed - how long the jobs of Sia's workloads train on each number of GPUs, from its measured tables.

SIA is the folder sia-simulator of siasosp23/artifacts (seen at aaf7a0de).  Prints a table that `topt cluster simulate` reads,
tests/bench/sia/goodput.csv or fixed.csv: the time of all of an application's training where the batch follows Sia's goodput
(the largest product of efficiency and throughput in each epoch), or where it stays as the workload says, with gradients accumulated
where it does not fit (its strong-scaling jobs).

A step is what was measured (traces/APPLICATION/placements-KIND.csv, else scalability-KIND.csv, linear in the local batch), slowed by the
factors that the simulator was calibrated with; progress and gradient noise of an epoch are those of validation-*.csv.  The fits by which
Sia predicts steps that were not measured are left out: numbers of GPUs without a measured row are.
"""
import csv
import glob
import os
import re
import sys

KINDS = {"aws": (16, 4), "rtx": (3, 8), "dgx-ext": (2, 8)}  # nodes and GPUs of each: simulator_config.py; of aws table 3 has 6 nodes, table 4 has 16
EPOCHS = {"bert": 2, "cifar10": 100, "deepspeech2": 80, "imagenet": 90, "yolov3": 50}  # applications.py
SLOWDOWNS = {"bert": 1.2, "cifar10": 1.8, "deepspeech2": 1.2, "imagenet": 1.2, "yolov3": 1.2}  # simulator_config.py
RESTARTS = {"bert": 120, "cifar10": 50, "deepspeech2": 25, "imagenet": 250, "yolov3": 80}  # applications.py, seconds
BATCHES = {"bert": [384], "cifar10": [2048, 4096], "deepspeech2": [320, 640], "imagenet": [1600, 3200], "yolov3": [64]}  # of the workloads


def rows(path):
    with open(path, newline="") as f:
        return [{k: v if k == "placement" else float(v) for k, v in r.items()} for r in csv.DictReader(f)]


def between(points, at):
    """Linear between sorted (x, value) pairs, value a tuple; None outside."""
    for (x0, a), (x1, b) in zip(points, points[1:]):
        if x0 <= at <= x1:
            share = (at - x0) / (x1 - x0)
            return tuple(p + (q - p) * share for p, q in zip(a, b))
    return points[0][1] if len(points) == 1 and points[0][0] == at else None


class Application:
    def __init__(self, folder, name):
        self.name, self.steps = name, {}
        self.runs = {int(re.search(r"-(\d+)\.csv", p).group(1)): rows(p) for p in glob.glob(f"{folder}/{name}/validation-*.csv")}
        self.sizes = sorted(self.runs)
        for kind, (nodes, per_node) in KINDS.items():
            for gpus in [1, 2, 4] + [n for n in range(8, nodes * per_node + 1) if n % per_node == 0]:
                if gpus > per_node * nodes:
                    continue
                points = self.measured(folder, kind, gpus, per_node)
                if points:
                    self.steps[kind, gpus] = points

    def measured(self, folder, kind, gpus, per_node):
        whole = str(min(gpus, per_node)) * max(1, gpus // per_node)
        at = [(r["local_bsz"], (r["step_time"], r["sync_time"])) for r in rows(f"{folder}/{self.name}/placements-{kind}.csv") if r["placement"] == whole]
        if not at:
            at = [(r["local_bsz"], (r["step_time"], r["sync_time"])) for r in rows(f"{folder}/{self.name}/scalability-{kind}.csv")
                  if r["num_replicas"] == gpus and r["num_nodes"] == len(whole)]
        return sorted(dict(at).items())

    def noise(self, batch, epoch):
        """Square and variance of the gradient, between the batches that were tried."""
        return between([(b, (self.runs[b][epoch]["grad_sqr"], self.runs[b][epoch]["grad_var"])) for b in self.sizes], batch)

    def progress(self, epoch):
        return 0 if epoch == 0 else min(self.runs[b][epoch - 1]["progress"] for b in self.sizes)

    def step(self, kind, gpus, batch):
        """Seconds of an iteration with this batch, and the batch that it is by whole numbers; None."""
        points = self.steps[kind, gpus]
        local = -(-batch // gpus)
        more = -(-local // points[-1][0]) - 1
        if gpus == 1 and batch > self.sizes[0]:
            more = max(more, 1)
        each = -(-local // (more + 1))
        if each * gpus * (more + 1) > self.sizes[-1]:
            each = self.sizes[-1] // (gpus * (more + 1))
        is_at = between(points, each)
        return is_at and (is_at[0] + more * (is_at[0] - is_at[1]), each * gpus * (more + 1))

    def seconds(self, kind, gpus, fixed=None):
        """Of all of the training; None where the batch can't be had."""
        first, last = self.sizes[0], self.sizes[-1]
        tried = [fixed] if fixed else [round(first * (last / first) ** (i / 49)) for i in range(50)]
        choices = [s for s in (self.step(kind, gpus, b) for b in tried) if s and first <= s[1] <= last]
        sum_s = 0
        for epoch in range(EPOCHS[self.name]):
            best = 0
            for step_s, batch in choices:
                sqr, var = self.noise(batch, epoch)
                best = max(best, (var + sqr) / (var * first / batch + sqr) / step_s)
            if not best:
                return None
            sum_s += (self.progress(epoch + 1) - self.progress(epoch)) / best * SLOWDOWNS[self.name]
        return sum_s


def main():
    print("# By tests/bench/sia/curves.py from sia-simulator of siasosp23/artifacts at aaf7a0de: training of its workloads' jobs, in seconds.")
    print("curve,kind,gpus,run_s,restart_s")
    for name in EPOCHS:
        a = Application(sys.argv[1] + "/traces", name)
        for batch in [None] if sys.argv[2] == "goodput" else BATCHES[name]:
            for kind, gpus in a.steps:
                seconds = a.seconds(kind, gpus, batch)
                if seconds:
                    print(f"{name}{f'@{batch}' if batch else ''},{kind},{gpus},{seconds:.0f},{RESTARTS[name]}")


main()
