#!/usr/bin/env python3
"""slurm_cost.py PAIRS PLUGSTACK OPTIONS... - what topt adds to an sbatch, in milliseconds, in PAIRS pairs of submissions that
are held and taken back: with these options against without any, and without options with the plugin against with an empty
PLUGSTACK, the cluster's plugstack.conf.  For a cluster that is up with a toptd that knows the answer (slurm_cost.sh)."""
import resource
import statistics
import subprocess
import sys
import time


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (used.ru_utime + used.ru_stime)


def submit(options):
    """Milliseconds that pass, and that a processor works for it."""
    began, worked = time.perf_counter(), processor_time()
    job = subprocess.run(["sbatch", "--parsable", "--hold", "-N1", *options, "--wrap", "true"], text=True, capture_output=True,
                         check=True).stdout.strip()
    took = 1000 * (time.perf_counter() - began), processor_time() - worked
    subprocess.run(["scancel", job], check=True)
    return took


def compare(pairs, name, one, other_name, other):
    """Both in turn, each first in every second pair."""
    times = {name: [], other_name: []}
    for i in range(pairs):
        for which, take in ((name, one), (other_name, other))[:: 1 if i % 2 else -1]:
            times[which].append(take())
    print(f"{pairs} pairs, medians in ms    elapsed   processor")
    for which, taken in times.items():
        print(f"  {which:<26} {statistics.median(t[0] for t in taken):6.1f} {statistics.median(t[1] for t in taken):11.1f}")
    differences = [[a[k] - b[k] for a, b in zip(times[name], times[other_name])] for k in (0, 1)]
    print(f"  {'of the differences':<26} {statistics.median(differences[0]):6.1f} {statistics.median(differences[1]):11.1f}")


def main():
    pairs, plugstack, options = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with open(plugstack) as file:
        line = file.read()

    def with_plugin(text):
        with open(plugstack, "w") as file:
            file.write(text)
        return submit([])
    submit(options)
    compare(pairs, "with topt's options", lambda: submit(options), "without", lambda: submit([]))
    compare(pairs, "with the plugin", lambda: with_plugin(line), "without it", lambda: with_plugin(""))
    with open(plugstack, "w") as file:
        file.write(line)


main()
