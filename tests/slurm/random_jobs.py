#!/usr/bin/env python3
"""random_jobs.py COUNT SEED TOPT MODEL - random submissions against a model of what is right.

Shapes, bounds, arrays, GPU types, partitions and users are drawn; what each must become is worked out here, from the
cluster's description below and not from the program.  A job that is taken must have the size and the kind of GPU that
are right, never wait for what can't be, and end; one that is refused must name a limit that it breaks.  Prints TAP.
"""
import os
import random
import re
import subprocess
import sys
import time

# Of test_random.sh: nodes as (GPU type, GPUs, CPUs, MiB), partitions as (nodes, minutes, MaxNodes), what else limits them,
# the reservation, and the site's table.
NODES = {"n1": ("a100", 4, 16, 4000), "n2": ("a100", 4, 16, 4000), "n3": ("v100", 4, 8, 2000), "n4": ("v100", 2, 8, 2000),
         "n5": ("a100", 4, 16, 4000)}
PARTITIONS = {"ampere": (["n1", "n2"], 60, 9), "volta": (["n3", "n4"], 0, 9), "mixed": (["n1", "n2", "n3", "n4"], 0, 1),
              "narrow": (["n1", "n2"], 0, 9), "lean": (["n1", "n3"], 0, 9), "club": (["n3", "n4"], 0, 9), "held": (["n5"], 0, 9)}
MAX_CPUS = {"narrow": 3}
DEF_MEM_PER_GPU = {"lean": 900}
MAX_MEM = {"lean": 3000}
GROUP = {"club": ("daemon", (0, 1))}  # and the users in it; root always is
RESERVATION, RESERVED, RESERVED_FOR, RESERVED_MINUTES = "course", "held", (0, 1, 2), 60
TABLE = [("mixed", "a100", "lab-cpu"), ("mixed", "v100", "v100-pcie-1x8"), ("volta", "*", "v100-pcie-1x8"),
         ("ampere", "*", "lab-cpu"), ("narrow", "*", "lab-cpu"), ("lean", "a100", "lab-cpu"), ("lean", "v100", "v100-pcie-1x8"),
         ("club", "*", "v100-pcie-1x8"), ("held", "*", "lab-cpu")]
PROFILE_GPUS = {"lab-cpu": 4, "v100-pcie-1x8": 8}
PROFILE_NODES = {"lab-cpu": 99, "v100-pcie-1x8": 1}  # without a network there is one
KIND = {"lab-cpu": "a100", "v100-pcie-1x8": "v100"}
USERS = [0, 65534, 1, 2]  # root, nobody, daemon, bin
BAD_REASONS = ("BadConstraints", "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "Resources can",
               "JobHeldAdmin", "InvalidAccount", "InvalidQOS", "MaxMemPerLimit")


class Job:
    """What is asked; None and "" where nothing is said."""

    def __init__(self, r):
        def sometimes(p, choices):
            return r.choice(choices) if r.random() < p else None
        self.mode = r.choice(["mini-time", "mini-parallelism"])
        self.gpus = r.choice([1, 1, 2, 2, 4, 4, 8]) if self.mode == "mini-time" else None
        self.memory = sometimes(0.6, ["3MiB", "6MiB", "8MiB", "12MiB", "40MiB"]) if not self.gpus else None
        self.partition = sometimes(0.8, ["ampere", "volta", "mixed", "narrow", "narrow", "lean", "lean", "club", "club",
                                         "volta,ampere", "mixed,volta", "narrow,ampere"])
        self.reservation = sometimes(0.12, [RESERVATION])
        if self.reservation:
            self.partition = r.choice([RESERVED, None, self.partition])
        self.type = sometimes(0.25, ["a100", "v100"])
        self.nodes = sometimes(0.3, [1, 2])
        self.ntasks = sometimes(0.2, [1, 2, 4, 8])
        self.said_nodes = self.nodes
        if self.nodes and self.ntasks and self.nodes > self.ntasks:
            self.nodes = self.ntasks  # sbatch says so, and does it
        self.gpus_bound = sometimes(0.2, [1, 2, 4, 8])
        self.per_node = sometimes(0.25, [1, 2, 4])
        if self.type and not self.per_node and not self.gpus_bound:
            self.per_node = 4
        self.tasks_per_node = sometimes(0.15, [1, 2, 4])
        self.cpus = sometimes(0.2, [1, 2, 4, 8, 17])
        self.cpus_per_gpu = sometimes(0.1, [1, 2, 6, 20]) if not self.cpus else None
        self.mem = sometimes(0.15, ["1000", "3000", "5G"])
        self.mem_per_gpu = sometimes(0.12, ["500", "900", "5G"]) if not self.mem else None
        self.time = sometimes(0.2, [30, 120])
        self.hw = sometimes(0.1, ["lab-cpu", "v100-pcie-1x8"])
        self.array = r.random() < 0.1
        self.user = r.choice(USERS)
        self.lines = r.random() < 0.3  # said in the script

    def words(self):
        of = f"{self.type}:" if self.type else ""
        said = [f"--topt-mode={self.mode}", "--topt-batch=8", "--topt-seq=64", "--topt-on-error=abort"]
        pairs = [("--topt-gpus", self.gpus), ("--topt-memory", self.memory), ("--topt-hw", self.hw), ("-p", self.partition),
                 ("-N", self.said_nodes), ("-n", self.ntasks), ("--ntasks-per-node", self.tasks_per_node), ("-c", self.cpus),
                 ("--cpus-per-gpu", self.cpus_per_gpu), ("--mem", self.mem), ("--mem-per-gpu", self.mem_per_gpu), ("-t", self.time),
                 ("--reservation", self.reservation), ("--gpus", self.gpus_bound and f"{of}{self.gpus_bound}"),
                 ("--gpus-per-node", self.per_node and f"{of}{self.per_node}"), ("--array", "1-2" if self.array else None)]
        for option, value in pairs:
            if value is not None:
                said.append(f"{option}={value}" if option.startswith("--") else f"{option}{value}")
        return said

    def by_node(self):
        as_many = (self.ntasks or 0) > 1 and self.ntasks == self.nodes and (
            (self.per_node or 0) > 1 or (self.gpus_bound or 0) > self.ntasks)
        return self.tasks_per_node == 1 or as_many


def mib(text):
    return int(text[:-1]) * 1024 if text.endswith("G") else int(text)


def wanted(job, node):
    """GPUs of a node that this job takes at most."""
    return min(b for b in (NODES[node][1], job.per_node, None if job.by_node() else job.tasks_per_node) if b)


def usable(job, node, partition):
    """Those that it can have, by its CPUs and memory."""
    _, _, cpus, memory = NODES[node]
    gpus = wanted(job, node)
    cpus = min(cpus, MAX_CPUS.get(partition, cpus))
    memory = min(memory, MAX_MEM.get(partition, memory))
    each = mib(job.mem_per_gpu) if job.mem_per_gpu else 0 if job.mem else DEF_MEM_PER_GPU.get(partition, 0)

    def fits(g):
        need = (1 if job.by_node() else g) * (job.cpus or 1)
        return max(need, g * (job.cpus_per_gpu or 0)) <= cpus and (mib(job.mem) if job.mem else g * each) <= memory
    return max((g for g in range(1, gpus + 1) if fits(g)), default=0)


def place(job, partition):
    """(profile, type to set, most nodes, GPUs a node) of a partition, or the words of limits that it breaks."""
    nodes, minutes, max_nodes = PARTITIONS[partition]
    row = [r for r in TABLE if r[0] == partition and job.hw in (None, r[2]) and job.type in (None, r[1]) + (
        (job.type,) if r[1] == "*" else ())]
    if not row:
        return {"--topt-hw="} if job.hw else {"has no profile"}
    kind = job.type or (row[0][1] if row[0][1] != "*" else None)
    profile = row[0][2]
    broken = set()
    if minutes and job.time and job.time > minutes:
        broken.add("MaxTime=")
    if partition in GROUP and job.user not in GROUP[partition][1]:
        broken.add(f"AllowGroups={GROUP[partition][0]}")
    if job.reservation:
        if job.user not in RESERVED_FOR:
            broken.add(f"reservation '{RESERVATION}' is not for user")
        if partition != RESERVED:
            broken.add(f"reservation '{RESERVATION}' is of partition '{RESERVED}'")
        if job.time and job.time >= RESERVED_MINUTES:
            broken.add(f"more than reservation '{RESERVATION}' has left")
    of_kind = [n for n in nodes if kind in (None, NODES[n][0])]
    if not of_kind:
        return broken | {"no node up with GPUs", f"no profile for partition '{partition}'"}

    def most(of):
        best = (0, 0)
        for least in {of(n) for n in of_kind} - {0}:
            best = max(best, (min(max_nodes, sum(of(n) >= least for n in of_kind)), least), key=lambda x: (x[0] * x[1], x[1]))
        return best
    best = most(lambda n: usable(job, n, partition))
    if best == (0, 0):
        broken |= {"-c ", "--mem=", "--mem-per-gpu=", "--cpus-per-gpu="}
    return broken or (profile, kind, best[0], best[1], most(lambda n: wanted(job, n))[1])


def planned(job, where):
    """GPUs of a node that plans are for, how many of them are taken, and how many nodes."""
    profile, _, nodes, each, of_node = where
    nodes = min(nodes, PROFILE_NODES[profile])
    node = min(PROFILE_GPUS[profile], of_node)
    room = min(node, each)
    if room == node or nodes == 1:
        return node, room, nodes
    while node % room and not (job.gpus and job.gpus % room == 0):
        room -= 1
    return room, room, nodes


def right(job, fewest):
    """("no", words of which one must be said) or ("yes", partitions, kind, GPUs, nodes, GPUs a node)."""
    names = (job.partition or (RESERVED if job.reservation else "ampere")).split(",")
    places = [(n, place(job, n)) for n in names]
    broken = set().union(*[p for _, p in places if isinstance(p, set)])
    can = [(n, p) for n, p in places if not isinstance(p, set)]
    bounds = []
    if job.gpus_bound:
        bounds.append(("--gpus", job.gpus_bound))
    if job.nodes and job.per_node:
        bounds.append(("-N", job.nodes * job.per_node))
    if (job.ntasks or 0) > 1 and not job.by_node():
        bounds.append(("-n", job.ntasks))
    if (job.ntasks or 0) > 1 and job.by_node() and job.per_node:
        bounds.append(("-n", job.ntasks * job.per_node))
    if job.nodes and job.tasks_per_node and not job.by_node():
        bounds.append(("-N", job.nodes * job.tasks_per_node))
    if job.gpus and bounds and min(b for _, b in bounds) < job.gpus:
        return ("no", {o for o, b in bounds if b < job.gpus})
    if not can:
        return ("no", broken)
    can = [(n, p) for n, p in can if p[:2] == can[0][1][:2]]
    where = max((p for _, p in can), key=lambda p: p[2] * p[3])
    node, room, all_nodes = planned(job, where)
    most = min(all_nodes, job.nodes or 99) * room
    gpus = job.gpus or fewest(where[0], job.memory, node)
    limits = {o for o, b in bounds if b < gpus} | ({f"partition '{n}'" for n, _ in can} | {"-N"} if gpus > most else set())
    if gpus > most or limits:
        return ("no", limits | {"as upper bound", "within "})
    need_nodes, each = max(1, gpus // node), min(gpus, node)
    shape = {o for o, have, need in (("-N", job.nodes, need_nodes), ("--gpus-per-node", job.per_node, each), (
        "--ntasks-per-node", None if job.by_node() else job.tasks_per_node, each), (
        "-n", job.ntasks if (job.ntasks or 0) > 1 and job.by_node() else None, need_nodes)) if have and need > have}
    if shape:
        return ("no", shape)
    stay = [n for n, p in can if need_nodes <= p[2] and each <= p[3]]
    return ("yes", stay, KIND[where[0]], where[1], gpus, need_nodes, each)


def submit(job, number, model):
    words, script = job.words() + [f"--topt-model={model}", "--topt-framework=topt", "--topt-precision=f32"], "#!/bin/bash\n"
    if job.lines:
        script += "".join(f"#SBATCH {w}\n" for w in words)
        words = []
    script += "exit 0\n"

    def become():
        os.setgroups([])
        os.setgid(job.user)
        os.setuid(job.user)
    return subprocess.run(["sbatch", "--parsable", f"-Jr{number}", "-o/dev/null"] + words, input=script, text=True,
                          capture_output=True, preexec_fn=become if job.user else None)


def shown(job_id):
    text = subprocess.run(["scontrol", "-o", "show", "job", job_id], text=True, capture_output=True).stdout.split("\n")[0]
    return dict(re.findall(r"(\w+)=(\S*)", text))


def wrong_with(job, done, want):
    """What is wrong with the answer, or None; and the job's number."""
    text = re.sub(r"^sbatch: Warning: can't run .*\n", "", done.stderr).strip()
    if "coming" in text or "not answer" in text:
        return "an outage: " + text, None
    if want[0] == "no":
        if done.returncode == 0:
            return f"taken, should name {want[1]}", done.stdout.strip()
        if text.count("\n") or not any(w in text for w in want[1]):
            return f"refused by '{text}', should name one of {want[1]}", None
        return None, None
    if done.returncode:
        return f"refused by '{text}', should be {want[1:]}", None
    _, partitions, kind, gpu_type, gpus, nodes, each = want
    number = done.stdout.strip()
    have = shown(number)
    tasks = nodes if job.by_node() else gpus
    tres = f"gres:gpu:{gpu_type}:{each}" if gpu_type else f"gres:gpu:{each}"
    got = (have.get("NumNodes", "").split("-")[0], have.get("NumTasks"), have.get("TresPerNode", "").replace("/", ":"))
    if got != (str(nodes), str(tasks), tres):
        return f"job {number} is {got}, should be {(nodes, tasks, tres)}", number
    goes = sorted(have.get("Partition", "").split(","))
    begun = have.get("JobState") != "PENDING" and len(goes) == 1 and goes[0] in partitions  # Slurm then names that one alone
    if goes != sorted(partitions) and not begun:
        return f"job {number} goes to {have.get('Partition')}, should go to {partitions}", number
    ran = have.get("NodeList", "(null)")
    if ran != "(null)" and {NODES[n][0] for n in re.findall(r"n\d", ran)} - {kind}:
        return f"job {number} runs on {ran}, of another kind", number
    return None, number


def drained(numbers):
    """Jobs that wait for what can't be, and those that never end."""
    bad, until = set(), time.time() + 60 + len(numbers)
    while time.time() < until:
        left = subprocess.run(["squeue", "-h", "-o", "%A|%T|%r"], text=True, capture_output=True).stdout.split("\n")
        left = [x.split("|") for x in left if x]
        bad |= {f"job {n} waits for {reason}" for n, state, reason in left if any(b in reason for b in BAD_REASONS)}
        left = [n for n, state, reason in left if not any(b in reason for b in BAD_REASONS)]
        if not left:
            return bad
        time.sleep(0.3)
    return bad | {f"job {n} does not end" for n in left}


def main():
    count, seed, topt, model = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    table = {}

    def fewest(profile, memory, node):
        key = (profile, memory, node)
        if key not in table:
            words = [topt, "plan", model, "--hw", profile, "--batch", "8", "--seq", "64", "--framework", "topt", "--precision",
                     "f32", "--lines", "plan", "--quiet", "--gpus-per-node", str(node)] + (["--memory", memory] if memory else [])
            out = subprocess.run(words, text=True, capture_output=True).stdout
            found = re.search(r"^TOPT_GPUS=(\d+)", out, re.M)
            table[key] = int(found.group(1)) if found else 1 << 20
        return table[key]
    r, failed, numbers, taken, refused = random.Random(seed), 0, [], 0, 0
    for i in range(count):
        job = Job(r)
        want = right(job, fewest)
        wrong, number = wrong_with(job, submit(job, i, model), want)
        taken, refused = taken + (want[0] == "yes"), refused + (want[0] == "no")
        if number:
            numbers.append(number)
        if wrong:
            failed += 1
            print(f"# {i}: {' '.join(job.words())}\n#    {wrong}")
    print(f"{'not ' if failed else ''}ok 1 - {count} random submissions, seed {seed}: {taken} to be taken, {refused} refused")
    bad = drained(numbers)
    print("\n".join(f"# {b}" for b in sorted(bad)[:10]), end="\n" if bad else "")
    print(f"{'not ' if bad else ''}ok 2 - of {len(numbers)} jobs none waits for what can't be, and each ends\n1..2")
    return bool(failed or bad)


sys.exit(main())
