#!/usr/bin/env python3
"""slurm_cost.py PAIRS OPTIONS... - what topt adds to an sbatch: PAIRS submissions with these options and as many without, in
turn, held and taken back.  For a cluster that is up (deploy/cluster.sh) with a toptd that knows the answer; prints both
medians and the median of the differences, in milliseconds."""
import statistics
import subprocess
import sys
import time


def submit(options):
    began = time.perf_counter()
    job = subprocess.run(["sbatch", "--parsable", "--hold", "-N1", *options, "--wrap", "true"], text=True, capture_output=True,
                         check=True).stdout.strip()
    took = 1000 * (time.perf_counter() - began)
    subprocess.run(["scancel", job], check=True)
    return took


def main():
    pairs, options = int(sys.argv[1]), sys.argv[2:]
    submit(options)
    with_topt, without = [], []
    for i in range(pairs):
        for options_now, times in ((options, with_topt), ([], without))[:: 1 if i % 2 else -1]:
            times.append(submit(options_now))
    differences = [a - b for a, b in zip(with_topt, without)]
    print(f"with topt    {statistics.median(with_topt):.1f} ms")
    print(f"without      {statistics.median(without):.1f} ms")
    print(f"difference   {statistics.median(differences):.1f} ms at the median of {pairs} pairs")


main()
