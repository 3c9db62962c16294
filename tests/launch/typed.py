"""typed.py ROOT BIN - every line of the documents that a person would type is run, here or by a test that is named; and
whatever starts ranks does so once a node, all agree where they meet, and the numbers are the plan's.

Run by typed.sh in a folder of its own, with a private Slurm of two nodes of four GPUs and toptd at $TOPT_URL."""
import collections
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import time

ROOT, BIN = sys.argv[1:]
DOCUMENTS = ("README.md", "docs/TUTORIAL.md", "docs/SLURM.md", "docs/LAUNCH.md", "docs/TORCH.md")
RECORDS = os.path.abspath("records")
count = failed = 0


def ok(good, text, shown=""):
    global count, failed
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {text}", flush=True)
    if not good:
        failed += 1
        for line in str(shown).splitlines()[:20]:
            print("# " + line)


# ---- stand-ins ---------------------------------------------------------------------------------

STAND_IN = """#!/bin/sh
[ "${0##*/}" != topt ] || [ "$1" = run ] || exec "%s/topt" "$@"
record=$(mktemp "%s/XXXXXXXX")
env >"$record"
for word; do printf 'word=%%s\\n' "$word"; done >>"$record"
printf 'program=%%s\\n' "${0##*/}" >>"$record"
""" % (BIN, RECORDS)
PROGRAMS = ("torchrun", "accelerate", "deepspeed", "tune", "python3", "mpirun", "topt")


def make_stand_ins():
    os.makedirs("bin")
    os.makedirs(RECORDS)
    os.chmod(RECORDS, 0o777)
    for name in PROGRAMS:
        with open("bin/" + name, "w", encoding="utf-8") as f:
            f.write(STAND_IN)
        os.chmod("bin/" + name, 0o755)
    os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]
    os.environ["SBATCH_OUTPUT"] = "job.out"
    os.environ["TOPT_ON_ERROR"] = "abort"


Record = collections.namedtuple("Record", "program words env")


def records():
    """The programs that were started since the last call."""
    found = []
    for path in glob.glob(RECORDS + "/*"):
        env, words = {}, []
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f.read().splitlines():
                name, _, value = line.partition("=")
                if name == "word":
                    words.append(value)
                else:
                    env[name] = value
        found.append(Record(env.get("program"), words, env))
        os.unlink(path)
    return found


# ---- how a launcher was started ------------------------------------------------------------------

def after(words, *names):
    for i, word in enumerate(words):
        for name in names:
            if word == name:
                return words[i + 1]
            if word.startswith(name + "="):
                return word[len(name) + 1:]
    return None


def yaml_of(path):
    with open(path, encoding="utf-8") as f:
        return dict(line.strip().split(": ", 1) for line in f if ": " in line)


def numbers_of(record):
    """(nodes, ranks of a node, where they meet) as the launcher was told."""
    words, env = record.words, record.env
    if record.program in ("torchrun", "tune"):
        place = after(words, "--rdzv-endpoint", "--rdzv_endpoint")
        return (after(words, "--nnodes"), after(words, "--nproc-per-node", "--nproc_per_node"),
                place + "/" + after(words, "--rdzv-id", "--rdzv_id") if place else "--standalone" in words and "alone")
    if record.program == "accelerate":
        told = yaml_of(after(words, "--config_file"))
        nodes = told["num_machines"]
        place = f"{after(words, '--main_process_ip')}:{after(words, '--main_process_port')}"
        if nodes != "1" and after(words, "--machine_rank") != env["SLURM_NODEID"]:
            place = None
        return nodes, str(int(told["num_processes"]) // int(nodes)), place
    if record.program == "deepspeed" and "--hostfile" in words:
        with open(after(words, "--hostfile"), encoding="utf-8") as f:
            hosts = [line.split() for line in f]
        place = f"{after(words, '--master_addr')}:{after(words, '--master_port')}"
        if after(words, "--node_rank") != env["SLURM_NODEID"] or "--no_ssh" not in words or \
                str(len(hosts)) != after(words, "--num_nodes"):
            place = None
        return str(len(hosts)), hosts[0][1].removeprefix("slots="), place
    if record.program == "deepspeed":
        return "1", str(len(after(words, "--include").split(":")[1].split(","))), "alone"
    return None


def launched(text, found, program, nodes, each, shown="", last=None):
    """One launcher a node, with the plan's numbers, meeting at the first node."""
    on = sorted(r.env.get("SLURMD_NODENAME", "") for r in found)
    ok([r.program for r in found] == [program] * nodes and len(set(on)) == nodes,
       f"{text}: {program} is started once on each of {nodes} nodes", f"{[(r.program, r.words[:4]) for r in found]} on {on}\n{shown}")
    if not on:
        return
    told = {numbers_of(r) for r in found if r.program == program}
    ok(len(told) == 1 and list(told)[0][:2] == (str(nodes), str(each)) and
       (nodes == 1 or str(list(told)[0][2]).startswith(on[0] + ":2")), f"{text}: all are told {nodes} x {each}, and to meet at {on[0]}", told)
    if last:
        ok(all(r.words[-len(last):] == last for r in found), f"{text}: and hand on {' '.join(last)}", [r.words for r in found])


def ranks(text, found, program, nodes, each, shown=""):
    """A task for each GPU."""
    on = collections.Counter(r.env.get("SLURMD_NODENAME") for r in found)
    ok({r.program for r in found} == {program} and sorted(on.values()) == [each] * nodes and
       sorted(int(r.env["SLURM_PROCID"]) for r in found) == list(range(nodes * each)),
       f"{text}: {each} tasks on each of {nodes} nodes", f"{on}\n{shown}")
    return {r.env.get("MASTER_ADDR", "") + ":" + r.env.get("MASTER_PORT", "") for r in found}


def shell(line, **env):
    """Until the jobs that it submits have ended."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=os.environ | env,
                          stdin=subprocess.DEVNULL)
    while "sbatch" in line and subprocess.run(["squeue", "-h"], capture_output=True, check=True).stdout:
        time.sleep(0.05)
    return done


def said(done):
    text = done.stdout + done.stderr
    if os.path.exists("job.out"):
        with open("job.out", encoding="utf-8") as f:
            text += f.read()
    return text


# ---- plans, and jobs of them ----------------------------------------------------------------------

LOSS = {"pytorch": "written", "deepspeed": "written", "megatron": "in-place", "torchtitan": "chunked"}


def plan_of(model, framework, nodes, each, zero, precision="bf16-mixed"):
    ranks_of = nodes * each
    return {"format": "topt-plan/1", "id": "p-0123456789abcdef", "mode": "mini-time", "framework": framework,
            "mesh": {"nodes": nodes, "gpus_per_node": each},
            "settings": {"dtype": "bf16", "optimizer": "adamw", "granule_bytes": 65536, "micro_batches": 2,
                         "precision": precision, **({"loss_kernel": LOSS[framework]} if framework in LOSS else {})},
            "uniform": {"dp": ranks_of, "tp": 1, "zero": zero, "recompute": True,
                        "micro_batch": model["batch"] // (ranks_of * 2)},
            "model": model, "hw": {"name": "a100-80-dgx"}}


TARGETS = (("torchrun", "pytorch", 3, "torchrun"), ("accelerate", "pytorch", 3, "accelerate"),
           ("deepspeed", "deepspeed", 3, "deepspeed"), ("megatron", "megatron", 1, "torchrun"),
           ("torchtitan", "torchtitan", 3, "torchrun"), ("hf", "pytorch", 3, "torchrun"), ("torchtune", "pytorch", 3, "tune"))


def check_job_scripts():
    with open("model.json", encoding="utf-8") as f, open("llama.json", encoding="utf-8") as g:
        model, llama = json.load(f), json.load(g)
    for i, (target, framework, zero, program) in enumerate(TARGETS):
        for nodes, each in ((2, 4), (2, 2), (1, 4))[:3 if target in ("torchrun", "deepspeed") else 1 + i % 2]:
            with open("target.json", "w", encoding="utf-8") as f:
                tuned = target == "torchtune"
                json.dump(plan_of(llama if target in ("torchtitan", "torchtune") else model, framework, nodes, each, zero, "bf16" if tuned else "bf16-mixed"), f)
            usual = framework in (target, "pytorch") and target not in ("accelerate", "hf", "torchtune")
            done = shell(f"topt launch target.json {'' if usual else '--for ' + target} --sbatch >target.sh && "
                         "sbatch target.sh --lr 'a b'")
            launched(f"{target} on {nodes} x {each}", records(), program, nodes, each, said(done), ["--lr", "a b"])
    with open("target.json", "w", encoding="utf-8") as f:
        json.dump(plan_of(model, "topt", 2, 2, 1), f)
    done = shell("topt launch target.json --sbatch >target.sh && sbatch target.sh --data text")
    found = records()
    ranks("topt run on 2 x 2", found, "topt", 2, 2, said(done))
    ok(all(r.words[0] == "run" and r.words[2:] == ["--data", "text"] for r in found), "topt run: the plan, and what it is given",
       [r.words for r in found])


SIZED = "--topt-mode=mini-time --topt-gpus=8 --topt-model=gpt-small.json --topt-hw=lab-cpu --topt-batch=32 --topt-seq=64"


def inside(line, options=SIZED, check=None):
    """In a job of 2 x 4 that topt sized, with a task a node, and with one a GPU."""
    for tasks in ("", " --topt-tasks=gpu"):
        with open("inside.sh", "w", encoding="utf-8") as f:
            f.write("#!/bin/bash\n" + line + "\n")
        done = shell(f"sbatch {options}{tasks} inside.sh")
        (check or (lambda text, found, shown: launched(text, found, "torchrun", 2, 4, shown)))(
            line + (" with --topt-tasks=gpu" if tasks else ""), records(), said(done))


def by_tasks(text, found, shown):
    places = ranks(text, found, "python3", 2, 4, shown)
    ok(len(places) == 1 and list(places)[0].startswith("n1:2"), f"{text}: all meet at the first node", places)


# ---- lines of the documents -------------------------------------------------------------------------

WORDS = {"topt", "sbatch", "srun", "salloc", "torchrun", "accelerate", "deepspeed", "tune", "mpirun", "python3", "eval", "cmake", "apt",
         "git", "dpkg-buildpackage", "systemctl", "mkdir", "echo", "cat", "printf", "ls", "ssh", "curl", "cd", "bash", "sh", "export",
         "make", "ctest"}
INLINE = {"srun", "torchrun", "bash", "sh", "eval", "mpirun", "sbatch", "accelerate", "deepspeed", "tune"}


def typed_in_blocks(text):
    for block in re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE):
        if "+---" in block: # a drawing
            continue
        lines = iter(block.replace("\\\n", " ").splitlines())
        for line in lines:
            line = line[4:]
            prompt = line[:2] in ("$ ", "# ")
            words = line[2 if prompt else 0:].split()
            if words and not line.startswith(" ") and not words[-1].endswith(":") and (
                    words[0] in WORDS or words[0].startswith("deploy/")) and not (len(words) > 1 and words[1].endswith(":")):
                yield re.split(r" {2,}(?=[^-'])", line[2 if prompt else 0:])[0].strip()


def typed_inline(text):
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    for code in re.findall(r"`([^`]+)`", prose):
        words = code.split()
        if len(words) > 1 and words[0] in INLINE and code not in ("accelerate launch", "tune run"): # programs
            yield " ".join(words)


def by(path, needle):
    def check(line):
        with open(f"{ROOT}/{path}", encoding="utf-8") as f:
            ok(needle in f.read(), f"{path} runs it or its like: {line}", needle)
    return check


def cannot(why):
    return lambda line: ok(bool(why), f"not run, {why}: {line}")


def run(line):
    """The line as it stands ends well."""
    done = shell(line, TOPT_HW="a100-80-dgx")
    ok(done.returncode == 0, line, said(done))


def size(line):
    """Submitted, and where it runs its launchers are those of its plan."""
    line = re.sub(r" (torch|script)\.sh$", " train.sh", line)
    hw = "lab-cpu" if "model.json" in line else "a100-80-dgx"
    done = shell(line.replace("model.json", "gpt-small.json"), TOPT_HW=hw)
    found = records()
    if "--topt-dry-run" in line:
        ok(done.returncode == 0 and not found and "not submitted" in done.stderr, line, said(done))
        return
    ok(done.returncode == 0 and bool(found), line, said(done))
    if found:
        env = found[0].env
        launched(line, found, "torchrun", int(env["TOPT_NODES"]), int(env["TOPT_GPUS_PER_NODE"]), said(done))


def in_shell_of_salloc(line):
    done = shell(f"salloc {SIZED} bash -c " + shlex.quote(f"{line}; srun $TOPT_SRUN torchrun $TOPT_TORCHRUN train.py"))
    launched(line, records(), "torchrun", 2, 4, said(done))


def of_a_job(line):
    """In a job that somebody booked by hand, with another number of tasks than the plan has."""
    for booked in ("-N2 -n2 --gpus-per-node=4", "-N2 --ntasks-per-node=4 --gpus-per-node=4"):
        with open("inside.sh", "w", encoding="utf-8") as f:
            f.write("#!/bin/bash\n" + line.replace("plan.json", "two.json") + "\n")
        done = shell(f"sbatch {booked} inside.sh")
        if "python3" in line:
            by_tasks(f"{line} in {booked}", records(), said(done))
        else:
            launched(f"{line} in {booked}", records(), "torchrun", 2, 4, said(done))


def script(line):
    done = shell(line + " && sbatch job.sh --lr 3e-4", TOPT_HW="a100-80-dgx")
    launched(line, records(), "torchrun", 1, 4, said(done), ["--lr", "3e-4"])


def alone(line):
    done = shell(line)
    found = records()
    ok(len(found) == 1 and found[0].program == "torchrun" and numbers_of(found[0]) == ("1", "4", "alone") and
       found[0].words[-3:] == ["train.py", "--lr", "3e-4"], line, said(done))


def plainly(line):
    """A line of a table of questions: what it leaves out is the model and the hardware."""
    hw = "h100-80-dgx" if "fp8" in line else "a100-80-dgx"
    full = line.replace("MODEL --hw HW", f"config.json --hw {hw}").replace(
        "topt plan ...", f"topt plan config.json --hw {hw} --batch 64 --seq 4096")
    run(full)


limits = "tests/slurm/test_limits.sh"
groups = "tests/slurm/test_groups.sh" # of nodes of two kinds, which this Slurm does not have
RULES = (
    (r"topt client add-hw ampere-hopper", by(groups, "client add-hw hw.json")),
    (r"sbatch .*--topt-hw=ampere-hopper", by(groups, "--topt-gpus=16")),
    (r"topt client plan config\.json --hw ampere-hopper", by(groups, "client plan model.json")),
    (r"topt client get-plan p-\.\.\.", by(groups, "client get-plan")),
    (r"sbatch -p ampere : -p hopper", by(groups, 'runs "by partitions"')),
    (r"sbatch -t 8:00:00 job\.sh", by(groups, "-t 20 job.sh")), (r"bash job\.sh", by(groups, "bash job.sh --lr")),
    (r"deploy/quickstart\.sh|deploy/test\.sh", cannot("it takes minutes")),
    (r"cmake ", cannot("it is how this was built")),
    (r"git clone", cannot("the address is yours")),
    (r"topt plan llama-3.1-8b.json --hw ours.json", by("tests/solver/answers.sh", "ours.json")),
    (r"sbatch .*--topt-elastic=requeue", by("tests/slurm/test_requeue.sh", "grown requeue,8")),
    (r"sbatch .*--topt-elastic=kinds", by("tests/slurm/test_kinds.sh", "--topt-elastic=kinds")),
    (r"topt calibrate HW ", by("tests/solver/calibrate_test.py", '"calibrate"')),
    (r"apt |dpkg-buildpackage", by("deploy/package-test.sh", "apt-get -qq install")),
    (r"systemctl ", by("deploy/package-test.sh", "systemctl")),
    (r"mkdir -p /etc/topt|echo 'site-map", by(limits, "--site-map")),
    (r"cat /etc/slurm/plugstack", by("deploy/package-test.sh", "plugstack.conf.d/topt.conf")),
    (r"printf '#!/bin/sh.* >train\.sh$", run),
    (r"sbatch --help \| grep", run),
    (r"(sbatch|topt sbatch) .*--topt-model=config.json \.\.\.", lambda line: size(
        line.removesuffix(" train.sh").replace("...", "--topt-batch=64 --topt-seq=4096 train.sh"))),
    (r"sbatch .*--reservation=", by(limits, "--reservation")), (r"sbatch .*--time=2:00:00", by(limits, "--time")),
    (r"sbatch .*--qos=short", by("tests/slurm/test_accounts.sh", "qos")), (r"sbatch .*-c 17", by(limits, "-c 17")),
    (r"sbatch .*--ntasks-per-node=4 -c 32", by("tests/slurm/test_four.sh", "-c 32")),
    (r"sbatch .*-p lean", by(limits, "-p lean")), (r"sbatch .*--topt-gpus=8 .*gpt-small.json \.\.\.", by(limits, "twice")),
    (r"sbatch -p main -N2 --gpus-per-node=4 train\.sh", by("tests/slurm/test_submit.sh", "cap main")),
    (r"sbatch job\.sh --lr 3e-4", lambda line: None), # behind the line that writes job.sh
    (r"(topt )?sbatch --topt-.*(train|torch|script)\.sh$", size),
    (r"topt launch plan\.json --sbatch >job\.sh$", script),
    (r"sh run/launch\.sh", alone),
    (r"(srun|sbatch) --topt-\.\.\.$", lambda line: None), # any option
    (r"topt launch plan\.json$", run),
    (r"bash <\(topt launch --sbatch\)", lambda line: inside(line, check=lambda text, found, shown: launched(text, found, "torchrun", 2, 4, shown))),
    (r"bash <\(topt launch plan\.json --sbatch\)|srun \$\(topt launch plan\.json --env\) python3", of_a_job),
    (r"srun \$\(topt launch --env\) python3", lambda line: inside(line, check=by_tasks)),
    (r"srun \$TOPT_SRUN torchrun", inside),
    (r'eval "\$\(topt launch --export\)"', in_shell_of_salloc),
    (r"srun --mpi=pmix topt run", by("tests/slurm/test_jobs.sh", "--mpi=pmix")),
    (r"topt (tokenize|generate)|mpirun -n [0-9] topt run|ls saved gpt", by("tests/runtime/run_real.sh", "tokenize")),
    (r"mpirun -n 8 topt profile", by("tests/runtime/run_profile.sh", "profile -o")),
    (r"topt plan MODEL|topt plan \.\.\.", plainly),
    (r"topt plan config.json --hw a100-v100", lambda line: run(
        line.replace("plan.json", "groups.json").replace("config.json", "gpt-small.json").replace("384", "12"))),
    (r"topt rightsize --requeue", by("tests/slurm/test_requeue.sh", "--requeue --settle")),
    (r"topt report", by("tests/slurm/test_report.sh", '"$TOPT" report')),
    (r"topt rightsize", by("tests/slurm/test_rightsize.sh", "rightsize --apply")),
    (r"topt compare", by("tests/house/schemas.sh", '"$topt" compare')),
    (r"topt client curve", run),
    (r"curl -s --unix-socket", by("tests/slurm/test_rest.sh", "text/plain")),
    (r"ssh -L", cannot("it needs another machine")),
    (r"topt ", run),
)


def check_documents():
    seen = set()
    for document in DOCUMENTS:
        with open(f"{ROOT}/{document}", encoding="utf-8") as f:
            text = f.read()
        tutorial = document.endswith("TUTORIAL.md")
        for line in [*typed_in_blocks(text), *typed_inline(text)]:
            if line in seen or (tutorial and f"    $ {line}\n" in text and line.startswith("topt ")): # tutorial.sh
                continue
            seen.add(line)
            rule = next((act for pattern, act in RULES if re.match(pattern, line)), None)
            if rule:
                rule(line)
            else:
                ok(False, f"{document}: no test runs: {line}")
    ok(len(seen) > 40, f"{len(seen)} lines that people type were found", sorted(seen))


def main():
    make_stand_ins()
    setup = [f"cp {ROOT}/deploy/quickstart/llama-3.1-8b.json config.json", "cp config.json llama-3.1-8b.json",
             f"cp {ROOT}/deploy/quickstart/pretrain_gpt3.sh pretrain.sh",
             "mkdir Llama-3.1-8B && cp config.json Llama-3.1-8B",
             f"cp {ROOT}/deploy/quickstart/gpt-small.json .", "topt import gpt-small.json --batch 32 --seq 64 -o model.json",
             "topt import config.json --batch 32 --seq 64 -o llama.json",
             "topt plan config.json --hw a100-80-dgx --batch 64 --seq 4096 --gpus 4 --quiet -o plan.json",
             "topt launch plan.json --for torchrun -o run",
             r"printf '#!/bin/sh\nsrun $TOPT_SRUN torchrun $TOPT_TORCHRUN train.py\n' >train.sh"]
    for line in setup:
        done = shell(line)
        assert done.returncode == 0, said(done)
    with open(f"{ROOT}/docs/TUTORIAL.md", encoding="utf-8") as f, open("fashion.json", "w", encoding="utf-8") as to:
        to.write(re.search(r'^    (\{"architectures": \["ViT.*?\})$', f.read(), re.M | re.S)[1])
    with open("model.json", encoding="utf-8") as f, open("two.json", "w", encoding="utf-8") as to:
        json.dump(plan_of(json.load(f), "pytorch", 2, 4, 3), to)
    records()
    check_job_scripts()
    check_documents()
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


main()
