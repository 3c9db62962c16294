#!/usr/bin/env python3
"""queue_round.py BIN [JOBS] - how long a round of `topt queue` takes: 1,000 waiting jobs on 1,000 GPUs of three kinds.

BIN has topt of a build.  A stand-in of scontrol prints 125 nodes of 8 GPUs in three partitions, a running job on most of them, and
the jobs, of which three in four agreed to 1 to 64 GPUs.  Prints seconds of the processor of the whole command, with all that it
reads; ends with 1 where they are more than two.
"""
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

SHAPES = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (8, 8)]
KINDS = ["a100", "h100", "v100"]
SCONTROL = '#!/bin/sh\ncase "$3" in job*) f=job;; *) f=$3;; esac\ncat "$(dirname "$0")/$f"\n'


def nodes_and_running(r, now):
    nodes, jobs = [], []
    for n in range(125):
        kind, used = KINDS[n % 3], r.choice([0, 2, 4, 8, 8, 8])
        nodes.append(f"NodeName=n{n} CPUEfctv=64 Gres=gpu:{kind}:8(S:0) GresUsed=gpu:{kind}:{used}(IDX:0-7) CPUAlloc={4 * used} AllocMem=0 "
                     f"RealMemory=1000000 State=MIXED Partitions={kind}\n")
        if used:
            start, end = (time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now + s)) for s in (-3600, r.randint(600, 86400)))
            jobs.append(f"JobId={5000 + n} JobName=j UserId=u(1) Priority=1 JobState=RUNNING Reason=None TimeLimit=1-00:00:00 StartTime={start} EndTime={end} "
                        f"Partition={kind} NodeList=n{n} NumNodes=1 NumCPUs={4 * used} NumTasks=1 CPUs/Task=1 MinCPUsNode={4 * used} TresPerNode=gres:gpu:{used}\n")
    return nodes, jobs


def waiting(r, i):
    own = r.randrange(len(SHAPES))
    seconds, flat = r.randint(3600, 500000), r.uniform(0, 0.2)
    times = [seconds * (flat + (1 - flat) / (n * g)) for n, g in SHAPES]
    nodes, each = SHAPES[own]
    comment = "topt-elastic=" + ",".join(f"{n}x{g}:{int(t * 1e6)}{'*' * (k == own)}" for k, ((n, g), t) in enumerate(zip(SHAPES, times))) + ";steps=1000"
    minutes = int(times[own] / 60) + 1
    return (f"JobId={i + 1} JobName=j UserId=u{i % 50}({i % 50}) Priority={100000 - i} JobState=PENDING Reason={'Priority' if i else 'Resources'} BatchFlag=1 "
            f"TimeLimit={minutes // 1440}-{minutes // 60 % 24:02d}:{minutes % 60:02d}:00 SubmitTime=2026-11-23T06:07:01 Partition={KINDS[i % 3]} NumNodes={nodes}-{nodes} "
            f"NumCPUs={nodes * each * 4} NumTasks={nodes * each} CPUs/Task=4 NtasksPerN:B:S:C={each}:0:*:* MinCPUsNode={each * 4} "
            f"Comment={comment if r.random() < 0.75 else ''}  StdErr=/x TresPerNode=gres:gpu:{each}\n")


def main():
    r, n = random.Random(1), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory(prefix="topt-round.") as work:
        nodes, jobs = nodes_and_running(r, time.time())
        jobs += [waiting(r, i) for i in range(n)]
        texts = {"scontrol": SCONTROL, "node": "".join(nodes), "job": "".join(jobs), "reservation": "No reservations in the system\n", "config": "",
                 "partition": "".join(f"PartitionName={k} MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP\n" for k in KINDS)}
        for name, text in texts.items():
            with open(f"{work}/{name}", "w") as f:
                f.write(text)
        os.chmod(f"{work}/scontrol", 0o755)
        done = subprocess.run([os.path.abspath(sys.argv[1]) + "/topt", "queue", "--scontrol", f"{work}/scontrol"], text=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = used.ru_utime + used.ru_stime
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) < n:
        sys.exit(f"topt queue ended with {done.returncode}: {done.stderr}{done.stdout[:300]}")
    now = sum(" now " in line for line in lines)
    print(f"{lines[0]}; {now} may start now; {seconds:.2f} s of a processor")
    sys.exit(seconds > 2)


main()
