#!/usr/bin/env python3
"""extract_keys.py NAME SOURCE COMMIT DATE - the keys that a framework reads, from its source.

NAME is torchrun, accelerate, deepspeed, megatron, primus, torchtitan, hf or torchtune; SOURCE is the folder of its
repository (of PyTorch, the folder that holds torch/; of transformers, the one that holds transformers/).  Nothing is imported: files are parsed.
What is printed stands in solver/launch/keys/NAME.txt: a key a line, sorted, options with their
dashes, members of nested configurations with dots, Python names with their modules and
parameters in brackets.
"""
import ast
import os
import re
import sys

REPOSITORIES = {"torchrun": "pytorch/pytorch", "accelerate": "huggingface/accelerate",
                "deepspeed": "deepspeedai/DeepSpeed", "megatron": "NVIDIA/Megatron-LM",
                "primus": "AMD-AGI/Primus", "torchtitan": "pytorch/torchtitan", "hf": "huggingface/transformers",
                "torchtune": "pytorch/torchtune"}


def parse(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return ast.parse(f.read())


def words(node):
    """Constant strings of a list, or of one."""
    nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def options(tree):
    """Option strings of add_argument()."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            found.update(w for a in node.args for w in words(a) if w.startswith("-"))
    return found


def classes(tree):
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def fields(node):
    """Annotated members of a class: (name, value or None, annotation)."""
    return [(n.target.id, n.value, n.annotation) for n in node.body
            if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


def keyword(call, name):
    for k in call.keywords if isinstance(call, ast.Call) else []:
        if k.arg == name:
            return k.value
    return None


# ---- PyTorch: names of Python -------------------------------------------------------------------

TORCH = {
    "torch.distributed.fsdp": ("torch/distributed/fsdp/_fully_shard/", [
        ("_fully_shard.py", "fully_shard"), ("_fully_shard.py", "FSDPModule"),
        ("_fsdp_api.py", "MixedPrecisionPolicy"), ("_fsdp_api.py", "CPUOffloadPolicy")]),
    "torch.distributed.tensor": ("torch/distributed/tensor/", [("placement_types.py", "Replicate"), ("placement_types.py", "Shard")]),
    "torch.distributed.tensor.parallel": ("torch/distributed/tensor/parallel/", [
        ("style.py", "ColwiseParallel"), ("style.py", "RowwiseParallel"),
        ("api.py", "parallelize_module")]),
    "torch.distributed.device_mesh": ("torch/distributed/", [("device_mesh.py", "init_device_mesh")]),
    "torch.distributed.optim": ("torch/distributed/optim/", [
        ("zero_redundancy_optimizer.py", "ZeroRedundancyOptimizer")]),
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": (
        "torch/distributed/algorithms/_checkpoint/", [
            ("checkpoint_wrapper.py", "checkpoint_wrapper"), ("checkpoint_wrapper.py", "CheckpointImpl")]),
    "torch.distributed": ("torch/distributed/", [("distributed_c10d.py", "init_process_group"), ("distributed_c10d.py", "all_reduce")]),
    "torch.nn.parallel": ("torch/nn/parallel/", [("distributed.py", "DistributedDataParallel")]),
    "torch.nn": ("torch/nn/modules/", [
        ("module.py", "Module"), ("container.py", "ModuleList"), ("linear.py", "Linear"),
        ("sparse.py", "Embedding"), ("container.py", "ModuleDict"), ("activation.py", "MultiheadAttention")]),
    "torch.nn.init": ("torch/nn/", [("init.py", "zeros_")]),
    "torch": ("torch/amp/", [("autocast_mode.py", "autocast")]),
    "torch.amp": ("torch/amp/", [("grad_scaler.py", "GradScaler")]),
    "torch.cuda": ("torch/cuda/", [("__init__.py", "is_available"), ("__init__.py", "set_device")]),
}


def parameters(function):
    a = function.args
    return [p.arg for p in a.posonlyargs + a.args + a.kwonlyargs if p.arg not in ("self", "cls")]


def names_of(module, node):
    found = {f"{module}.{node.name}"}
    if isinstance(node, ast.FunctionDef):
        found.update(f"{module}.{node.name}({p})" for p in parameters(node))
        return found
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            found.update(f"{module}.{node.name}({p})" for p in parameters(member))
        elif isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            found.add(f"{module}.{node.name}.{member.name}")
            found.update(f"{module}.{node.name}.{member.name}({p})" for p in parameters(member))
        elif isinstance(member, ast.Assign):
            found.update(f"{module}.{node.name}.{t.id}" for t in member.targets if isinstance(t, ast.Name))
    found.update(f"{module}.{node.name}({name})" for name, _, _ in fields(node))
    return found


def torchrun(root):
    found = options(parse(root, "torch/distributed/run.py"))
    for module, (folder, members) in TORCH.items():
        for file, name in members:
            for node in ast.walk(parse(root, folder + file)):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                    found |= names_of(module, node)
    return found


# ---- accelerate: a dataclass, and options that sections of its file stand for ------------------

def accelerate(root):
    source = "src/accelerate/commands/"
    of_class = classes(parse(root, source + "config/config_args.py"))
    found = {name for c in ("BaseConfig", "ClusterConfig") for name, _, _ in fields(of_class[c])}
    launched = options(parse(root, source + "launch.py"))
    for option in launched:
        name = option.lstrip("-")
        for section in ("fsdp", "parallelism_config"):
            if name.startswith(section + "_"):
                found.add(f"{section if section.endswith('config') else section + '_config'}.{name}")
    return found | launched


# ---- DeepSpeed: models of pydantic, and names that are constants -------------------------------

DEEPSPEED = {"zero_optimization": ("deepspeed/runtime/zero/config.py", "DeepSpeedZeroConfig"),
             "zero_optimization.offload_optimizer": ("deepspeed/runtime/zero/offload_config.py", "DeepSpeedZeroOffloadOptimizerConfig"),
             "zero_optimization.offload_param": ("deepspeed/runtime/zero/offload_config.py", "DeepSpeedZeroOffloadParamConfig"),
             "bf16": ("deepspeed/runtime/precision_config.py", "DeepSpeedBF16Config"),
             "fp16": ("deepspeed/runtime/precision_config.py", "DeepSpeedFP16Config"),
             "tensor_parallel": ("deepspeed/runtime/tensor_parallel/config.py", "TPTrainingConfig")}


def deepspeed(root):
    found = options(parse(root, "deepspeed/launcher/runner.py"))
    found |= options(parse(root, "deepspeed/__init__.py"))
    for section, (path, name) in DEEPSPEED.items():
        found.add(section)
        for field, value, _ in fields(classes(parse(root, path))[name]):
            alias = keyword(value, "alias")
            found.add(f"{section}.{alias.value if alias else field}")
    constants = {}
    for node in parse(root, "deepspeed/runtime/constants.py").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            constants[node.targets[0].id] = node.value.value
    for node in ast.walk(parse(root, "deepspeed/runtime/config.py")):
        value = constants.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, str) and value.isidentifier() and not node.id.endswith("_DEFAULT"):
            found.add(value)
    # Keys of a section without a class of its own, and the module that stages are written with.
    for node in ast.walk(parse(root, "deepspeed/runtime/config.py")):
        if isinstance(node, ast.FunctionDef) and node.name == "get_pipeline_config":
            found.add("pipeline")
            found.update(f"pipeline.{w}" for d in ast.walk(node) if isinstance(d, ast.Dict) for key in d.keys for w in words(key))
    module = names_of("deepspeed.pipe", classes(parse(root, "deepspeed/runtime/pipe/module.py"))["PipelineModule"])
    found |= {n for n in module if not n.startswith("deepspeed.pipe.PipelineModule.")}
    return found


# ---- Megatron-LM: options, and dataclasses that become options ---------------------------------

MEGATRON = {"TransformerConfig": "megatron/core/transformer/transformer_config.py",
            "ModelParallelConfig": "megatron/core/model_parallel_config.py"}


def dataclass_options(node, exclude):
    found = set()
    for name, value, annotation in fields(node):
        if name in exclude:
            continue
        metadata = keyword(value, "metadata")
        given = None
        for k in ast.walk(metadata) if metadata else []:
            if isinstance(k, ast.Dict):
                for key, v in zip(k.keys, k.values):
                    if isinstance(key, ast.Constant) and key.value == "arg_names":
                        given = words(v)
        default = keyword(value, "default") if isinstance(value, ast.Call) else value
        flag = name.replace("_", "-")
        if given:
            found.update(given)
        elif isinstance(annotation, ast.Name) and annotation.id == "bool" and \
                isinstance(default, ast.Constant) and default.value is True:
            found.update(("--no-" + flag, "--disable-" + flag))
        else:
            found.add("--" + flag)
    return found


def megatron(root):
    path = "megatron/training/arguments.py"
    tree = parse(root, path)
    found = options(tree)
    of_class = dict()
    for file in os.listdir(os.path.join(root, "megatron/training/config")):
        if file.endswith(".py"):
            of_class.update(classes(parse(root, "megatron/training/config/" + file)))
    for name, file in MEGATRON.items():
        of_class[name] = classes(parse(root, file))[name]
    lists = {t.id: words(n.value) for n in ast.walk(tree) if isinstance(n, ast.Assign)
             for t in n.targets if isinstance(t, ast.Name) and isinstance(n.value, ast.List)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ArgumentGroupFactory":
            exclude = keyword(node, "exclude")
            exclude = lists.get(exclude.id, []) if isinstance(exclude, ast.Name) else \
                words(exclude) if exclude else []
            names = [node.args[0].id]
            while names:
                name = names.pop()
                if name in of_class:
                    found |= dataclass_options(of_class[name], exclude)
                    names += [b.id for b in of_class[name].bases if isinstance(b, ast.Name)]
    return found


# ---- torchtitan: dataclasses of sections, and what its configurations are made of ---------------

TORCHTITAN = {"training": "TrainingConfig", "parallelism": "ParallelismConfig", "comm": "CommConfig", "compile": "CompileConfig"}


def torchtitan(root):
    found = {"--module", "--config"}
    of_class = classes(parse(root, "torchtitan/config/configs.py"))
    for section, name in TORCHTITAN.items():
        found.update(f"{section}.{field}" for field, _, _ in fields(of_class[name]))
    trainer = classes(parse(root, "torchtitan/trainer.py"))["Config"]
    found.update(name for name, _, _ in fields(trainer))
    policies = classes(parse(root, "torchtitan/distributed/activation_checkpoint.py"))
    found.update(f"torchtitan.distributed.activation_checkpoint.{name}" for name in policies if name.endswith("AC"))
    for file in ("float8", "mx", "nvfp4"):
        for name, node in classes(parse(root, f"torchtitan/components/quantization/{file}.py")).items():
            config = [n for n in node.body if isinstance(n, ast.ClassDef) and n.name == "Config"]
            if name.endswith("LinearConverter"):
                found.add(f"torchtitan.components.quantization.{name}")
                found.update(f"torchtitan.components.quantization.{name}.Config({field})" for c in config for field, _, _ in fields(c))
    models = os.path.join(root, "torchtitan/models")
    for model in sorted(os.listdir(models)):
        path = f"torchtitan/models/{model}/config_registry.py"
        if os.path.exists(os.path.join(root, path)):
            found.update(f"torchtitan.models.{model}.config_registry.{n.name}"
                         for n in parse(root, path).body
                         if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"))
            found.update(f"torchtitan.models.{model}.{n.name}" for n in parse(root, f"torchtitan/models/{model}/__init__.py").body
                         if isinstance(n, ast.FunctionDef) and n.name == "model_registry")
    assert os.path.exists(os.path.join(root, "torchtitan/train.py"))
    return found | {"-m torchtitan.train"}


# ---- transformers: TrainingArguments, and the keys of its dictionaries ---------------------------

def keys_read(node, name):
    """Keys that are read of a member: self.NAME.get("key"), self.NAME["key"], "key" in self.NAME."""
    found = set()
    for n in ast.walk(node):
        holder, key = None, None
        if isinstance(n, ast.Call) and getattr(n.func, "attr", "") in ("get", "setdefault") and n.args:
            holder, key = n.func.value, n.args[0]
        elif isinstance(n, ast.Subscript):
            holder, key = n.value, n.slice
        elif isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In):
            holder, key = n.comparators[0], n.left
        if getattr(holder, "attr", "") == name and isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.add(key.value)
    return found


def hf(root):
    of_class = classes(parse(root, "transformers/training_args.py"))
    arguments = of_class["TrainingArguments"]
    found = {"--" + name for name, _, _ in fields(arguments)}
    found.update("fsdp_config." + key for key in keys_read(arguments, "fsdp_config"))
    found.update("optim." + n.value.value for n in of_class["OptimizerNames"].body if isinstance(n, ast.Assign))
    config = classes(parse(root, "transformers/trainer_pt_utils.py"))["AcceleratorConfig"]
    found.update("accelerator_config." + name for name, _, _ in fields(config))
    trainer = parse(root, "transformers/trainer.py") # it hands these on to accelerate, and asks for one
    found.update("accelerator_config.gradient_accumulation_kwargs." + key for key in keys_read(trainer, "plugin_kwargs"))
    return found


# ---- torchtune: what recipes read, what configurations say, and which of these go together -------

def settings_of(text):
    """Keys of a configuration, SECTION.KEY below a section, and the names of components."""
    found, section = set(), ""
    for line in text.splitlines():
        m = re.match(r"( *)([A-Za-z_]\w*):\s*(\S*)", line)
        if not m or len(m[1]) not in (0, 2):
            continue
        if not m[1]:
            section = m[2]
        found.add(f"{section}.{m[2]}" if m[1] else m[2])
        if m[2] == "_component_":
            found.add(m[3])
    return found


def torchtune(root):
    found = set()
    for node in ast.walk(parse(root, "torchtune/_recipe_registry.py")):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Recipe":
            recipe = keyword(node, "name").value
            if not re.fullmatch("(full|lora)_finetune_(distributed|single_device)", recipe):
                continue
            tree = parse(root, "recipes/" + keyword(node, "file_path").value)
            for n in ast.walk(tree):
                if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "cfg":
                    found.add(n.attr)
                elif isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "get" and \
                        getattr(n.func.value, "id", "") == "cfg":
                    found.update(words(n.args[0]))
            for config in ast.walk(keyword(node, "configs")):
                if isinstance(config, ast.Call):
                    path = os.path.join(root, "recipes/configs", keyword(config, "file_path").value)
                    if not os.path.exists(path):
                        continue
                    found.add(f"{recipe} --config {keyword(config, 'name').value}")
                    with open(path, encoding="utf-8") as f:
                        found |= settings_of(f.read())
    return found | {"tune run"}


# ---- Primus: keys of its presets, and of experiments ---------------------------------------------

def primus(root):
    found = set()
    for room in ("modules", "models"):
        folder = os.path.join(root, "primus/configs", room, "megatron")
        for name in sorted(n for n in os.listdir(folder) if n.endswith(".yaml")):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                found.update(re.findall(r"^(\w+):", f.read(), re.M))
    with open(os.path.join(root, "examples/megatron/configs/MI300X/llama2_7B-BF16-pretrain.yaml"), encoding="utf-8") as f:
        for indent, key in re.findall(r"^( *)(\w+):", f.read(), re.M):
            found.add({0: "", 2: "modules.", 4: "modules.pre_trainer."}.get(len(indent), "") + key)
    return found | {"primus-cli direct", "train pretrain --config"}


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in REPOSITORIES:
        sys.exit(__doc__)
    name, root, commit, date = sys.argv[1:]
    found = globals()[name](root)
    print(f"# repository {REPOSITORIES[name]}\n# commit {commit}\n# date {date}\n"
          f"# made by tests/launch/extract_keys.py {name} SOURCE {commit} {date}")
    print("\n".join(sorted(found)))


main()
