"""launch_test.py ROOT TOPT - what `topt launch` writes: every key stands in the list of its
framework, the numbers are the plan's, and what can't be obeyed is refused with a question.
"""
import ast
import collections
import contextlib
import fnmatch
import inspect
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT, TOPT = sys.argv[1], sys.argv[2]
TARGETS = ("torchrun", "accelerate", "deepspeed", "megatron", "primus", "torchtitan", "hf", "torchtune")
MEGATRON = ("megatron", "primus")  # of its arguments
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "tune")
FRAMEWORK = {t: t for t in TARGETS} | dict.fromkeys(("torchrun", "accelerate", "hf", "torchtune"), "pytorch")
SECTIONS = {"fsdp.json": "fsdp_config.", "accelerator.json": "accelerator_config."}
count = failed = 0


def ok(good, text, shown=""):
    global count, failed
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {text}")
    if not good:
        failed += 1
        for line in str(shown).splitlines()[:12]:
            print("# " + line)


def run(*args, **env):
    return subprocess.run([TOPT, *args], capture_output=True, text=True, env=os.environ | env, check=False)


# ---- plans -------------------------------------------------------------------------------------

def model_of(path, batch, seq, *train):
    done = run("import", path, "--batch", str(batch), "--seq", str(seq), *train, "-o", "model.json")
    assert done.returncode == 0, done.stderr
    with open("model.json", encoding="utf-8") as f:
        return json.load(f)


def plan_of(model, dp=1, tp=1, zero=0, recompute=False, steps=1, per_node=8, precision="bf16-mixed",
            framework=None, optimizer="adamw", overlap=None, loss=None, low=None):
    ranks = dp * tp
    nodes = max(1, ranks // per_node)
    settings = {"dtype": {"f32": "f32", "fp16-mixed": "f16"}.get(precision, "bf16"), "optimizer": optimizer, "granule_bytes": 65536,
                "micro_batches": steps, "precision": precision}
    if overlap:
        settings["overlap"] = overlap
    if low:
        settings["low"] = low
    own = {"pytorch": "written", "deepspeed": "written", "megatron": "in-place", "primus": "in-place", "torchtitan": "chunked"}
    settings["loss_kernel"] = loss or own.get(framework, "fused")
    plan = {"format": "topt-plan/1", "id": "p-0123456789abcdef", "mode": "mini-time",
            "mesh": {"nodes": nodes, "gpus_per_node": ranks // nodes}, "settings": settings,
            "uniform": {"dp": dp, "tp": tp, "zero": zero, "recompute": recompute,
                        "micro_batch": model["batch"] // (dp * steps)},
            "model": model, "hw": {"name": "a100-80-dgx"}}
    if framework:
        plan["framework"] = framework
    return plan


def launch(plan, target, *args):
    with open("plan.json", "w", encoding="utf-8") as f:
        json.dump(plan, f)
    return run("launch", "plan.json", "--for", target, *(args or ("--json",)))


# ---- keys of what was written -------------------------------------------------------------------

def listed(target):
    with open(f"{ROOT}/solver/launch/keys/{target}.txt", encoding="utf-8") as f:
        lines = f.read().splitlines()
    head = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    return head, {line for line in lines if not line.startswith("# ")}


def option_names(words):
    return {w.split("=", 1)[0] for w in words if w.startswith("--")}


def command_of(text):
    """The words from the launcher on."""
    lines = text.replace("\\\n", " ").splitlines()
    line = next(line for line in lines if line.split(" ", 1)[0] in LAUNCHERS)
    return shlex.split(line)


def keys_of_recipe(words):
    """Of "tune run", which has torchrun's options: recipe with configuration, and what is set otherwise."""
    end = words.index("--config") - 1
    return {("torchrun", name) for name in option_names(words[:end])} | {("torchtune", "tune run")} | {
        ("torchtune", " ".join(words[end:end + 3]))} | {("torchtune", w.split("=")[0]) for w in words[end + 3:-1]} | {
            ("torchtune", w.split("=")[1]) for w in words[end + 3:] if "torchtune." in w}


def keys_of_command(text, target):
    """(target, key) of each option: torchrun's own end where the program begins."""
    words = command_of(text)
    if words[0] == "tune":
        return keys_of_recipe(words)
    if words[0] != "torchrun":
        return {(target, name) for name in option_names(words)}
    end = next(i for i, w in enumerate(words) if w.endswith(".py") or w == "-m")
    found = {("torchrun", name) for name in option_names(words[:end])}
    if words[end] == "-m":
        found.add((target, "-m " + words[end + 1]))
    if "--optim" in words:
        found.add((target, "optim." + words[words.index("--optim") + 1]))
    return found | {(target, name) for name in option_names(words[end:])}


def keys_of_yaml(text):
    found, section = set(), ""
    for line in text.splitlines():
        name = line.strip().split(":", 1)[0]
        if line.startswith("  "):
            found.add(f"{section}.{name}")
        else:
            section = name
            found.add(name)
    return found


def keys_of_experiment(text):
    """Keys of Primus: overrides by themselves, those around them with dots."""
    path, found = [], set()
    for line in text.splitlines():
        if m := re.match(r"( *)(\w+):", line):
            path[len(m[1]) // 2:] = [m[2]]
            found.add(m[2] if path[-2:-1] == ["overrides"] else ".".join(path))
    return found


def keys_of_primus(text):
    """What its launcher is told."""
    words = shlex.split(text.replace("\\\n", " ").splitlines()[-1])
    return {" ".join(["primus-cli", words[1]]), " ".join(words[3:6])}


def keys_of_json(value, prefix=""):
    found = set()
    for name, inner in value.items():
        found.add(prefix + name)
        if isinstance(inner, dict):
            found |= keys_of_json(inner, prefix + name + ".")
    return found


def dotted(node):
    """a.b.c as words, or None where it does not begin with a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id] + parts[::-1] if isinstance(node, ast.Name) else None


def imports_of(tree, package):
    """What each name of the file stands for, as far as it is of this package."""
    stands = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.split(".")[0] == package:
                    stands[a.asname or a.name] = a.name
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == package:
            for a in node.names:
                stands[a.asname or a.name] = f"{node.module}.{a.name}"
    return stands


def keys_of_torch(text):
    """Names of PyTorch with their keywords, and methods that are no own ones of Python."""
    tree = ast.parse(text)
    stands = imports_of(tree, "torch")
    own = set().union(*map(dir, (str, list, dict, set, contextlib.ExitStack, os.environ, contextlib, inspect, fnmatch, collections)))
    own.update(n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and dotted(n) and dotted(n)[0] == "self")
    plain = {"torch", "torch.nn", "torch.distributed", "torch.bfloat16", "torch.float16", "torch.float32", "torch.int8", "torch.device",
             "torch.nn.Parameter"}
    found = set()
    for node in ast.walk(tree):
        path = dotted(node) if isinstance(node, (ast.Attribute, ast.Name)) else None
        if path and path[0] in stands:
            found.add(".".join([stands[path[0]]] + path[1:]))
        if isinstance(node, ast.Call):
            path = dotted(node.func)
            if path and path[0] in stands:
                name = ".".join([stands[path[0]]] + path[1:])
                found.update(f"{name}({k.arg})" for k in node.keywords if k.arg)
            elif isinstance(node.func, ast.Attribute) and node.func.attr not in own:
                found.add("." + node.func.attr)
    return {name for name in found if name not in plain and not is_package(name, found)}


def is_package(name, found):
    return any(other.startswith(name + ".") for other in found) and name.rsplit(".", 1)[-1].islower()


def keys_of_titan(text):
    tree = ast.parse(text)
    found = set(imports_of(tree, "torchtitan").values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            found.add(".".join(dotted(node.targets[0])[1:]))
    return found


def keys_of(answer):
    target = answer["target"]
    found = set()
    for file in answer["files"]:
        name, text = file["name"], file["text"]
        if target == "primus":
            found |= {(target, key) for key in (keys_of_primus if name == "launch.sh" else keys_of_experiment)(text)}
        elif name == "launch.sh":
            found |= keys_of_command(text, target)
        elif name == "hostfile": # lines of hosts
            continue
        elif name.endswith(".yaml"):
            found |= {(target, key) for key in keys_of_yaml(text)}
        elif name.endswith(".json"):
            found |= {(target, key) for key in keys_of_json(json.loads(text), SECTIONS.get(name, ""))}
        elif name == "topt_pipeline.py":
            found |= {(target, "deepspeed.pipe.PipelineModule")} | {
                (target, f"deepspeed.pipe.PipelineModule({k.arg})") for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) for k in n.keywords}
        elif name == "topt_apply.py":
            found |= {("torchrun", key) for key in keys_of_torch(text)}
        else:
            found |= {(target, key) for key in keys_of_titan(text)}
    return found


# Methods of tensors and meshes, which no class of the lists has, and of transformers' models.
OTHERS = {".numel", ".clone", ".detach", ".reshape", ".is_floating_point", ".register_hook", ".get_group",
          ".get_output_embeddings", ".add_adapter", ".__getattr__"}


def unknown(keys, lists):
    """Those that their framework does not read; methods are looked for in any class."""
    methods = {"." + key.rsplit(".", 1)[-1] for key in lists["torchrun"] if "(" not in key}
    # Primus hands what its presets do not name to Megatron-LM, as a variable of an argument.
    lists = lists | {"primus": lists.get("primus", set()) | {key[2:].replace("-", "_") for key in lists.get("megatron", ())}}
    return {(target, key) for target, key in keys
            if key not in lists[target] and not (key.startswith(".") and key in methods)
            and key not in OTHERS}


# ---- the tests -----------------------------------------------------------------------------------

def check_keys(models):
    heads, lists = {}, {}
    for target in TARGETS:
        heads[target], lists[target] = listed(target)
    emitted, pins, refused, asked, written = set(), set(), 0, True, dict.fromkeys(TARGETS, 0)
    grid = itertools.product(models, ((1, 1), (8, 1), (16, 1), (1, 2), (8, 2)), (0, 1, 2, 3), (1, 2), TARGETS)
    for i, (model, (dp, tp), zero, steps, target) in enumerate(grid):
        if i % 3 or (zero and dp == 1):
            continue
        precision = ("bf16-mixed", "bf16", "f32")[i // 5 % 3]
        plan = plan_of(model, dp, tp, zero, bool(i // 7 % 2), steps, precision=precision,
                       framework=FRAMEWORK[target], overlap="ddp" if i % 2 else None)
        done = launch(plan, target)
        if done.returncode == 3:
            refused += 1
            asked = asked and ("; run: topt plan MODEL" in done.stderr or "topt launch --for" in done.stderr)
            continue
        if done.returncode:
            ok(False, f"{target} takes the plan or refuses it", done.stderr)
            return
        answer = json.loads(done.stdout)
        written[target] += 1
        emitted |= keys_of(answer)
        pins.add((target, answer["pin"]["repository"], answer["pin"]["commit"], answer["pin"]["date"]))
    for target in ("hf", "accelerate", "deepspeed", "megatron", "primus"):
        emitted |= keys_of(json.loads(launch(plan_of(models[0], 8, precision="fp16-mixed", framework=FRAMEWORK[target]), target).stdout))
    for target, low in [("megatron", p) for p in ("delayed", "blockwise", "mxfp8", "nvfp4")] + [("primus", p) for p in ("delayed", "mxfp8")]:
        emitted |= keys_of(json.loads(launch(plan_of(models[0], 8, low=low, framework=FRAMEWORK[target]), target).stdout))
    ok(min(written.values()) > 3 and refused > 5, f"{sum(written.values())} answers, {refused} refusals", written)
    ok(asked, "each refusal names what to ask instead")
    wrong = unknown(emitted, lists)
    ok(not wrong, f"{len(emitted)} keys and names stand in the lists of their frameworks", wrong)
    ok(pins == {(t, heads[t]["repository"], heads[t]["commit"], heads[t]["date"]) for t in TARGETS},
       "the lists are of the commits that are named", pins)
    planted = {("megatron", "--tensor-parallel-size"), ("deepspeed", "bf16.enable"),
               ("accelerate", "fsdp_config.fsdp_sharding"), ("torchtitan", "parallelism.tp_degree"),
               ("torchrun", "torch.distributed.fsdp.fully_shard(reshard)"), ("torchrun", ".set_sync")}
    ok(unknown(planted, lists) == planted, "keys that no framework reads are found")


def check_refusals(gpt, llama):
    def refuses(plan, target, *words):
        done = launch(plan, target)
        good = done.returncode == 3 and done.stderr.count("\n") == 1 and all(w in done.stderr for w in words)
        ok(good, f"{target} refuses: {words[0]}", f"{done.returncode} {done.stderr}")

    refuses(plan_of(llama, 1, 3, per_node=3), "torchtitan", "32 query heads", "--gpus 3", "--framework torchtitan")
    refuses(plan_of(llama, 1, 16), "torchrun", "8 key-value heads", "--framework pytorch")
    refuses(plan_of(gpt, 4, 1, 2), "megatron", "ZeRO-2", "--framework megatron")
    refuses(plan_of(gpt, 4, 1, 1), "torchtitan", "ZeRO-1", "--framework torchtitan")
    refuses(plan_of(gpt, 4, 1, 1), "accelerate", "ZeRO-1", "topt launch --for torchrun")
    refuses(plan_of(gpt, 4, 2, 0), "torchrun", "DDP", "--framework pytorch")
    refuses(plan_of(gpt, 4, framework="megatron"), "torchrun", "made for megatron", "--framework pytorch")
    refuses(plan_of(gpt, 4, framework="pytorch"), "deepspeed", "made for pytorch", "--framework deepspeed")
    own = plan_of(gpt, 4)
    del own["uniform"]
    refuses(own, "torchrun", "only `topt run` supports", "--framework pytorch")
    done = run("launch", "plan.json", "--sbatch")
    ok("#SBATCH --ntasks-per-node=4\n" in done.stdout and
       done.stdout.endswith('--ntasks-per-node=4 --mpi=pmix topt run "$files/plan.json" "$@"\n'),
       "which it is launched with, a task for each GPU", done.stdout[-300:] + done.stderr)
    uneven = plan_of(gpt, 4)
    uneven["uniform"]["micro_batch"] += 1
    refuses(uneven, "deepspeed", "batch 32 is not", "run: topt plan MODEL --hw a100-80-dgx --batch 32 --seq 64")
    done = launch(plan_of(llama, 1, 16), "megatron")
    ok(done.returncode == 0 and "--num-query-groups 8" in done.stdout,
       "Megatron-LM takes tensor parallelism that key-value heads divide", done.stderr)


def staged(plan, layers, chunks=1, schedule=None):
    """The plan over as many stages as it has layers by chunk, a node of ranks each."""
    stages = len(layers) // chunks
    plan["mesh"]["nodes"] *= stages
    plan["mesh"]["stages"] = stages
    plan["uniform"].update(pp=stages, vp=chunks, layers=layers, schedule=schedule or ("interleaved-1f1b" if chunks > 1 else "1f1b"))
    return plan


def check_stages(llama):
    words = command_of(json.loads(launch(staged(plan_of(llama, 1, 8, steps=16), [8] * 4), "megatron").stdout)["files"][0]["text"])
    pairs = dict(zip(words, words[1:]))
    ok(pairs["--pipeline-model-parallel-size"] == "4" and "--nnodes=4" in words and
       "--num-virtual-stages-per-pipeline-rank" not in words, "four equal pipeline stages of Megatron-LM", words)
    text = launch(staged(plan_of(llama, 1, 8, steps=16), [4] * 8, 2), "megatron").stdout
    ok("--num-virtual-stages-per-pipeline-rank 2" in text, "chunks of its interleaved schedule", text)
    ok("export CUDA_DEVICE_MAX_CONNECTIONS=1\\n" in text, "one queue of the device's, which arguments.py asks for beside tensor parallelism", text)
    text = launch(plan_of(llama, 8, 1, 1), "megatron").stdout
    ok("CUDA_DEVICE_MAX_CONNECTIONS" not in text, "... and not for data parallelism alone", text)
    text = launch(staged(plan_of(llama, 1, 8, steps=16), [4] * 8, 2, "combined-1f1b"), "megatron").stdout
    ok("--num-virtual-stages-per-pipeline-rank 2" in text and "--microbatch-group-size" not in text, "chunks of passes that run as one", text)
    text = launch(staged(plan_of(llama, 1, 8, steps=16), [6, 6, 5, 5, 5, 5], 2, "combined-1f1b"), "megatron").stdout
    for words in ("--overlap-moe-expert-parallel-comm", "export CUDA_DEVICE_MAX_CONNECTIONS=32",
                  "--microbatch-group-size-per-virtual-pipeline-stage 4"):
        ok(words in text, f"passes that run as one: {words}", text)
    done = launch(staged(plan_of(llama, 1, 8, steps=16), [4] * 8, 2, "combined-dualpipev"), "megatron")
    ok(done.returncode == 3 and "--schedules-method dualpipev" in done.stderr, "a schedule that a fork has is refused, with its name there", done.stderr)
    text = launch(staged(plan_of(llama, 1, 8, steps=16), [9, 8, 8, 7]), "megatron").stdout
    layout = "E" + "t" * 9 + "|" + "t" * 8 + "|" + "t" * 8 + "|" + "t" * 7 + "L"
    ok(f"--pipeline-model-parallel-layout '{layout}'" in text, "unequal ones as a layout", text)
    further = model_of(f"{ROOT}/deploy/quickstart/llama-3.1-8b.json", 32, 64, "--mtp", "1")
    text = launch(staged(plan_of(further, 1, 8, steps=16), [9, 9, 9, 5]), "megatron").stdout
    ok("--mtp-num-layers 1 " in text and "tttttmL'" in text and "--num-layers 32 " in text and "--untie-embeddings-and-output-weights" in text,
       "a module that predicts a further token, before the loss", text)
    text = launch(staged(plan_of(llama, 1, 8, steps=16), [0, 6, 6, 6, 6, 8, 0, 0], 2), "megatron").stdout
    ok("'E|" + "tttttt|" * 4 + "tttttttt||L'" in text, "chunks of the embedding, of nothing and of the loss", text)
    text = launch(staged(plan_of(llama, 1, 8, steps=16, framework="torchtitan"), [0, 16, 16, 0]), "torchtitan").stdout
    ok('[\\"tok_embeddings\\"],' in text and '[\\"norm\\", \\"lm_head\\"],' in text, "torchtitan's ends without layers", text)
    text = launch(staged(plan_of(llama, 1, 8, steps=16, framework="torchtitan"), [9, 8, 8, 7]), "torchtitan").stdout
    for line in ("pipeline_parallel_degree = 4", 'pipeline_parallel_schedule = \\"1F1B\\"', "num_pp_microbatches = 16",
                 'for i in range(25, 32)), \\"norm\\", \\"lm_head\\"]'):
        ok(line in text, f"torchtitan: {line}", text)
    done = json.loads(launch(staged(plan_of(llama, 8, steps=4, zero=2, framework="torchtitan"), [8] * 4), "torchtitan").stdout)
    ok(not any("anew" in line for line in done["differs"]), "torchtitan's stages gather parameters once a step", done["differs"])
    done = launch(staged(plan_of(llama, 8, steps=4, zero=3, framework="torchtitan"), [8] * 4), "torchtitan")
    ok(done.returncode != 0 and "stages keep parameters and gradients whole" in done.stderr, "... and do not drop them between micro-batches", done.stderr)
    text = launch(staged(plan_of(llama, 1, 8, steps=16, framework="torchtitan"), [4] * 8, 2, "zbv"), "torchtitan").stdout
    ok('pipeline_parallel_schedule = \\"ZBVZeroBubble\\"' in text, "a schedule that torchtitan has a class of", text)
    files = json.loads(launch(staged(plan_of(llama, 1, 8, steps=4, framework="torchtitan"), [16] * 2, 1, "zb-h1"), "torchtitan").stdout)["files"]
    texts = {f["name"]: f["text"] for f in files}
    ok(texts["topt_schedule.csv"] == "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0F3,0I2,0W2,0I3,0W3\n1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3\n" and
       "PipelineScheduleMulti" in texts["topt_torchtitan.py"] and "topt_schedule.csv" in texts["topt_torchtitan.py"],
       "one that it has none of, pass by pass", texts)
    done = launch(staged(plan_of(llama, 1, 8, steps=4, framework="torchtitan"), [4] * 8, 2, "dualpipev"), "torchtitan")
    ok(done.returncode != 0 and "dualpipev takes no 4 stages of 2 chunks with 4 micro-batches" in done.stderr,
       "a schedule that the shape has none of is refused", done.stderr)
    answer = json.loads(launch(staged(plan_of(llama, 8, 1, steps=4, zero=1, recompute=True, framework="deepspeed"), [8] * 4), "deepspeed").stdout)
    files = {f["name"]: f["text"] for f in answer["files"]}
    ok("num_stages=4" in files["topt_pipeline.py"] and 'partition_method="type:" + block' in files["topt_pipeline.py"] and
       json.loads(files["ds_config.json"])["pipeline"] == {"activation_checkpoint_interval": 1} and
       json.loads(files["ds_config.json"])["gradient_accumulation_steps"] == 4, "DeepSpeed's stages are a module", files)
    wrong = unknown(keys_of(answer), {"deepspeed": listed("deepspeed")[1], "torchrun": listed("torchrun")[1]})
    ok(not wrong, "whose parameters and keys are in its list", wrong)
    for target, plan, words in (
            ("deepspeed", staged(plan_of(llama, 8, 1, steps=4, zero=2, framework="deepspeed"), [8] * 4), "no ZeRO-2 beside pipeline stages"),
            ("deepspeed", staged(plan_of(llama, 8, 1, steps=4, framework="deepspeed"), [4] * 8, 2), "no interleaved schedule"),
            ("deepspeed", staged(plan_of(llama, 8, 1, steps=4, framework="deepspeed"), [9, 8, 8, 7]), "equally many layers"),
            ("deepspeed", staged(plan_of(llama, 1, 8, steps=16, framework="deepspeed"), [8] * 4), "AutoTP splits models of transformers"),
            ("torchtitan", staged(plan_of(llama, 8, 1, steps=4, zero=1, framework="torchtitan"), [8] * 4), "no ZeRO-1 beside pipeline stages"),
            ("megatron", staged(plan_of(llama, 8, 1, steps=4, zero=3), [8] * 4), "no ZeRO-3 beside pipeline stages"),
            ("torchtitan", staged(plan_of(llama, 1, 8, steps=16, framework="torchtitan"), [16, 16, 0, 0]), "chunk 2 of the pipeline has no layer"),
            ("torchrun", staged(plan_of(llama, 8, 1, steps=4, framework="pytorch"), [8] * 4), "have to be written into the training script")):
        done = launch(plan, target)
        ok(done.returncode == 3 and words in done.stderr and done.stderr.count("\n") == 1, f"{target} refuses: {words}", done.stderr)
    done = launch(staged(plan_of(llama, 1, 8, steps=2), [4] * 8, 2), "megatron")
    ok(done.returncode != 0 and "takes no 4 stages of 2 chunks with 2 micro-batches" in done.stderr, "micro-batches that stages do not divide", done.stderr)
    bad = staged(plan_of(llama, 1, 8, steps=16), [8] * 4)
    bad["uniform"]["layers"].pop()
    done = launch(bad, "megatron")
    ok(done.returncode != 0 and "layers of 4 stages" in done.stderr, "chunks without their layers are refused", done.stderr)


def on_groups(plan, *groups):
    """The plan on GPUs of several groups: (name, nodes, GPUs of a node, GPUs in all)."""
    plan["hw"]["groups"] = [{"name": name, "nodes": nodes, "gpus_per_node": each, "gpus": gpus} for name, nodes, each, gpus in groups]
    return plan


def started(folder, program, **env):
    """What launch.sh of the folder gives a stand-in for the program."""
    os.makedirs("stand-in", exist_ok=True)
    with open(f"stand-in/{program}", "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho \"$@\"\n")
    os.chmod(f"stand-in/{program}", 0o755)
    return subprocess.run(["sh", f"{folder}/launch.sh"], capture_output=True, text=True, check=False,
                          env={"PATH": f"{os.getcwd()}/stand-in:/usr/bin:/bin", "MASTER_ADDR": "first"} | env)


def check_components(llama):
    """Groups of unlike GPUs are components of a job, and each node starts as many ranks as it has GPUs."""
    groups = (("old", 2, 4, 8), ("new's $(x)", 4, 8, 24))
    plan = on_groups(staged(plan_of(llama, 1, 8, steps=16, per_node=4), [5, 9, 9, 9]), *groups)
    script = launch(plan, "megatron", "--sbatch").stdout
    ok(re.findall(r"^#SBATCH (?:--)?(.*)", script, re.M)[1:] ==
       ["partition=old", "nodes=2", "gpus-per-node=4", "ntasks-per-node=1", "hetjob",
        "partition=new-s---x-", "nodes=3", "gpus-per-node=8", "ntasks-per-node=1"], "a component for each group, in the order of ranks", script)
    sruns = [part.split() for part in script[script.index("\nsrun "):].replace("\\\n", "").split(" : ")]
    ok([(s[0] if i else s[1], [w for w in s if w.startswith(("--nodes", "--ntasks="))]) for i, s in enumerate(sruns)] ==
       [("--het-group=0", ["--nodes=2", "--ntasks=2"]), ("--het-group=1", ["--nodes=3", "--ntasks=3"])], "which one srun starts", sruns)
    ok("SLURM_JOB_NODELIST_HET_GROUP_0" in script and "\nexport TOPT_NODES='5'\n" in script and "GPUS_PER_NODE=" not in script and
       "expandable_segments" in script, "they meet at the first node of the first, with the plan's numbers", script)
    alone = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    ok(alone.returncode == 1 and alone.stderr.startswith("this is no heterogeneous job of 2 components") and alone.stderr.count("\n") == 1,
       "it starts nothing in a job of another kind", alone.stdout + alone.stderr)
    launch(plan, "megatron", "-o", "out")
    told = [started("out", "torchrun", **{name: str(i)}).stdout.split()[:4] for i, name in
            enumerate(("NODE_RANK", "SLURM_NODEID", "SLURM_NODEID", "NODE_RANK", "SLURM_NODEID"))]
    ok(told == [["--nnodes=5", f"--nproc-per-node={4 if i < 2 else 8}", f"--node-rank={i}", "--master-addr=first"] for i in range(5)],
       "each node starts as many ranks as it has GPUs", told)
    done = started("out", "torchrun")
    ok(done.returncode and "set NODE_RANK to the number of this node" in done.stderr and not done.stdout, "which it has to be told", done)
    answer = json.loads(launch(plan, "megatron").stdout)
    ok("GPUs are of several groups: start it on each node with NODE_RANK, 0 to 1 on old, 2 to 4 on new's $(x), and MASTER_ADDR, node 0"
       in answer["script"], "and people are told, too", answer["script"])
    wrong = unknown(keys_of(answer), {"megatron": listed("megatron")[1], "torchrun": listed("torchrun")[1]})
    ok(not wrong, "with options that there are", wrong)

    plan = on_groups(staged(plan_of(llama, 8, 1, steps=4, per_node=4, framework="deepspeed"), [8] * 4), *groups)
    files = {f["name"]: f["text"] for f in json.loads(launch(plan, "deepspeed").stdout)["files"]}
    ok(files["hostfile"] == "".join(f"node-{i} slots={4 if i < 2 else 8}\n" for i in range(5)) and "--num_gpus" not in files["launch.sh"] and
       '--node_rank "$node"' in files["launch.sh"], "DeepSpeed's hostfile says how many each has", files)
    own = on_groups(plan_of(llama, 8, per_node=4), ("old", 1, 4, 2), ("new", 2, 3, 6))
    own["mesh"] = {"nodes": 4, "gpus_per_node": 2, "shares": [1, 2]}
    done = launch(own, "topt", "--sbatch")
    ok(re.findall(r"--ntasks-per-node=\d --mpi=pmix topt run", done.stdout) ==
       [f"--ntasks-per-node={n} --mpi=pmix topt run" for n in (2, 3)] and "MASTER_ADDR" not in done.stdout, "topt run has a task for each GPU",
       done.stdout + done.stderr)
    for target, text, change in (("torchrun", "a share of its own, which only `topt run` supports", {}),
                                 ("accelerate", "accelerate starts equally many ranks on each node", {"shares": [2, 2]})):
        own["mesh"].update(change)
        done = launch(own, target)
        ok(done.returncode == 3 and text in done.stderr and done.stderr.count("\n") == 1, f"{target} refuses: {text}", done.stderr)
    done = run("launch", "plan.json", "--export")
    ok(done.returncode == 3 and "run: topt launch PLAN --sbatch" in done.stderr, "words for one srun are refused, with what to type", done.stderr)
    for field, value in (("gpus", 7), ("nodes", 0), ("name", 3), ("gpus_per_node", 0)):
        bad = json.loads(json.dumps(own))
        bad["hw"]["groups"][1][field] = value
        done = launch(bad, "topt", "--sbatch")
        ok(done.returncode == 1 and done.stderr.count("\n") == 1 and "group" in done.stderr, f"a group whose {field} is {value} is refused", done.stderr)


def check_recomputed_layers(llama):
    plan = staged(plan_of(llama, 1, 8, steps=16, recompute=True), [8] * 4)
    text = launch(plan, "megatron").stdout
    ok("--recompute-method uniform" in text and "--recompute-num-layers 1" in text, "Megatron-LM recomputes each layer", text)
    plan["uniform"]["recompute_layers"] = 3
    text = launch(plan, "megatron").stdout
    ok("--recompute-method block" in text and "--recompute-num-layers 3" in text, "... or the first of each stage", text)
    plan["uniform"]["recompute_modules"] = "core_attn+mlp"
    text = launch(plan, "megatron").stdout
    ok("--recompute-granularity selective --recompute-modules core_attn mlp \\" in text and "--recompute-method" not in text, "... or modules", text)
    done = launch(plan, "accelerate")
    ok(done.returncode != 0 and len(done.stderr.splitlines()) == 1, "a target without such flags refuses them", done.stderr)
    plan["uniform"]["recompute_modules"] = "op"
    done = launch(plan, "megatron")
    ok(done.returncode != 0 and "can't be told to recompute op" in done.stderr, "every second product is not Megatron-LM's", done.stderr)
    titan = plan_of(llama, 8, 1, zero=3, recompute=True, framework="torchtitan")
    titan["uniform"]["recompute_modules"] = "op"
    text = launch(titan, "torchtitan").stdout
    ok("activation_checkpoint import SelectiveAC" in text and "= SelectiveAC.Config()" in text, "... but torchtitan's", text)


def check_replicas(llama):
    def half(framework, zero):
        plan = plan_of(llama, 16, 1, zero, framework=framework)
        plan["uniform"]["shard"] = 8
        return plan
    text = launch(half("megatron", 1), "megatron").stdout
    ok("--num-distributed-optimizer-instances 2" in text, "Megatron-LM: instances of the distributed optimizer", text)
    text = launch(half("torchtitan", 3), "torchtitan").stdout
    ok("data_parallel_replicate_degree = 2" in text and "data_parallel_shard_degree = 8" in text, "torchtitan: replicas of shards", text)
    text = launch(half("pytorch", 3), "torchrun").stdout
    ok('\\"shard\\": 8' in text and "DP // SHARD, SHARD, TP" in text, "topt_apply.py: a mesh of replicas and shards", text[:2000])
    done = launch(half("pytorch", 3), "accelerate")
    ok(done.returncode == 3 and "sharded over all 16" in done.stderr, "who shards over all ranks refuses", done.stderr)
def check_experts(moe):
    plan = plan_of(moe, 4, 2, 1, framework="megatron")
    plan["uniform"].update(ep=4, etp=1, sequence_parallel=True)
    words = command_of(json.loads(launch(plan, "megatron").stdout)["files"][0]["text"])
    pairs = dict(zip(words, words[1:]))
    ok(pairs["--expert-model-parallel-size"] == "4" and pairs["--expert-tensor-parallel-size"] == "1" and
       pairs["--moe-token-dispatcher-type"] == "alltoall" and "--sequence-parallel" in words,
       "Megatron-LM shares experts out", words)
    env = run("launch", "plan.json", "--env").stdout
    ok(" TOPT_EP=4 TOPT_ETP=1" in env and "TOPT_CP" not in env, "and the environment says so", env)
    plan["uniform"].update(ep=16)
    done = launch(plan, "megatron")
    ok(done.returncode != 0 and "experts over 16 x 1 ranks of 8" in done.stderr, "over no more ranks than there are", done.stderr)


def check_contexts(llama):
    plan = plan_of(llama, 4, 2, 1, framework="megatron")
    plan["mesh"].update(nodes=2, gpus_per_node=8)
    plan["uniform"].update(cp=2, cp_comm="a2a")
    text = launch(plan, "megatron").stdout
    ok("--context-parallel-size 2" in text and "--cp-comm-type a2a" in text, "Megatron-LM shares positions out", text)
    env = run("launch", "plan.json", "--env").stdout
    ok(" TOPT_CP=2" in env and "TOPT_EP" not in env, "and the environment says so", env)
    plan["uniform"].update(cp_comm="p2p")
    text = launch(plan, "megatron").stdout
    ok("--context-parallel-size 2" in text and "--cp-comm-type p2p" in text, "or has keys and values go around", text)
    alone = plan_of(llama, 1, 2, 1, framework="megatron", overlap="ddp")
    ok("distributed-optimizer" not in launch(alone, "megatron").stdout, "one data rank alone shards nothing")
    alone["mesh"].update(nodes=1, gpus_per_node=4)
    alone["uniform"].update(cp=2, cp_comm="p2p")
    text = launch(alone, "megatron").stdout
    ok("--use-distributed-optimizer" in text and "--overlap-grad-reduce" in text and "--overlap-param-gather" in text,
       "context ranks of one data rank share the optimizer's state", text)
    plan["uniform"].update(cp_comm="a2a+p2p")
    done = launch(plan, "megatron")
    ok(done.returncode != 0 and "cp_comm: no such 'a2a+p2p'" in done.stderr, "in no other way than planned", done.stderr)


def check_numbers(gpt, llama):
    files = {}
    for target in TARGETS[:6]:
        plan = plan_of(llama, 8, 2, 1 if target in MEGATRON else 3, True, 2, framework=FRAMEWORK[target])
        done = launch(plan, target)
        files[target] = {f["name"]: f["text"] for f in json.loads(done.stdout)["files"]}
    config = json.loads(files["deepspeed"]["ds_config.json"])
    ok(config == {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
                  "zero_optimization": {"stage": 3}, "bf16": {"enabled": True},
                  "tensor_parallel": {"autotp_size": 2}}, "DeepSpeed's configuration", config)
    text = files["torchtitan"]["topt_torchtitan.py"]
    for line in ("llama3_8b()", "data_parallel_shard_degree = 8", "tensor_parallel_degree = 2",
                 "num_tokens_per_microbatch_per_dp_rank = 128", "num_tokens_per_train_step = 2048",
                 "activation_checkpoint = FullAC.Config()", 'fsdp_reshard_after_forward = "always"'):
        ok(line in text, f"torchtitan: {line}", text)
    words = command_of(files["megatron"]["launch.sh"])
    pairs = dict(zip(words, words[1:]))
    want = {"--tensor-model-parallel-size": "2", "--micro-batch-size": "2", "--global-batch-size": "32",
            "--num-layers": "32", "--hidden-size": "4096", "--num-attention-heads": "32", "--kv-channels": "128",
            "--num-query-groups": "8", "--ffn-hidden-size": "14336", "--vocab-size": "128256",
            "--recompute-granularity": "full", "--normalization": "RMSNorm"}
    ok(all(pairs.get(k) == v for k, v in want.items()) and "--use-distributed-optimizer" in words and
       "--swiglu" in words and "--nnodes=2" in words and "--nproc-per-node=8" in words,
       "Megatron-LM's arguments", words)
    ok("--sequence-parallel" not in words and "enable_sequence_parallel = False" in files["torchtitan"]["topt_torchtitan.py"],
       "neither has sequence parallelism where the plan has none", words)
    for target, line in (("megatron", "--sequence-parallel "), ("torchtitan", "enable_sequence_parallel = True")):
        plan = plan_of(llama, 8, 2, 1 if target in MEGATRON else 3, framework=FRAMEWORK[target])
        plan["uniform"]["sequence_parallel"] = True
        text = launch(plan, target).stdout
        ok(line in text, f"{target}: {line} where the plan has it", text)
    text = files["accelerate"]["accelerate.yaml"]
    for line in ("distributed_type: FSDP", "num_processes: 16", "num_machines: 2", "fsdp_version: 2",
                 "fsdp_reshard_after_forward: true", "fsdp_activation_checkpointing: false",
                 "parallelism_config_tp_size: 2", "parallelism_config_dp_shard_size: 8"):
        ok(line in text, f"accelerate: {line}", text)
    text = files["torchrun"]["topt_apply.py"]
    ok('"dp": 8, "tp": 2, "zero": 3, "recompute": 1' in text and '"micro_batch": 2, "accumulation": 2' in text
       and "PLAN = {}" not in text, "topt_apply.py has the plan's numbers", text[:2000])
    ok('"column": "q_proj k_proj v_proj query_key_value gate_proj up_proj fc1 fc_in dense_h_to_4h"' in text and
       '"row": "o_proj out_proj dense down_proj fc2 fc_out dense_4h_to_h"' in text, "and the planner's columns and rows", text[:2000])
    done = launch(plan_of(gpt, 4, framework="pytorch"), "torchrun")
    ok(json.loads(done.stdout)["complete"] is True and "exact" not in done.stdout, "of DDP all is said", done.stdout[:300])
    done = launch(plan_of(gpt, 4), "torchrun")
    ok(json.loads(done.stdout)["complete"] is False and "topt's own runtime" in done.stdout,
       "of a plan for topt's own runtime the answer says so", done.stdout[:300])


# Of YAML 1.1, as PyYAML reads them.
SCALARS = ((r"true|false", lambda v: v == "true"), (r"-?\d+", int), (r"-?\d+\.\d*([eE][-+]\d+)?", float))


def overrides_of(answer):
    """The overrides of a Primus experiment, by key."""
    text = next(f["text"] for f in answer["files"] if f["name"] == "primus.yaml")
    found = {}
    for key, value in re.findall(r"^      (\w+): (.*)$", text, re.M):
        kind = next((k for pattern, k in SCALARS if re.fullmatch(pattern, value)), lambda v: v.strip('"'))
        assert key not in found, key
        found[key] = kind(value)
    return found


def check_primus(gpt, llama):
    """Its experiment has Megatron-LM's arguments, what presets would set otherwise, and its own schedules."""
    def both(model, *ranks, **more):
        answers = {t: json.loads(launch(plan_of(model, *ranks, framework=t, **more), t).stdout) for t in MEGATRON}
        return command_of(answers["megatron"]["files"][0]["text"]), overrides_of(answers["primus"])

    words, found = both(llama, 8, 2, 1, steps=2, overlap="ddp")
    options = [w for w in words[words.index("pretrain_gpt.py"):] if w.startswith("--")]
    ok(set(found) == {w[2:].replace("-", "_") for w in options} - {"disable_bias_linear"} | {"add_bias_linear", "sequence_parallel"},
       f"{len(found)} keys are Megatron-LM's arguments", found)
    ok(found["tensor_model_parallel_size"] == 2 and found["norm_epsilon"] == 1e-05 and found["normalization"] == "RMSNorm" and
       found["overlap_grad_reduce"] is True and found["swiglu"] is True and found["add_bias_linear"] is False and
       found["hidden_dropout"] == 0.0 and found["sequence_parallel"] is False, "with their values, as YAML has them", found)
    _, found = both(gpt, 4, 1, 0)
    ok(found["use_distributed_optimizer"] is False and found["swiglu"] is False and found["add_bias_linear"] is True and
       found["untie_embeddings_and_output_weights"] is False and found["bf16"] is True,
       "what its presets set and the plan has not is said", found)
    _, found = both(gpt, 4, 1, 0, precision="fp16-mixed")
    ok(found["fp16"] is True and found["bf16"] is False, "fp16 in place of its bf16", found)
    plan = plan_of(llama, 8, 2, 1, framework="primus")
    plan["uniform"].update(recompute=True, recompute_modules="core_attn+mlp")
    answer = json.loads(launch(plan, "primus").stdout)
    ok("      recompute_modules: [core_attn, mlp]\n" in answer["files"][1]["text"] and overrides_of(answer)["recompute_granularity"] == "selective" and
       overrides_of(answer)["micro_batch_size"] == plan["uniform"]["micro_batch"], "modules that are recomputed, as a list", answer["files"][1]["text"])
    for schedule, chunks, name in (("zb-h1", 1, "zero-bubble"), ("zbv", 2, "zbv-formatted")):
        plan = staged(plan_of(llama, 1, 8, steps=16, framework="primus"), [8, 8, 9, 7] if chunks == 1 else [4] * 8, chunks, schedule)
        found = overrides_of(json.loads(launch(plan, "primus").stdout))
        ok(found["patch_primus_pipeline"] is True and found["pp_algorithm"] == name and found["overlap_grad_reduce"] is False and
           found["gradient_accumulation_fusion"] is True, f"schedule {schedule}: {name}", found)
        ok(found["pipeline_model_parallel_size"] == 4 and
           (found["pipeline_model_parallel_layout"] == "E" + "|".join("t" * n for n in (8, 8, 9, 7)) + "L" if chunks == 1 else
            found["num_virtual_stages_per_pipeline_rank"] == 2), "... and its stages", found)
    done = launch(staged(plan_of(llama, 1, 8, steps=16), [8] * 4, 1, "1f1b"), "primus")
    ok(done.returncode == 0 and "patch_primus" not in done.stdout, "1F1B is Megatron-LM's own", done.stdout + done.stderr)
    done = launch(staged(plan_of(llama, 1, 8, steps=16), [4] * 8, 2, "zbv"), "megatron")
    ok(done.returncode == 3 and "(--framework primus)" in done.stderr, "which has no zbv", done.stderr)
    done = launch(staged(plan_of(llama, 1, 8, steps=16, framework="primus"), [4] * 8, 2, "dualpipev"), "primus")
    ok(done.returncode == 3 and "no schedule dualpipev" in done.stderr, "a schedule that it has not is refused", done.stderr)
    script = launch(plan_of(llama, 8, 2, 1, framework="primus"), "primus", "--sbatch").stdout
    ok("export NNODES=2 GPUS_PER_NODE=8 MASTER_ADDR" in script and "primus.yaml" in script and "direct -- train pretrain --config" in script,
       "one script for Slurm", script)


def check_losses(gpt, llama):
    """What a target has a flag for, says of a script, or refuses."""
    for target, framework, loss, words in (
            ("megatron", "megatron", "fused", ("--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl te")),
            ("megatron", "megatron", "in-place", None), ("torchrun", "pytorch", "written", None),
            ("hf", "pytorch", "chunked", ("--use_liger_kernel True", '"fused_linear_cross_entropy": true', '"cross_entropy": false')),
            ("hf", "pytorch", "fused", ("--use_liger_kernel True", '"fused_linear_cross_entropy": false', '"cross_entropy": true')),
            ("torchrun", "pytorch", "chunked", ("# script: the loss is Liger's LigerFusedLinearCrossEntropyLoss",)),
            ("accelerate", "pytorch", "fused", ("# script: the loss is fused",)),
            ("deepspeed", "deepspeed", "chunked", ("LigerFusedLinearCrossEntropyLoss",)),
            ("torchtitan", "torchtitan", "chunked", None),
            ("torchtitan", "torchtitan", "fused", ("# differs: the loss is computed in chunks",)),
            ("torchtune", "pytorch", "chunked-saved", None), ("torchtune", "pytorch", "written", ("# differs: the loss is computed in chunks",))):
        pure = target == "torchtune"
        plan = plan_of(llama if pure or target == "torchtitan" else gpt, 8, 1, 1 if target in MEGATRON else 3, True,
                       precision="bf16" if pure else "bf16-mixed", framework=framework, loss=loss)
        launch(plan, target)
        done = run("launch", "plan.json", "--for", target)
        text = done.stdout.replace("\n#   ", " ")
        ok(done.returncode == 0 and (all(w in text for w in words) if words else not re.search("loss[- ](is|fusion)|liger", text)),
           f"{target}: the loss {loss}", done.stdout + done.stderr)
    for target, loss in (("hf", "chunked-saved"), ("torchtune", "fused"), ("torchtune", "chunked")):
        pure = target == "torchtune"
        plan = plan_of(llama if pure else gpt, 8, 1, 3, precision="bf16" if pure else "bf16-mixed", framework="pytorch", loss=loss)
        done = launch(plan, target)
        ok(done.returncode != 0 and "chunked-saved" in done.stderr and "--loss-kernel written" in done.stderr and done.stderr.count("\n") == 1,
           f"{target} refuses the loss {loss}", done.stdout + done.stderr)


def check_optimizers(llama):
    """Every optimizer for every target: it is named as the target has it, or the plan is refused by that name."""
    script = {"sgd": "torch.optim.SGD", "momentum": "torch.optim.SGD with momentum=0.9", "adam": "torch.optim.Adam",
              "adamw": "torch.optim.AdamW", "adafactor": "transformers.Adafactor", "adam8": "bitsandbytes.optim.AdamW8bit",
              "paged_adamw": "bitsandbytes.optim.PagedAdamW32bit", "paged_adamw8": "bitsandbytes.optim.PagedAdamW8bit",
              "row_wise_adagrad": "torchrec.optim.rowwise_adagrad.RowWiseAdagrad", "muon": "torch.optim.Muon"}
    names = {target: dict(script) for target in ("torchrun", "accelerate", "deepspeed")} | {
        "megatron": {"sgd": "--optimizer sgd --sgd-momentum 0", "momentum": "--optimizer sgd --sgd-momentum 0.9",
                     "adam": "--optimizer adam --weight-decay 0", "adamw": "--optimizer adam", "muon": "--optimizer muon",
                     "adamw_bf16": "--optimizer adam --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"},
        "torchtitan": {"adam": "gets no weight decay", "adamw": ""},
        "hf": {"sgd": "--optim sgd", "momentum": "--optim sgd --optim_args momentum=0.9", "adam": "--optim adamw_torch_fused --weight_decay 0",
               "adamw": "--optim adamw_torch_fused", "adafactor": "--optim adafactor", "adam8": "--optim adamw_8bit",
               "paged_adamw": "--optim paged_adamw_32bit", "paged_adamw8": "--optim paged_adamw_8bit"},
        "torchtune": {name: "optimizer._component_=" + script[name] for name in ("sgd", "adam", "adamw")},
        "topt": dict.fromkeys(("sgd", "momentum", "adam", "adamw", "row_wise_adagrad"), "")}
    names["deepspeed"]["muon"] = '"type": "Muon"'
    for target, said in names.items():
        pure = target == "torchtune"
        for optimizer in (*script, "adamw_bf16", "nosuch"):
            plan = plan_of(llama, 4, 1, 1 if target in MEGATRON else 3 if target in ("torchtitan", "torchtune") else 0,
                           precision="bf16" if pure else "bf16-mixed", framework=FRAMEWORK.get(target), optimizer=optimizer)
            done = launch(plan, target)
            if optimizer in said:
                text = re.sub(r"\s+", " ", "\n".join(f["text"] for f in json.loads(done.stdout)["files"]).replace("\n#   ", " ")
                              ) if done.returncode == 0 else ""
                good = done.returncode == 0 and re.search(re.escape(said[optimizer]) + r"(?![\w.]| with| --sgd| --weight_?-?decay| --optim_args)", text)
            else:
                good = done.returncode == 3 and f"{target} has no optimizer {optimizer};" in done.stderr and "--optimizer adamw" in done.stderr
            ok(good, f"{target}: {optimizer}", done.stdout + done.stderr)


def check_trainers(gpt, llama):
    """Hugging Face's Trainer and torchtune."""
    plan = plan_of(gpt, 8, 1, 2, True, 2, per_node=4, framework="pytorch")
    files = {f["name"]: f["text"] for f in json.loads(launch(plan, "hf").stdout)["files"]}
    words = command_of(files["launch.sh"])
    pairs = dict(zip(words, words[1:]))
    ok(pairs["--per_device_train_batch_size"] == "2" and pairs["--gradient_accumulation_steps"] == "2" and pairs["--bf16"] == "True" and
       pairs["--gradient_checkpointing"] == "True" and pairs["--optim"] == "adamw_torch_fused" and "--nnodes=2" in words and
       "--fsdp" in words and words[-1] == "$@", "Trainer's arguments", words)
    ok(json.loads(files["fsdp.json"])["reshard_after_forward"] is False and json.loads(files["fsdp.json"])["version"] == 2 and
       json.loads(files["accelerator.json"]) == {"gradient_accumulation_kwargs": {"sync_each_batch": True}}, "and its files", files)
    done = launch(plan_of(gpt, 4, framework="pytorch"), "hf")
    ok("--fsdp" not in done.stdout and json.loads(done.stdout)["complete"], "DDP by Trainer, all of it", done.stdout + done.stderr)
    plan = plan_of(llama, 8, 2, 3, True, 2, precision="bf16", framework="pytorch")
    words = command_of(json.loads(launch(plan, "torchtune").stdout)["files"][0]["text"])
    want = {"batch_size=2", "gradient_accumulation_steps=2", "data_parallel_shard_dim=8", "tensor_parallel_dim=2", "dtype=bf16",
            "fsdp_reshard_after_forward=True", "enable_activation_checkpointing=True", "tokenizer.max_seq_len=64",
            "tensor_parallel_plan._component_=torchtune.models.llama3.base_llama_tp_plan", "optimizer._component_=torch.optim.AdamW"}
    ok(want <= set(words) and words[:4] == ["tune", "run", "--nnodes=2", "--nproc-per-node=8"] and
       "full_finetune_distributed --config llama3_1/8B_full" in " ".join(words) and words[-1] == "$@", "torchtune's line", words)
    half = {target: launch(plan_of(gpt, 8, precision="fp16-mixed", framework=FRAMEWORK[target]), target) for target in TARGETS}
    texts = {t: {f["name"]: f["text"] for f in json.loads(h.stdout)["files"]} for t, h in half.items() if h.returncode == 0}
    ok(set(texts) == {"torchrun", "hf", "accelerate", "deepspeed", "megatron", "primus"}, "fp16 by those that scale the loss", {t: h.stderr for t, h in half.items()})
    ok("--fp16 True" in texts["hf"]["launch.sh"] and "mixed_precision: fp16" in texts["accelerate"]["accelerate.yaml"] and
       " --fp16" in "\n".join(texts["megatron"].values()) and "--bf16" not in str(texts["megatron"]) and
       any('"fp16": {' in text and '"bf16"' not in text for text in texts["deepspeed"].values()) and
       '"precision": "fp16-mixed"' in texts["torchrun"]["topt_apply.py"], "in their words", texts)
    ok(all(half[t].returncode == 3 and "fp16" in half[t].stderr + "fp16" * (t == "torchtune") and
           "--precision f32" in half[t].stderr for t in set(half) - set(texts)), "the others refuse it", {t: h.stderr for t, h in half.items()})
    low = {(t, p): launch(plan_of(llama if t == "torchtitan" else gpt, 8, low=p, framework=FRAMEWORK[t]), t)
           for t in TARGETS for p in ("delayed", "tensorwise", "rowwise", "blockwise", "mxfp8", "nvfp4")}
    texts = {k: "\n".join(f["text"] for f in json.loads(d.stdout)["files"]) + "\n".join(json.loads(d.stdout)["script"])
             for k, d in low.items() if d.returncode == 0}
    ok(set(texts) == {(t, p) for t in MEGATRON for p in ("delayed", "tensorwise", "blockwise", "mxfp8", "nvfp4")} - {("primus", "nvfp4")} |
       {("torchrun", p) for p in ("tensorwise", "rowwise", "mxfp8")} | {("torchtitan", p) for p in ("rowwise", "mxfp8", "nvfp4")},
       "few bits by those that have them", {k: d.stderr for k, d in low.items()})
    ok("--fp8-format hybrid --fp8-recipe delayed" in texts["megatron", "delayed"] and "--bf16" in texts["megatron", "delayed"] and
       "--fp8-format e4m3 --fp8-recipe blockwise" in texts["megatron", "blockwise"] and
       "--fp4-format e2m1 --fp4-recipe nvfp4" in texts["megatron", "nvfp4"] and "--fp8" not in texts["megatron", "nvfp4"] and
       'from_recipe_name("tensorwise")' in texts["torchrun", "tensorwise"] and
       'Float8LinearConverter.Config(recipe_name="rowwise", filter_fqns=["lm_head"]' in texts["torchtitan", "rowwise"] and
       "MXFP8LinearConverter" in texts["torchtitan", "mxfp8"] and 'NVFP4LinearConverter.Config(fqns=["layers"]' in texts["torchtitan", "nvfp4"],
       "in their words", texts)
    ok(all(d.returncode == 3 and ("scaling" in d.stderr or "made for" in d.stderr) for k, d in low.items() if k not in texts), "the others refuse them",
       {k: d.stderr for k, d in low.items()})
    done = launch(plan_of(llama, precision="f32", framework="pytorch"), "torchtune")
    ok("tune run full_finetune_single_device --config llama3_1/8B_full_single_device" in done.stdout and "dtype=fp32" in done.stdout and
       "nproc" not in done.stdout, "on one GPU", done.stdout + done.stderr)
    lora = model_of(f"{ROOT}/deploy/quickstart/llama-3.1-8b.json", 32, 64, "--train", "lora:8:q_proj,o_proj")
    few = model_of(f"{ROOT}/deploy/quickstart/llama-3.1-8b.json", 32, 64, "--train", "lora+4bit")
    plan = plan_of(lora, 8, 1, 3, precision="bf16", framework="pytorch")
    done = launch(plan, "torchtune")
    words = command_of(json.loads(done.stdout)["files"][0]["text"]) if done.returncode == 0 else []
    ok("lora_finetune_distributed --config llama3_1/8B_lora" in " ".join(words) and {
        "model.lora_attn_modules=[q_proj,output_proj]", "model.lora_rank=8", "model.lora_alpha=8", "model.apply_lora_to_mlp=False"} <= set(words),
       "adapters by torchtune", done.stderr or words)
    names = set(listed("torchtune")[1])
    with open(f"{ROOT}/solver/launch/torchtune.c", encoding="utf-8") as f:
        rows = re.findall(r'\{"([a-z0-9_]+/[0-9.]+B)",[-0-9, ]+([A-Z_| ]+)\}', f.read())
    recipes = {"FULL": "full_finetune_distributed --config {}_full", "LORA": "lora_finetune_distributed --config {}_lora",
               "FULL_ONE": "full_finetune_single_device --config {}_full_single_device",
               "LORA_ONE": "lora_finetune_single_device --config {}_lora_single_device"}
    said = {recipe.format(name) for name, has in rows for word, recipe in recipes.items() if has == "ALL" or word in has.split(" | ")}
    ok(len(rows) > 15 and said <= names, f"{len(said)} configurations are torchtune's", said - names)
    for target, plan, words in (
            ("torchtune", plan_of(few, 4, 1, 3, precision="bf16", framework="pytorch"), ("lora+4bit", "--framework pytorch")),
            ("hf", plan_of(gpt, 4, 2, 3, framework="pytorch"), ("tensor parallelism", "topt launch --for torchrun")),
            ("hf", plan_of(gpt, 4, 1, 1, framework="pytorch"), ("ZeRO-1", "topt launch --for torchrun")),
            ("hf", plan_of(gpt, 4, framework="pytorch", optimizer="row_wise_adagrad"), ("row_wise_adagrad", "--framework pytorch")),
            ("torchtune", plan_of(gpt, 4, 1, 3, precision="bf16", framework="pytorch"), ("this model's shape", "--for torchrun")),
            ("torchtune", plan_of(llama, 4, 1, 3, framework="pytorch"), ("bf16-mixed", "--framework pytorch --precision bf16")),
            ("torchtune", plan_of(llama, 4, 1, 1, precision="bf16", framework="pytorch"), ("ZeRO-1", "--for torchrun")),
            ("torchtune", plan_of(llama, 4, 1, 0, precision="bf16", framework="pytorch"), ("ZeRO-0", "--for torchrun"))):
        done = launch(plan, target)
        ok(done.returncode == 3 and done.stderr.count("\n") == 1 and all(w in done.stderr for w in words), f"{target} refuses: {words[0]}",
           f"{done.returncode} {done.stderr}")


def config_of(name, seq=64, **config):
    with open(name, "w", encoding="utf-8") as f:
        json.dump({"hidden_act": "silu", "rms_norm_eps": 1e-5, "num_key_value_heads": 8, "max_position_embeddings": 4096} | config, f)
    return model_of(name, 16, seq)


def check_latent(shape):
    """DeepSeek-V3 in Megatron-LM's arguments, which its own importer reads as the same layers."""
    yarn = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
    shape = shape | {"model_type": "deepseek_v3", "n_group": 8, "topk_group": 4, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
                     "norm_topk_prob": True, "routed_scaling_factor": 2.5, "rope_theta": 10000.0}
    model = config_of("deepseek.json", **shape, rope_scaling=yarn)
    files = json.loads(launch(plan_of(model, 8, 1, 1), "megatron").stdout)
    words = command_of(files["files"][0]["text"])
    pairs = dict(zip(words, words[1:]))
    want = {"--moe-layer-freq": "([0]*3+[1]*58)", "--ffn-hidden-size": "18432", "--moe-ffn-hidden-size": "2048", "--kv-lora-rank": "512",
            "--moe-shared-expert-intermediate-size": "2048", "--qk-head-dim": "128", "--qk-pos-emb-head-dim": "64", "--rotary-scaling-factor": "40",
            "--mscale": "1", "--mscale-all-dim": "1", "--moe-router-group-topk": "4", "--moe-router-topk-scaling-factor": "2.5", "--rope-type": "yarn"}
    ok(want.items() <= pairs.items() and not any("architecture" in line for line in files["script"]), "DeepSeek-V3 in Megatron-LM's arguments", words)
    strange = option_names(words[words.index("pretrain_gpt.py"):]) - listed("megatron")[1]
    ok(not strange, "all of which it has", strange)
    with open("latent.sh", "w", encoding="utf-8") as f:
        f.write(files["files"][0]["text"])
    same = ("name", "kind", "features", "features_unit", "heads", "head_dim", "v_head_dim", "top_k", "groups", "top_groups", "factor")
    layers = [[{k: o.get(k) for k in same} for o in m["ops"] if "layer" in o] for m in (model, model_of("latent.sh", 16, 64))]
    ok(layers[0] == layers[1], "read back as the same layers", [a for a, b in zip(*layers) if a != b][:3])
    further = model_of("deepseek.json", 16, 64, "--mtp", "1")
    done = launch(plan_of(further, 8, 1, 1), "megatron").stdout
    ok("--mtp-num-layers 1" in done and "--num-layers 61" in done and "--kv-lora-rank 512" in done, "with a module that predicts a further token", done)
    for other in ({"rope_scaling": yarn | {"beta_fast": 16}}, {"rope_scaling": yarn, "norm_topk_prob": False}, {"rope_scaling": yarn, "hidden_act": "gelu"}):
        done = json.loads(launch(plan_of(config_of("other.json", **(shape | other)), 8, 1, 1), "megatron").stdout)
        ok(any("architecture are not written" in line for line in done["script"]), f"but not with {list(other)[-1]}", done["script"])


def check_shapes():
    """Families that are written in other operators: their shape is found all the same."""
    llama = config_of("llama31.json", architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=4096,
                      intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, vocab_size=128256,
                      rope_theta=500000.0, rope_scaling={"factor": 8.0, "low_freq_factor": 1.0, "rope_type": "llama3",
                                                         "high_freq_factor": 4.0,
                                                         "original_max_position_embeddings": 8192})
    done = launch(plan_of(llama, 8, 2, 1), "megatron")
    ok("--rope-scaling-factor 8" in done.stdout and "--rotary-base 500000" in done.stdout and
       "--num-layers 32" in done.stdout, "Llama 3.1's positions in Megatron-LM's arguments", done.stdout + done.stderr)
    large = config_of("llama405.json", architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=16384,
                      intermediate_size=53248, num_hidden_layers=126, num_attention_heads=128, vocab_size=128256)
    done = launch(plan_of(large, 8, 2, 3, framework="torchtitan"), "torchtitan")
    low = launch(plan_of(large, 8, 2, 3, low="rowwise", framework="torchtitan"), "torchtitan")
    ok('model_registry(\\"405B\\")' in done.stdout and "compile.enable = False" in done.stdout and json.loads(done.stdout)["differs"] == [] and
       'model_registry(\\"405B\\")' in low.stdout and "compile.enable = True" in low.stdout,
       "torchtitan's 405B in the plan's precision, not in that of its configuration", done.stdout + done.stderr)
    gelu = config_of("neox.json", model_type="gpt_neox", hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, intermediate_size=4096,
                     vocab_size=50304, hidden_act="gelu", rotary_pct=1.0, use_parallel_residual=False)
    for model, words in ((gelu, ["the tanh form of gelu"]), (model_of(f"{ROOT}/deploy/quickstart/gpt-small.json", 16, 64), [])):
        done = launch(plan_of(model, 8, 1, 1), "megatron")
        said = [line for line in json.loads(done.stdout)["differs"] if "gelu" in line]
        ok(len(said) == len(words) and all(w in line for w, line in zip(words, said)), f"Megatron-LM's gelu beside a bias: {said}", done.stdout)
    qwen = config_of("qwen3.json", architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=1024,
                     intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, head_dim=128,
                     vocab_size=151936, tie_word_embeddings=True, rope_theta=1000000)
    done = launch(plan_of(qwen, 4, 2, 3), "torchtitan")
    ok("qwen3_0_6b()" in done.stdout, "torchtitan's own configuration of Qwen3 0.6B", done.stdout + done.stderr)
    done = launch(plan_of(qwen, 4, 2, 1), "megatron")
    ok("--qk-layernorm" in done.stdout and "--num-layers 28" in done.stdout and "--kv-channels 128" in done.stdout,
       "and its shape in Megatron-LM's arguments", done.stdout + done.stderr)
    mixtral = config_of("mixtral.json", architectures=["MixtralForCausalLM"], model_type="mixtral", hidden_size=4096,
                        intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, vocab_size=32000,
                        rope_theta=1000000.0, num_local_experts=8, num_experts_per_tok=2)
    done = launch(plan_of(mixtral, 4, 2, 1), "megatron")
    ok("--num-experts 8" in done.stdout and "--moe-router-topk 2" in done.stdout and
       "--sequence-parallel" in done.stdout, "Mixtral's experts", done.stdout + done.stderr)
    half = launch(plan_of(mixtral, 4, 2, 1, precision="fp16-mixed", framework="megatron"), "megatron")
    ok("--moe-grouped-gemm" in done.stdout and half.returncode == 0 and "--moe-grouped-gemm" not in half.stdout,
       "whose products are grouped in bf16, the one type that arguments.py takes", half.stdout + half.stderr)
    check_experts(mixtral)
    done = launch(plan_of(mixtral, 4, 2, 3), "torchrun")
    ok(done.returncode == 3 and "experts" in done.stderr, "which PyTorch does not split", done.stderr)


def check_trained():
    """What a plan does not train is frozen in the launch, or the launch is refused."""
    def model(train):
        done = run("import", f"{ROOT}/deploy/quickstart/llama-3.1-8b.json", "--batch", "32", "--seq", "64", "--train", train, "-o", "model.json")
        assert done.returncode == 0, done.stderr
        with open("model.json", encoding="utf-8") as f:
            return json.load(f)

    lora, few, ends = model("lora:8:q_proj,v_proj"), model("lora+4bit"), model("h31.*")
    done = launch(plan_of(lora, 8, 1, 3, framework="pytorch"), "torchrun")
    ok('"train": "lora:8:q_proj,v_proj", "trained": 3407872}' in done.stdout.replace('\\"', '"') and
       "lora_alpha=" in done.stdout, "adapters are in topt_apply.py, with the number that peft prints", done.stdout[:1500])
    done = run("launch", "plan.json", "--env")
    ok(" TOPT_TRAIN=lora:8:q_proj,v_proj" in done.stdout, "and in the environment", done.stdout + done.stderr)
    for target in ("accelerate", "deepspeed", "hf"):
        done = launch(plan_of(few, 8, 1, 3, framework=FRAMEWORK[target]), target)
        ok("topt_apply.trainable(model)" in done.stdout and "topt_apply.loading()" in done.stdout and
           '"trained": 41943040' in done.stdout.replace('\\"', '"'), f"QLoRA by {target}", done.stdout[:1500] + done.stderr)
    for target, kind in (("megatron", 1), ("torchtitan", 3)):
        done = launch(plan_of(lora, 8, 1, kind, framework=FRAMEWORK[target]), target)
        ok(done.returncode == 3 and "trains all parameters" in done.stderr and "--framework pytorch --train lora:8:q_proj,v_proj" in done.stderr,
           f"{target} trains all, and says so", done.stdout[:300] + done.stderr)
    done = launch(plan_of(ends, 8, 1, 3, framework="pytorch"), "torchrun")
    ok("freezes all but h31.*" in done.stdout, "parameters by name", done.stdout[:500] + done.stderr)
    done = launch(plan_of(few, 4, 2, 3, framework="pytorch"), "torchrun")
    ok(done.returncode == 3 and "tensor parallelism" in done.stderr, "adapters are not split", done.stderr)
    for zero in (2, 3):
        done = launch(plan_of(model("lora+8bit"), 8, 1, zero, framework="pytorch"), "torchrun")
        ok(done.returncode == 3 and "8-bit" in done.stderr, f"8 bits are not sharded by ZeRO-{zero}", done.stderr)
    done = launch(plan_of(model("lora+8bit"), 8, 1, 1, framework="pytorch"), "torchrun")
    ok(done.returncode == 0, "without shards they fit", done.stderr)
    done = launch(plan_of(model("lora+8bit"), 8, 1, 2, framework="deepspeed"), "deepspeed")
    ok(done.returncode == 0, "DeepSpeed's ZeRO-2 shards no parameters", done.stderr)
    bad = plan_of(lora, 8, framework="pytorch")
    bad["model"]["train"] = "lora'; reboot; '"
    done = launch(bad, "torchrun")
    ok(done.returncode == 1 and "model.train" in done.stderr, "no shell reads what is trained", done.stderr)


def check_families():
    """A framework that has no such model says so."""
    bert = config_of("bert.json", architectures=["BertForMaskedLM"], model_type="bert", hidden_size=768, intermediate_size=3072,
                     num_hidden_layers=12, num_attention_heads=12, vocab_size=30522, type_vocab_size=2, hidden_act="gelu")
    done = launch(plan_of(bert, 4, 1, 1), "megatron")
    ok(done.returncode == 3 and "looks to both sides" in done.stderr, "Megatron-LM does not train BERT", done.stdout + done.stderr)
    done = launch(plan_of(bert, 4, 1, 3), "torchtitan")
    ok(done.returncode == 3 and "differs in: layers 12, not " in done.stderr, "torchtitan has none, and its nearest differs in", done.stderr)
    bloom = config_of("bloom.json", architectures=["BloomForCausalLM"], model_type="bloom", hidden_size=1024, n_layer=24, n_head=16,
                      vocab_size=250880)
    done = launch(plan_of(bloom, 4, 2, 3), "torchrun")
    ok(done.returncode == 3 and "ALiBi" in done.stderr, "PyTorch does not split Bloom", done.stdout[:200] + done.stderr)
    vit = config_of("vit.json", architectures=["ViTForImageClassification"], model_type="vit", hidden_size=768, intermediate_size=3072,
                    num_hidden_layers=12, num_attention_heads=12, image_size=224, patch_size=16, hidden_act="gelu", seq=1)
    done = launch(plan_of(vit, 4, 1, 1), "megatron")
    ok(done.returncode == 3 and "it reads no tokens" in done.stderr, "nor ViT", done.stdout + done.stderr)
    llama = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_key_value_heads": 8, "vocab_size": 128256, "rope_theta": 500000.0}
    one = config_of("llama32.json", **llama, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32)
    done = launch(plan_of(one, 4, 1, 3), "torchtitan")
    ok('model_registry(\\"1B\\")' in done.stdout, "a flavor of torchtitan's without a configuration of its own", done.stdout + done.stderr)
    near = config_of("near.json", **llama, hidden_size=4096, intermediate_size=14336, num_hidden_layers=30, num_attention_heads=32)
    done = launch(plan_of(near, 4, 1, 3), "torchtitan")
    ok(done.returncode == 3 and "llama3_8b differs in: layers 30, not 32;" in done.stderr, "of no flavor the fields that differ", done.stderr)
    for name, family, shape in (
            ("deepseek_v3_671b", "deepseek_v3", {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61, "hidden_size": 7168,
             "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_attention_heads": 128, "num_key_value_heads": 128,
             "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536,
             "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "vocab_size": 129280}),
            ("gpt_oss_20b", "gpt_oss", {"architectures": ["GptOssForCausalLM"], "num_hidden_layers": 24, "hidden_size": 2880, "intermediate_size": 2880,
             "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4,
             "vocab_size": 201088, "sliding_window": 128})):
        done = launch(plan_of(config_of(name + ".json", model_type=family, **shape), 8, 1, 3), "torchtitan")
        ok(name + "()" in done.stdout, f"torchtitan's own {name}", done.stdout[:300] + done.stderr)
        if family == "deepseek_v3":
            check_latent(shape)


def check_command_line(gpt):
    plan = plan_of(gpt, 4, 1, 1, framework="pytorch", steps=2)
    done = launch(plan, "torchrun", "-o", "out")
    ok(done.returncode == 0 and done.stdout.split() == ["out/launch.sh", "out/topt_apply.py"], "files are written",
       done.stdout + done.stderr)
    ok(subprocess.run(["sh", "-n", "out/launch.sh"], check=False).returncode == 0, "the command is a shell's")
    usual = run("launch", "plan.json")
    ok(usual.returncode == 0 and usual.stdout == run("launch", "plan.json", "--for", "torchrun").stdout,
       "without --for it is of the plan's framework", usual.stderr)
    done = run("launch", "plan.json", "--sbatch")
    ok(all(line in done.stdout for line in ("#SBATCH --nodes=1\n", "#SBATCH --gpus-per-node=4\n", "#SBATCH --ntasks-per-node=1\n"))
       and done.stdout.endswith('srun --nodes=1 --ntasks=1 --ntasks-per-node=1 sh "$files/launch.sh" "$@"\n') and
       subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False).returncode == 0, "a job's script", done.stdout[:600])
    grows = "expandable_segments:True"
    ok(grows in done.stdout and grows in usual.stdout, "in which PyTorch's allocator grows its segments, too", done.stdout[:600])
    done = run("launch", "plan.json", "--env")
    ok(done.stdout.startswith("env ") and done.stdout.count("\n") == 1 and " TOPT_FSDP=1 " in done.stdout and
       " TOPT_ACCUMULATION=2 " in done.stdout, "the environment is one line for srun", done.stdout + done.stderr)
    ran = subprocess.run(done.stdout.split() + ["sh", "-c", "echo $TOPT_DP $TOPT_MICRO_BATCH"],
                         capture_output=True, text=True, check=False)
    ok(ran.stdout == "4 4\n", "which starts a program with it", ran.stdout + ran.stderr)
    ran = subprocess.run(["sh", "-c", f'eval "$({TOPT} launch plan.json --export)"; echo $TOPT_TORCHRUN'],
                         capture_output=True, text=True, check=False)
    ok(ran.stdout == "--nnodes=1 --nproc-per-node=4 --standalone\n", "TOPT_TORCHRUN is torchrun's arguments",
       ran.stdout + ran.stderr)
    slurm = {"SLURM_JOB_ID": "12345", "SLURM_JOB_NODELIST": "gpu[03-04,7]n,login"}
    with open("plan.json", encoding="utf-8") as f:
        two = json.load(f) | {"mesh": {"nodes": 2, "gpus_per_node": 2}}
    with open("two.json", "w", encoding="utf-8") as f:
        json.dump(two, f)
    done = run("launch", "two.json", "--env", **slurm)
    ok(done.stdout.startswith("--nodes=2 --ntasks=4 --ntasks-per-node=2 --overcommit env MASTER_ADDR=gpu03n MASTER_PORT=22345 TOPT_PLAN_ID="),
       "in a job: a task for each GPU, and where they meet", done.stdout + done.stderr)
    done = run("launch", "two.json", "--env", "--export", **slurm)
    ok("export TOPT_TORCHRUN='--nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-id=12345 --rdzv-endpoint=gpu03n:22345'\n"
       in done.stdout and "export TOPT_SRUN='--nodes=2 --ntasks=2 --ntasks-per-node=1'\n" in done.stdout,
       "--env --export: lines for eval, with srun's and torchrun's words", done.stdout + done.stderr)
    done = run("launch", "--env", TOPT_PLAN="plan.json")
    ok(done.returncode == 0 and "TOPT_DP=4" in done.stdout, "the plan may be in the environment", done.stderr)
    job = {"TOPT_PLAN": "p-0123456789abcdef", "TOPT_PLAN_ID": "p-0123456789abcdef", "TOPT_DP": "2", "TOPT_TP": "1",
           "TOPT_TORCHRUN": "--nnodes=1 --standalone"}
    done = run("launch", "--env", **job)
    ok(done.stdout == "env TOPT_PLAN_ID=p-0123456789abcdef TOPT_DP=2 TOPT_TP=1\n",
       "in a job whose plan is an id it is what the job was told", done.stdout + done.stderr)
    done = run("launch", "--for", "torchrun", **job)
    ok(done.returncode == 1 and "p-0123456789abcdef" in done.stderr, "files take the plan itself", done.stderr)
    for args, words in ((["plan.json", "--for", "slurm"], "unknown target"), (["plan.json", "--sbatch", "--export"], "leave out --sbatch"),
                        (["plan.json", "--for", "torchrun", "--env"], "leave out --for"), (["none.json", "--env"], "none.json"),
                        (["model.json", "--env"], "topt-plan/1"), (["plan.json", "--env", "-o", "x"], "-o")):
        done = run("launch", *args)
        ok(done.returncode in (1, 2) and words in done.stderr and done.stderr.count("\n") == 1,
           "refused: topt launch " + " ".join(args), done.stderr)
    for field, value in (("id", "p-1'; reboot; '"), ("framework", "x\ny")):
        bad = dict(plan)
        bad[field] = value
        done = launch(bad, "torchrun")
        ok(done.returncode == 1 and field in done.stderr, f"no shell reads a plan's {field}", done.stderr)
    for path, value in ((("uniform", "micro_batch"), 1 << 30), (("uniform", "dp"), 0), (("uniform", "tp"), 3), (("settings", "precision"), "fp8"),
                        (("mesh", "nodes"), "2"), (("model", "ops"), 1), (("settings", "optimizer"), None)):
        bad = json.loads(json.dumps(plan))
        bad[path[0]][path[1]] = value
        done = launch(bad, "megatron")
        ok(done.returncode in (1, 3) and done.stderr.count("\n") == 1, f"refused: {'.'.join(path)} {value!r}",
           done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        gpt = model_of(f"{ROOT}/deploy/quickstart/gpt-small.json", 32, 64)
        llama = model_of(f"{ROOT}/deploy/quickstart/llama-3.1-8b.json", 32, 64)
        moe = model_of(f"{ROOT}/deploy/quickstart/moe.json", 32, 64)
        cnn = model_of(f"{ROOT}/deploy/quickstart/cnn.json", 32, 1)
        check_numbers(gpt, llama)
        check_primus(gpt, llama)
        check_stages(llama)
        check_components(llama)
        check_replicas(llama)
        check_recomputed_layers(llama)
        check_contexts(llama)
        check_optimizers(llama)
        check_trainers(gpt, llama)
        check_losses(gpt, llama)
        check_refusals(gpt, llama)
        check_command_line(gpt)
        check_shapes()
        check_trained()
        check_families()
        check_keys([gpt, llama, moe, cnn])
        os.chdir("/")
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


main()
