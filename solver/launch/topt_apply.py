"""Apply the plan of a training job to a PyTorch model.

    import topt_apply
    device = topt_apply.start()
    model = topt_apply.apply(build_model(), device)
    optimizer = topt_apply.optimizer(model, torch.optim.AdamW, lr=3e-4)
    for batch in batches:                           # the global batch of a step
        for i, context in enumerate(topt_apply.micro_batches(model)):
            with context:
                rows = batch[topt_apply.rows(i)]    # this rank's samples
                loss = loss_of(model, rows) / topt_apply.ACCUMULATION
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()

The numbers of the plan are below; TOPT_* in the environment replace them.
"""
import collections
import contextlib
import fnmatch
import inspect
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

PLAN = {}


def setting(name, planned):
    """A number of the plan, or what the job's environment says in its place."""
    return int(os.environ.get("TOPT_" + name, planned))


DP = setting("DP", PLAN["dp"])
TP = setting("TP", PLAN["tp"])
OFFLOAD = setting("OFFLOAD", PLAN["offload"])  # parameters, gradients and optimizer rest on the host
ZERO = setting("FSDP", PLAN["zero"]) if DP > 1 or OFFLOAD else 0
SHARD = setting("SHARD", PLAN["shard"] if DP == PLAN["dp"] else DP)  # of DP, those that FSDP shards over; the others are replicas
RECOMPUTE = setting("RECOMPUTE", PLAN["recompute"])
MICRO_BATCH = setting("MICRO_BATCH", PLAN["micro_batch"])
ACCUMULATION = setting("ACCUMULATION", PLAN["accumulation"])
PRECISION = os.environ.get("TOPT_PRECISION", PLAN["precision"])
HALF = {"bf16-mixed": torch.bfloat16, "fp16-mixed": torch.float16}.get(PRECISION)  # computed in, with f32 weights
TRAIN = os.environ.get("TOPT_TRAIN", PLAN["train"])  # all, names, or lora:RANK:NAMES; +4bit or +8bit: the rest in few bits

# Linear modules of a block that are split by output features, and by input features.
COLUMN = set(PLAN["column"].split())
HEAD_NORM = {"q_norm", "k_norm", "q_layernorm", "k_layernorm"}  # between them: each rank has a part of the heads
ROW = set(PLAN["row"].split())


def start():
    """Join the other ranks, which torchrun or srun started.  Returns this rank's device."""
    for name, source, alone in (("RANK", "SLURM_PROCID", "0"),
                                ("LOCAL_RANK", "SLURM_LOCALID", "0"),
                                ("WORLD_SIZE", "SLURM_NTASKS", "1")):
        os.environ.setdefault(name, os.environ.get(source, alone))
    os.environ.setdefault("MASTER_ADDR", os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"))
    job = int(os.environ.get("SLURM_JOB_ID", "0"))
    os.environ.setdefault("MASTER_PORT", str(20000 + job % 20000))
    world = int(os.environ["WORLD_SIZE"])
    if world != DP * TP:
        raise SystemExit(f"topt_apply: the plan is for {DP * TP} ranks, there are {world}")
    local = int(os.environ["LOCAL_RANK"])
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if cuda else "gloo")
    return torch.device("cuda", local) if cuda else torch.device("cpu")


def data_rank():
    """Which of the DP shares of a batch is this rank's."""
    return int(os.environ.get("RANK", "0")) // TP


def rows(i):
    """Samples of micro-batch i of this rank, as a slice of the global batch."""
    first = (i * DP + data_rank()) * MICRO_BATCH
    return slice(first, first + MICRO_BATCH)


def blocks_of(model):
    """Repeated blocks: what outermost lists of modules hold, as (list, index, block)."""
    found, inside = [], set()
    for module in model.modules():
        if module in inside or not isinstance(module, nn.ModuleList) or len(module) < 2:
            continue
        if any(isinstance(child, (nn.ModuleList, nn.ModuleDict)) for child in module):
            continue  # lists of lists: those inside are looked at
        found += [(module, i, child) for i, child in enumerate(module)]
        inside.update(inner for child in module for inner in child.modules())
    return found


def outside_of(model, blocks):
    """Embeddings and linear modules that stand in no block."""
    inside = {inner for _, _, block in blocks for inner in block.modules()}
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):  # it computes with its parts' weights, and does not call them
            inside.update(module.modules())
    return [m for m in model.modules()
            if m not in inside and isinstance(m, (nn.Embedding, nn.Linear))]


def is_tied(modules):
    weights = [m.weight for m in modules]
    return len({id(w) for w in weights}) != len(weights)


def divide_heads(module):
    """Some models' attention takes the number of its heads from itself, not from the tensors."""
    for name in ("num_heads", "num_attention_heads", "num_key_value_heads", "num_kv_heads"):
        heads = getattr(module, name, None)
        if isinstance(heads, int) and heads % TP == 0:
            setattr(module, name, heads // TP)


def sum_gradients(block, columns, group):
    """A norm of each head sees a rank's heads alone: its gradient is the sum over the ranks."""
    def add_up(gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=group)
        return gradient

    def watch(module, _):
        for parameter in module.parameters():  # FSDP's gathered ones are others than those that it keeps
            if not hasattr(parameter, "summed_by_topt"):
                parameter.summed_by_topt = parameter.register_hook(add_up) if parameter.requires_grad else None

    for name, module in block.named_modules():
        if name.rsplit(".", 1)[-1] in HEAD_NORM:
            if any(p.shape[-1] in columns for p in module.parameters()):
                raise SystemExit(f"topt_apply: '{name}' of {type(block).__name__} is a norm over all heads, which are split")
            module.register_forward_pre_hook(watch)


def fits(pattern, name):
    """Does a shell pattern name this, or its last parts?"""
    parts = name.split(".")
    return any(fnmatch.fnmatchcase(".".join(parts[i:]), pattern) for i in range(len(parts)))


def loading():
    """Keywords of from_pretrained(): what the plan stores in few bits is loaded so, by bitsandbytes."""
    kind = TRAIN.partition("+")[2]
    if not kind:
        return {}
    from transformers import BitsAndBytesConfig
    if kind == "8bit":
        return {"quantization_config": BitsAndBytesConfig(load_in_8bit=True)}
    return {"quantization_config": BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.float32 if PRECISION == "f32" else torch.bfloat16,
        bnb_4bit_quant_storage=torch.bfloat16)}  # FSDP gathers these as they are


def is_linear(module):
    name = type(module).__name__  # of transformers: GPT-2's are turned, Llama 4's routers answer with more than a product
    return isinstance(module, nn.Linear) and not name.endswith("Router") or name == "Conv1D"


class Adapter(nn.Module):
    """A frozen linear module, and two narrow ones whose product is added to it (Hu et al., LoRA, 2021; alpha is the rank)."""
    def __init__(self, base, rank):
        super().__init__()
        self.base_layer = base
        device = base.weight.device
        turned = not isinstance(base, nn.Linear)
        takes, gives = base.weight.shape if turned else (base.in_features, base.out_features)
        self.lora_A = nn.Linear(takes, rank, bias=False, device=device, dtype=torch.float32)
        self.lora_B = nn.Linear(rank, gives, bias=False, device=device, dtype=torch.float32)
        nn.init.zeros_(self.lora_B.weight)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.base_layer, name)

    def forward(self, x):
        y = self.base_layer(x)
        return y + self.lora_B(self.lora_A(x.to(self.lora_A.weight.dtype))).to(y.dtype)


def adapt(model):
    """Put adapters beside the linear modules that the plan names: peft's, where that is installed.  All else is frozen."""
    _, rank, patterns = (TRAIN.partition("+")[0].split(":", 2) + ["", ""])[:3]
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None:
        head = ([m for m in outside_of(model, blocks_of(model)) if is_linear(m)] or [None])[-1]
    chosen = {name: m for name, m in model.named_modules() if is_linear(m)
              and (any(fits(p, name) for p in patterns.split(",")) if patterns not in ("", "all-linear") else m is not head)}
    if not chosen:
        raise SystemExit(f"topt_apply: no linear module is named as in '{TRAIN}'; names are like "
                         + next((name for name, m in model.named_modules() if is_linear(m)), "none"))
    model.requires_grad_(False)
    rank = int(rank or 16)
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        for name, module in chosen.items():
            model.set_submodule(name, Adapter(module, rank))
        return
    config = LoraConfig(r=rank, lora_alpha=rank, lora_dropout=0.0, bias="none", target_modules=list(chosen))
    if hasattr(model, "add_adapter"):  # transformers': save_pretrained() then writes the adapters
        model.add_adapter(config)
    else:
        inject_adapter_in_model(config, model)


def freeze(model):
    """Train what the plan trains: adapters, or parameters by name.  Types are the plan's."""
    names = TRAIN.partition("+")[0]
    if any("lora_" in name for name, _ in model.named_parameters()):
        pass  # the script has put its own adapters in
    elif names.split(":")[0] == "lora":
        adapt(model)
    elif names != "all":
        for name, parameter in model.named_parameters():
            parameter.requires_grad = any(fits(p, name) or fits(p, name.rpartition(".")[0]) for p in names.split(","))
    if "+" in TRAIN and not any(hasattr(p, "quant_state") or p.dtype == torch.int8 for p in model.parameters()):
        raise SystemExit("topt_apply: the plan stores frozen matrices in few bits: "
                         "load the model with from_pretrained(..., **topt_apply.loading())")
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if not trained:
        raise SystemExit(f"topt_apply: no parameter is named as in '{TRAIN}'")
    if names != "all" and trained != PLAN["trained"] and int(os.environ.get("RANK", "0")) == 0:
        print(f"topt_apply: {trained} parameters are trained, and {PLAN['trained']} by the plan: "
              "its memory and time are another's", file=sys.stderr)


def set_types(model):
    """What is trained in f32, unless the plan holds everything in bf16; what is frozen in what is computed with."""
    for parameter in model.parameters():
        in_f32 = PRECISION == "f32" or parameter.requires_grad and HALF
        if parameter.is_floating_point() and not hasattr(parameter, "quant_state"):
            parameter.data = parameter.data.to(torch.float32 if in_f32 else HALF or torch.bfloat16)
    for name, buffer in model.named_buffers():
        if PRECISION == "bf16" and buffer.is_floating_point() and "inv_freq" not in name:  # angles need their digits
            buffer.data = buffer.data.to(torch.bfloat16)


def trainable(model):
    """The model trains what the plan trains, in its types; what other launchers than apply() begin with."""
    freeze(model)
    set_types(model)
    return model


def split(model, blocks, mesh):
    """Tensor parallelism: pairs of linear modules by columns and rows, the ends by vocabulary."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    for _, _, block in blocks:
        styles, columns = {}, set()
        for name, module in block.named_modules():
            last = name.rsplit(".", 1)[-1]
            if not isinstance(module, nn.Linear):
                divide_heads(module)
                continue
            if last not in COLUMN and last not in ROW:
                raise SystemExit(f"topt_apply: no rule how to split '{name}' of "
                                 f"{type(block).__name__}: add it to COLUMN or ROW")
            styles[name] = ColwiseParallel() if last in COLUMN else RowwiseParallel()
            columns.update([module.out_features] if last in COLUMN else [])
        if not styles:
            raise SystemExit(f"topt_apply: {type(block).__name__} has no linear module to split")
        sum_gradients(block, columns, mesh.get_group())
        parallelize_module(block, mesh, styles)
    ends = outside_of(model, blocks)
    if is_tied(ends):
        return
    for module in ends:
        if isinstance(module, nn.Embedding):
            style = RowwiseParallel(input_layouts=Replicate())
        else:
            style = ColwiseParallel(output_layouts=Replicate())
        parallelize_module(module, mesh, style)


def keep_no_cache(model):
    """Models of transformers fill a cache of keys and values unless told otherwise; a block that runs again in backward would
    find its own there."""
    for module in model.modules():
        config = getattr(module, "config", None)
        for part in (config, getattr(config, "text_config", None), getattr(config, "decoder", None)):
            if hasattr(part, "use_cache"):
                part.use_cache = False


def recompute(blocks):
    """Keep a block's input only, and run it again in backward."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        CheckpointImpl, checkpoint_wrapper)
    wrapped = []
    for holder, i, block in blocks:
        holder[i] = checkpoint_wrapper(block, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
        wrapped.append((holder, i, holder[i]))
    return wrapped


def placement(parameter):
    """The dimension that ranks share out: the first, unless there are fewer rows than ranks (experts of a mixture), and
    another one can be shared equally."""
    from torch.distributed.tensor import Shard
    if parameter.ndim > 1 and parameter.shape[0] < DP:
        for i in range(1, parameter.ndim):
            if parameter.shape[i] % DP == 0:
                return Shard(i)
    return None


def apart(blocks):
    """Blocks that share no parameter with another one: the others' are the root's."""
    times = collections.Counter(id(p) for _, _, block in blocks for p in set(block.parameters()))
    return [block for _, _, block in blocks if all(times[id(p)] == 1 for p in block.parameters())]


def shard(model, blocks, mesh):
    """FSDP2: each block is a unit, the ends are, and the root holds the rest."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    options = {"mesh": mesh, "reshard_after_forward": ZERO == 3, "shard_placement_fn": placement}
    if HALF:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=HALF, reduce_dtype=torch.float32)
    if OFFLOAD:
        from torch.distributed.fsdp import CPUOffloadPolicy
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=torch.cuda.is_available())
    for module in list(model.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            if not parameter.ndim:  # a number alone can't be shared out
                setattr(module, name, nn.Parameter(parameter.detach().reshape(1), parameter.requires_grad))
    ends = outside_of(model, blocks)
    for block in apart(blocks):
        fully_shard(block, **options)
    if not is_tied(ends):
        for module in ends:
            fully_shard(module, **options)
    fully_shard(model, **options)


def apply(model, device):
    """The model as the plan says; what it returns is what to train.

    A model that is to be sharded may be larger than a device: it is moved there unit by unit.
    """
    trainable(model)
    blocks = blocks_of(model)
    if RECOMPUTE:
        keep_no_cache(model)
    mesh = None
    if TP > 1 or ZERO >= 2:
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh(device.type, (DP // SHARD, SHARD, TP), mesh_dim_names=("replicas", "shard", "tp"))
    if TP > 1:
        split(model, blocks, mesh["tp"])
    if RECOMPUTE:
        blocks = recompute(blocks)
    if ZERO >= 2:
        shard(model, blocks, mesh["replicas", "shard"] if SHARD < DP else mesh["shard"])
        return model
    model.to(device)
    if DP > 1:
        if TP > 1:
            raise SystemExit("topt_apply: DDP does not take tensor parallel parameters")
        model = nn.parallel.DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None,
            gradient_as_bucket_view=True,
            find_unused_parameters=True)  # many models have some: masks, poolers, experts without a token
    return model


def optimizer(model, kind, **options):
    """An optimizer of this kind; with ZeRO-1 its state is shared out over the ranks.

    On GPUs its step is fused where it can be: else it holds another f32 copy of the parameters, which the plan
    leaves no room for."""
    on_gpu = next(model.parameters()).device.type == "cuda"
    if on_gpu and "fused" in inspect.signature(kind).parameters:
        options.setdefault("fused", True)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if ZERO == 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(parameters, optimizer_class=kind, **options)
    return kind(parameters, **options)


def scaler():
    """What scales the loss of fp16: scale(loss).backward(), step(optimizer), update(); of other types it does nothing."""
    return torch.amp.GradScaler(enabled=PRECISION == "fp16-mixed")


@contextlib.contextmanager
def one_micro_batch(model, last, device_type):
    with contextlib.ExitStack() as stack:
        if DP > 1 and ZERO < 2 and not last:
            stack.enter_context(model.no_sync())  # gradients are reduced once a step
        if ZERO == 2:
            model.set_reshard_after_backward(last)  # parameters are gathered once a step
        if ZERO >= 2:
            model.set_requires_gradient_sync(True)  # gradients stay sharded in between
        elif HALF:
            stack.enter_context(torch.autocast(device_type, dtype=HALF))
        yield


def micro_batches(model):
    """For each micro-batch of a step, the context to run its forward and backward in."""
    device_type = next(model.parameters()).device.type
    for i in range(ACCUMULATION):
        yield one_micro_batch(model, i == ACCUMULATION - 1, device_type)
