#!/usr/bin/env python3
"""tables.py SIA BIN [ROW...] - the rows of Sia's tables 3 and 4 (SOSP 2023), simulated by `topt cluster simulate`: the table of docs/SLURM.md.

SIA is the folder sia-simulator of siasosp23/artifacts (seen at aaf7a0de), BIN has topt of a build.  Each row is the mean over all
workloads of a trace, as the artifact has them; after ± stands the standard deviation between workloads.  ROW: only these (philly,
helios, newtrace, table4, ...).  Takes some ten minutes of a processor.
"""
import csv
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MANY = "--kind aws=6x4,rtx=3x8,dgx-ext=2x8"
ONE = "--kind aws=16x4"
ROWS = [  # name, folder of workloads, curves, options, words
    ("philly", "philly", "goodput", f"{MANY} --any-kind --policy sia", "Philly, Sia"),
    ("helios", "saturn", "goodput", f"{MANY} --any-kind --policy sia", "Helios, Sia"),
    ("newtrace", "newtrace", "goodput", f"{MANY} --any-kind --policy sia", "newTrace, Sia"),
    ("table4", "philly", "goodput", f"{ONE} --policy sia", "Philly on 64 T4, Sia"),
    ("fixed", "philly", "fixed", f"{MANY} --any-kind --policy sia", "Philly, Sia with fixed batches"),
    ("moldable", "philly", "fixed", f"{MANY} --any-kind --policy moldable", "Philly, moldable backfill, fixed batches, any kind"),
    ("requeue", "philly", "fixed", f"{MANY} --any-kind --policy requeue", "Philly, the same with requeues"),
    ("asked", "philly", "fixed", f"{MANY} --policy asked", "Philly, as asked, fixed batches, a kind by the seed"),
]


def simulate(topt, workload, curves, options):
    """The row of figures, and the hours that each job took."""
    with tempfile.TemporaryDirectory() as folder:
        each = folder + "/outcomes.csv"
        done = subprocess.run([topt, "cluster", "simulate", workload, f"{HERE}/{curves}.csv", "--json", "--outcomes", each, *options.split()],
                              text=True, capture_output=True)
        if done.returncode:
            print(f"# {workload}: {done.stderr.strip()}", file=sys.stderr)
            return None
        with open(each, encoding="utf-8") as file:
            hours = [(int(j["end_s"]) - int(j["submit_s"])) / 3600 for j in csv.DictReader(file) if int(j["end_s"]) >= 0]
    return json.loads(done.stdout)["policies"][0], hours


def of_all(hours):
    """The p99 as the artifact's utils/print_run_stats.py has it: of the jobs of all workloads together."""
    return sorted(hours)[int(0.99 * len(hours))]


def spread(values, digits):
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def main():
    sia, topt, only = sys.argv[1], f"{os.path.abspath(sys.argv[2])}/topt", sys.argv[3:]
    print("| | workloads | mean hours | p99 of a workload | p99 of all jobs | makespan | GPU-hours a job | restarts a job |\n|---|---|---|---|---|---|---|---|")
    for name, folder, curves, options, words in ROWS:
        if only and name not in only:
            continue
        rows = [simulate(topt, w, curves, options) for w in sorted(glob.glob(f"{sia}/workloads/{folder}/*.csv"))]
        rows, hours = zip(*[r for r in rows if r])
        print(f"| {words} | {len(rows)} | {spread([r['jct_mean_h'] for r in rows], 2)} | {statistics.mean(r['jct_p99_h'] for r in rows):.1f} | "
              f"{of_all(sum(hours, [])):.1f} | {spread([r['makespan_h'] for r in rows], 1)} | {spread([r['gpu_hours'] / r['jobs'] for r in rows], 1)} | "
              f"{sum(r['restarts'] for r in rows) / sum(r['jobs'] for r in rows):.1f} |", flush=True)


main()
