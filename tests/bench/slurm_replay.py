#!/usr/bin/env python3
"""slurm_replay.py BIN PLUGIN - a mixed queue of 60 jobs replayed on a private Slurm of 2 nodes of 4 GPUs, as people ask
(a number of GPUs out of habit), with topt (the fewest GPUs, or the most that keep 80 % of the best speed a GPU, of a node or of
both), and with topt while `topt rightsize --apply` runs over and over, of jobs that agreed.  One comes every two hours.

BIN has topt and toptd of a build, PLUGIN is its spank_topt.so.  Each job trains one of some models for a number of steps;
it sleeps for as long as a step is predicted to take, an hour being a quarter of a second, and one that was asked with too
few GPUs for its memory dies after a tenth of its time.  Prints the passes as the table of docs/SLURM.md.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HOUR_S = 0.25
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KINDS = [("--batch=64 --seq=4096", "all", 900), ("--batch=32 --seq=2048", "all", 4000), ("--batch=64 --seq=4096", "lora:16", 1500),
         ("--batch=16 --seq=8192", "lora:16", 2500), ("--batch=128 --seq=2048", "all", 1200)]
HABITS = [1, 1, 2, 4, 4, 8, 8]
WISHES = [[], ["--topt-min-efficiency=0.8", "--topt-max-gpus=4"], ["--topt-min-efficiency=0.8"]]
HOURS_BETWEEN = 2


def run(words, **more):
    return subprocess.run(words, text=True, capture_output=True, **more)


class Planner:
    """Predicted seconds a step of a kind on a number of GPUs; None where it does not fit."""

    def __init__(self, topt, model, hw):
        self.words, self.known = [topt, "plan", model, "--hw", hw, "--lines", "plan", "--quiet"], {}

    def seconds(self, kind, gpus):
        if (kind, gpus) not in self.known:
            shape, train, _ = KINDS[kind]
            out = run(self.words + shape.split() + [f"--train={train}", f"--gpus={gpus}"]).stdout
            found = re.search(r"^TOPT_TIME_NS=(\d+)", out, re.M)
            self.known[kind, gpus] = int(found.group(1)) / 1e9 if found else None
        return self.known[kind, gpus]


def jobs_of(seed):
    r = random.Random(seed)
    at = 0
    jobs = []
    for _ in range(60):
        at += r.expovariate(1 / HOURS_BETWEEN)
        jobs.append((at, r.randrange(len(KINDS)), r.choice(HABITS), r.choice([0.5, 1, 1, 2]), r.choice(WISHES)))
    return jobs


def words_of(job, number, planner, with_topt, elastic, model, folder):
    _, kind, habit, length, wish = job
    shape, train, steps = KINDS[kind]
    steps = int(steps * length)
    words = ["sbatch", "--parsable", f"-Jj{number}", f"-o{folder}/%j"]
    log = "echo start $(date +%s.%N) $SLURM_JOB_NUM_NODES $SLURM_GPUS_ON_NODE; sleep %s; echo end $(date +%s.%N)"
    if with_topt:
        sleep = f"$(awk \"BEGIN {{ print $TOPT_TIME_NS / 1e9 * {steps} / 3600 * {HOUR_S} }}\")"
        words += ["--topt-mode=mini-parallelism", *wish, "--topt-hw=replay", f"--topt-model={model}", f"--topt-train={train}"]
        words += ["--topt-" + w[2:] for w in shape.split()] + ["--topt-elastic"] * elastic
        return words + ["--wrap", log.replace("sleep %s", f"sleep {sleep}")], 0
    seconds = planner.seconds(kind, habit)
    died = seconds is None
    if died:  # as long as a start takes on what would have held it
        seconds = 0.1 * next(planner.seconds(kind, g) * g / habit for g in (2, 4, 8) if planner.seconds(kind, g))
    words += [f"-N{max(1, habit // 4)}", f"--gpus-per-node={min(habit, 4)}", f"-n{habit}"]
    return words + ["--wrap", log.replace("sleep %s", f"sleep {seconds * steps / 3600 * HOUR_S}")], int(died)


def rightsize(topt, folder):
    """One run; how many jobs it changed."""
    done = run([topt, "rightsize", "--apply", "--settle=0", "--max-jobs=60", "--max-per-user=60", f"--log={folder}/log.jsonl"])
    if done.returncode:
        print(f"# {done.stdout}{done.stderr}", file=sys.stderr)
    return len(re.findall(r"^job \d+: done", done.stdout, re.M))


def replay(with_topt, planner, model, folder, topt=None):
    os.makedirs(folder)
    began, submitted, died, refused, changes = time.time(), {}, 0, 0, 0
    ahead = list(enumerate(jobs_of(60)))
    while ahead or run(["squeue", "-h", "-o", "%A"]).stdout.strip():
        while ahead and ahead[0][1][0] * HOUR_S <= time.time() - began:
            number, job = ahead.pop(0)
            words, dies = words_of(job, number, planner, with_topt, bool(topt), model, folder)
            done = run(words)
            if done.returncode:
                refused += 1
                print(f"# {job}: {done.stderr.strip()}", file=sys.stderr)
            else:
                submitted[done.stdout.strip()] = time.time()
                died += dies
        changes += rightsize(topt, folder) if topt else 0
        time.sleep(0.1)
    hours = waited = last = 0
    for job, at in submitted.items():
        text = open(f"{folder}/{job}").read()
        start = re.search(r"^start (\S+) (\d+) (\d+)", text, re.M)
        end = float(re.search(r"^end (\S+)", text, re.M).group(1))
        hours += (end - float(start.group(1))) / HOUR_S * int(start.group(2)) * int(start.group(3))
        waited += (float(start.group(1)) - at) / HOUR_S
        last = max(last, end)
    trained = len(submitted) - died
    return {"jobs that trained": trained, "GPU-hours": hours, "GPU-hours for each that trained": hours / trained, "mean wait, hours": waited / len(submitted), "all done after, hours": (last - began) / HOUR_S,
            "died for memory": died, "refused": refused, "changed while they waited": changes}


def main():
    binaries, plugin = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="topt-replay.") as work:
        os.chmod(work, 0o755)
        hw = json.loads(run([f"{binaries}/topt", "hw", "show", "a100-80-dgx", "--json"]).stdout)
        curves = [c for c in hw.get("curves", []) if c["per_node"] <= 4 and c["nodes"] <= 2]
        hw.update(name="replay", nodes=2, gpus_per_node=4, curves=curves)
        json.dump(hw, open(f"{work}/replay.json", "w"))
        model = f"{ROOT}/deploy/quickstart/llama-3.1-8b.json"
        daemon = subprocess.Popen([f"{binaries}/toptd", "--socket", f"{work}/s", "--state", f"{work}/state"],
                                  stderr=open(f"{work}/log", "w"))
        cluster = f"{ROOT}/deploy/cluster.sh"
        try:
            run([cluster, "start", f"{work}/c", "--url", f"unix:{work}/s", "--plugin", plugin, "--plugin-args", "timeout_ms=60000",
                 "--owner", str(os.getpid()), "--force"], check=True)
            os.environ["SLURM_CONF"] = f"{work}/c/slurm.conf"
            run([f"{binaries}/topt", "client", "add-hw", f"{work}/replay.json", "--url", f"unix:{work}/s"], check=True)
            planner = Planner(f"{binaries}/topt", model, f"{work}/replay.json")
            rows = [replay(False, planner, model, f"{work}/as-asked"), replay(True, planner, model, f"{work}/topt"),
                    replay(True, planner, model, f"{work}/rightsize", f"{binaries}/topt")]
        finally:
            if daemon.poll() is not None:
                sys.stderr.write(f"toptd ended: {daemon.returncode}\n" + open(f"{work}/log").read()[-2000:])
            run([cluster, "stop", f"{work}/c"])
            daemon.terminate()
            daemon.wait()
    print("| | as people ask | with topt | with topt and right-sizing |\n|---|---|---|---|")
    for key in rows[0]:
        print(f"| {key} | " + " | ".join(f"{row[key]:.4g}" for row in rows) + " |")


main()
