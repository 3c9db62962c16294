"""launch_test.py ROOT TOPT - what `topt launch` writes: every key stands in the list of its
framework, the numbers are the plan's, and what can't be obeyed is refused with a question.
"""
import ast
import contextlib
import inspect
import itertools
import json
import os
import shlex
import subprocess
import sys
import tempfile

ROOT, TOPT = sys.argv[1], sys.argv[2]
TARGETS = ("torchrun", "accelerate", "deepspeed", "megatron", "torchtitan")
FRAMEWORK = {t: t for t in TARGETS} | {"torchrun": "pytorch", "accelerate": "pytorch"}
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

def model_of(path, batch, seq):
    done = run("import", path, "--batch", str(batch), "--seq", str(seq), "-o", "model.json")
    assert done.returncode == 0, done.stderr
    with open("model.json", encoding="utf-8") as f:
        return json.load(f)


def plan_of(model, dp=1, tp=1, zero=0, recompute=False, steps=1, per_node=8, precision="bf16-mixed",
            framework=None, optimizer="adamw", overlap=None):
    ranks = dp * tp
    nodes = max(1, ranks // per_node)
    settings = {"dtype": "f32" if precision == "f32" else "bf16", "optimizer": optimizer, "granule_bytes": 65536,
                "micro_batches": steps, "precision": precision}
    if overlap:
        settings["overlap"] = overlap
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


def keys_of_command(text, target):
    """(target, key) of each option: torchrun's own end where the program begins."""
    command = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    words = shlex.split(command.replace("\\\n", " "))
    if words[0] != "torchrun":
        return {(target, name) for name in option_names(words)}
    end = next(i for i, w in enumerate(words) if w.endswith(".py") or w == "-m")
    found = {("torchrun", name) for name in option_names(words[:end])}
    if words[end] == "-m":
        found.add((target, "-m " + words[end + 1]))
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
    own = set().union(*map(dir, (str, list, dict, set, contextlib.ExitStack, os.environ, contextlib, inspect)))
    plain = {"torch", "torch.nn", "torch.distributed", "torch.bfloat16", "torch.float32", "torch.device"}
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
        if name == "launch.sh":
            found |= keys_of_command(text, target)
        elif name.endswith(".yaml"):
            found |= {(target, key) for key in keys_of_yaml(text)}
        elif name.endswith(".json"):
            found |= {(target, key) for key in keys_of_json(json.loads(text))}
        elif name == "topt_apply.py":
            found |= {(target, key) for key in keys_of_torch(text)}
        else:
            found |= {(target, key) for key in keys_of_titan(text)}
    return found


def unknown(keys, lists):
    """Those that their framework does not read; methods are looked for in any class."""
    methods = {"." + key.rsplit(".", 1)[-1] for key in lists["torchrun"] if "(" not in key}
    return {(target, key) for target, key in keys
            if key not in lists[target] and not (key.startswith(".") and key in methods)
            and "MODEL" not in key}


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
            asked = asked and ("; ask: topt plan MODEL" in done.stderr or "topt launch --for" in done.stderr)
            continue
        if done.returncode:
            ok(False, f"{target} takes the plan or refuses it", done.stderr)
            return
        answer = json.loads(done.stdout)
        written[target] += 1
        emitted |= keys_of(answer)
        pins.add((target, answer["pin"]["repository"], answer["pin"]["commit"], answer["pin"]["date"]))
    ok(min(written.values()) > 5 and refused > 5, f"{sum(written.values())} answers, {refused} refusals", written)
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
    refuses(own, "torchrun", "only `topt run` obeys", "--framework pytorch")
    uneven = plan_of(gpt, 4)
    uneven["uniform"]["micro_batch"] += 1
    refuses(uneven, "deepspeed", "batch 32 is not", "ask: topt plan MODEL --hw a100-80-dgx --batch 32 --seq 64")
    done = launch(plan_of(llama, 1, 16), "megatron")
    ok(done.returncode == 0 and "--num-query-groups 8" in done.stdout,
       "Megatron-LM takes tensor parallelism that key-value heads divide", done.stderr)


def check_numbers(gpt, llama):
    files = {}
    for target in TARGETS:
        plan = plan_of(llama, 8, 2, 1 if target == "megatron" else 3, True, 2, framework=FRAMEWORK[target])
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
    words = shlex.split(files["megatron"]["launch.sh"].split("torchrun ", 1)[1].replace("\\\n", " "))
    pairs = dict(zip(words, words[1:]))
    want = {"--tensor-model-parallel-size": "2", "--micro-batch-size": "2", "--global-batch-size": "32",
            "--num-layers": "32", "--hidden-size": "4096", "--num-attention-heads": "32", "--kv-channels": "128",
            "--num-query-groups": "8", "--ffn-hidden-size": "14336", "--vocab-size": "128256",
            "--recompute-granularity": "full", "--normalization": "RMSNorm"}
    ok(all(pairs.get(k) == v for k, v in want.items()) and "--use-distributed-optimizer" in words and
       "--swiglu" in words and "--nnodes=2" in words and "--nproc-per-node=8" in words,
       "Megatron-LM's arguments", words)
    text = files["accelerate"]["accelerate.yaml"]
    for line in ("distributed_type: FSDP", "num_processes: 16", "num_machines: 2", "fsdp_version: 2",
                 "fsdp_reshard_after_forward: true", "fsdp_activation_checkpointing: false",
                 "parallelism_config_tp_size: 2", "parallelism_config_dp_shard_size: 8"):
        ok(line in text, f"accelerate: {line}", text)
    text = files["torchrun"]["topt_apply.py"]
    ok('"dp": 8, "tp": 2, "zero": 3, "recompute": 1' in text and '"micro_batch": 2, "accumulation": 2' in text
       and "PLAN = {}" not in text, "topt_apply.py has the plan's numbers", text[:2000])
    done = launch(plan_of(gpt, 4, framework="pytorch"), "torchrun")
    ok(json.loads(done.stdout)["exact"] is True, "DDP is exact", done.stdout[:300])
    done = launch(plan_of(gpt, 4), "torchrun")
    ok(json.loads(done.stdout)["exact"] is False and "topt's own runtime" in done.stdout,
       "of a plan for topt's own runtime the answer says so", done.stdout[:300])


def config_of(name, **config):
    with open(name, "w", encoding="utf-8") as f:
        json.dump({"hidden_act": "silu", "rms_norm_eps": 1e-5, "num_key_value_heads": 8, "max_position_embeddings": 4096} | config, f)
    return model_of(name, 16, 64)


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
    done = launch(plan_of(mixtral, 4, 2, 3), "torchrun")
    ok(done.returncode == 3 and "experts" in done.stderr, "which PyTorch does not split", done.stderr)


def check_command_line(gpt):
    plan = plan_of(gpt, 4, 1, 1, framework="pytorch", steps=2)
    done = launch(plan, "torchrun", "-o", "out")
    ok(done.returncode == 0 and done.stdout.split() == ["out/launch.sh", "out/topt_apply.py"], "files are written",
       done.stdout + done.stderr)
    ok(subprocess.run(["sh", "-n", "out/launch.sh"], check=False).returncode == 0, "the command is a shell's")
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
    done = run("launch", "--env", TOPT_PLAN="plan.json")
    ok(done.returncode == 0 and "TOPT_DP=4" in done.stdout, "the plan may be in the environment", done.stderr)
    job = {"TOPT_PLAN": "p-0123456789abcdef", "TOPT_PLAN_ID": "p-0123456789abcdef", "TOPT_DP": "2", "TOPT_TP": "1",
           "TOPT_TORCHRUN": "--nnodes=1"}
    done = run("launch", "--env", **job)
    ok(done.stdout == "env TOPT_PLAN_ID=p-0123456789abcdef TOPT_DP=2 TOPT_TP=1\n",
       "in a job whose plan is an id it is what the job was told", done.stdout + done.stderr)
    done = run("launch", "--for", "torchrun", **job)
    ok(done.returncode == 1 and "p-0123456789abcdef" in done.stderr, "files take the plan itself", done.stderr)
    for args, words in ((["plan.json"], "--for"), (["plan.json", "--for", "slurm"], "no target"),
                        (["plan.json", "--for", "torchrun", "--env"], "one of"), (["none.json", "--env"], "none.json"),
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
        check_refusals(gpt, llama)
        check_command_line(gpt)
        check_shapes()
        check_keys([gpt, llama, moe, cnn])
        os.chdir("/")
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


main()
