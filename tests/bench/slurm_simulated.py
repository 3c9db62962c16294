#!/usr/bin/env python3
"""slurm_simulated.py BIN [JOBS [SEED]] - how near `topt cluster simulate` is to a real Slurm: the same jobs on a private cluster of
2 nodes of 4 GPUs, at two seconds an hour.

BIN has topt of a build.  Jobs come at random and sleep for as long as they are said to train.  They are run twice: as asked, by
Slurm's own backfill, and as jobs that agreed to other numbers of GPUs, while `topt rightsize --apply` runs twice an hour.  Slurm knows
a length by its limit, which is in minutes: at this speed 30 hours, and so the simulation has it (--limit-step); right-sizing knows the steps.
Slurm looks at the queue every two hours, so that right-sizing sees jobs before they start.  Prints the mean time from submission to
end of both, and ends with 1 where they differ by more than 10 %, or with 77 where there is no Slurm.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HOUR_S = 2.0
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHAPES = [(1, 1), (1, 2), (1, 4), (2, 4)]  # nodes, GPUs of each
SPEED = {1: 1.0, 2: 1.95, 4: 3.7, 8: 6.9}
LOAD, MINUTE_H = 0.9, 60 / HOUR_S
SCHEDULER = "bf_interval=1,bf_resolution=1,batch_sched_delay=0,defer,sched_interval=4,sched_min_interval=4000000"
NODES = "".join(f"n{n} CPUs=16 RealMemory=4000 Gres=gpu:any:4\n" for n in (1, 2)) + \
    f"PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\nSchedulerParameters={SCHEDULER}\n"


def run(words, **more):
    return subprocess.run(words, text=True, capture_output=True, **more)


def draw(n, seed):
    """(hour of submission, GPUs, hours) of each job, which ask for LOAD times the GPU-hours that there are."""
    r = random.Random(seed)
    sizes = [(r.choice([1, 1, 2, 2, 4, 8]), min(28, max(2, r.lognormvariate(2, 0.8)))) for _ in range(n)]
    between = sum(g * h for g, h in sizes) / (LOAD * 8 * n)
    jobs, at = [], 0
    for gpus, hours in sizes:
        jobs.append((at, gpus, hours))
        at += r.expovariate(1 / between)
    return jobs


def simulate(topt, jobs, policy, folder, words):
    with open(f"{folder}/trace.csv", "w") as f:
        f.write("submit_s,gpus,run_s\n" + "".join(f"{at * 3600:.0f},{gpus},{hours * 3600:.0f}\n" for at, gpus, hours in jobs))
    with open(f"{folder}/curve.csv", "w") as f:
        f.write("curve,kind,gpus,run_s,restart_s\n" + "".join(f"any,any,{g},{36000 / v:.0f},0\n" for g, v in SPEED.items()))
    done = run([topt, "cluster", "simulate", f"{folder}/trace.csv", f"{folder}/curve.csv", "--kind", "any=2x4", "--policy", policy, "--json", *words])
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["policies"][0]


def submit(job, number, elastic, folder):
    _, gpus, hours = job
    seconds = {g: hours * HOUR_S * SPEED[gpus] / v for g, v in SPEED.items()}
    case = " ".join(f"{g}) sleep {s:.3f};;" for g, s in seconds.items())
    script = f"g=$((SLURM_JOB_NUM_NODES * SLURM_GPUS_ON_NODE)); case $g in {case} esac; echo end $(date +%s.%N) $g"
    comment = "topt-elastic=" + ",".join(f"{n}x{g}:{int(seconds[n * g] * 1e6)}{'*' * (n * g == gpus)}" for n, g in SHAPES) + ";steps=1000"
    words = ["sbatch", "--parsable", f"-Jj{number}", f"-o{folder}/%j", "--time=1", f"-N{max(1, gpus // 4)}", f"-n{gpus}",
             f"--ntasks-per-node={min(gpus, 4)}", f"--gpus-per-node=any:{min(gpus, 4)}"] + ["--comment", comment] * elastic
    done = run(words + ["--wrap", script], check=True)
    return done.stdout.strip()


def replay(topt, jobs, elastic, folder):
    """Mean hours from submission to end, GPU-hours of jobs, and how many were changed."""
    os.makedirs(folder)
    ahead, submitted, changes = list(enumerate(jobs)), {}, 0
    began = last = time.time()
    while ahead or run(["squeue", "-h", "-o", "%A"]).stdout.strip():
        while ahead and ahead[0][1][0] * HOUR_S <= time.time() - began:
            number, job = ahead.pop(0)
            submitted[submit(job, number, elastic, folder)] = time.time()
        if elastic and time.time() - last > HOUR_S / 2:
            last = time.time()
            done = run([topt, "rightsize", "--apply", "--settle=0", "--max-jobs=100", "--max-per-user=100", "--max-slowdown=100",
                        "--min-efficiency=0.1", f"--log={folder}/log.jsonl"])
            changes += len(re.findall(r"^job \d+: done", done.stdout, re.M))
            if done.returncode:
                print(f"# {done.stdout}{done.stderr}", file=sys.stderr)
        time.sleep(0.1)
    ends = {job: re.search(r"^end (\S+) (\d+)", open(f"{folder}/{job}").read(), re.M) for job in submitted}
    took = [(float(ends[job].group(1)) - at) / HOUR_S for job, at in submitted.items()]
    return sum(took) / len(took), changes


def main():
    if os.geteuid() or not shutil.which("slurmctld", path=os.environ["PATH"] + ":/usr/sbin"):
        print("1..0 # skipped: a private Slurm needs root and slurmctld")
        sys.exit(77)
    topt = os.path.abspath(sys.argv[1]) + "/topt"
    jobs = draw(int(sys.argv[2]) if len(sys.argv) > 2 else 40, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    cluster = f"{ROOT}/deploy/cluster.sh"
    step = ["--limit-step", str(int(MINUTE_H * 3600))]
    with tempfile.TemporaryDirectory(prefix="topt-beside.") as work:
        os.chmod(work, 0o755)
        open(f"{work}/nodes", "w").write(NODES)
        rows = [("as asked", "asked", False, step), ("moldable backfill", "moldable", True, [])]
        said = [simulate(topt, jobs, policy, work, words) for _, policy, _, words in rows]
        try:
            run([cluster, "start", f"{work}/c", "--nodes", f"{work}/nodes", "--owner", str(os.getpid()), "--force"], check=True)
            os.environ["SLURM_CONF"] = f"{work}/c/slurm.conf"
            seen = [replay(topt, jobs, elastic, f"{work}/{policy}") for _, policy, elastic, _ in rows]
        finally:
            run([cluster, "stop", f"{work}/c"])
    print(f"{len(jobs)} jobs, {sum(h for _, _, h in jobs) / len(jobs):.1f} hours each as asked, at {LOAD} times what 8 GPUs can do, two seconds an hour\n")
    print("| | simulated, mean hours | on Slurm | difference | changed |\n|---|---|---|---|---|")
    for (name, *_), s, (hours, changes) in zip(rows, said, seen):
        print(f"| {name} | {s['jct_mean_h']:.2f} | {hours:.2f} | {100 * (s['jct_mean_h'] / hours - 1):+.1f} % | {changes} |")
    sys.exit(any(abs(s["jct_mean_h"] / hours - 1) > 0.1 for s, (hours, _) in zip(said, seen)))


main()
