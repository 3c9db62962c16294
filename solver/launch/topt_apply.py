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
import contextlib
import inspect
import os

import torch
import torch.distributed as dist
from torch import nn

PLAN = {}


def setting(name, planned):
    """A number of the plan, or what the job's environment says in its place."""
    return int(os.environ.get("TOPT_" + name, planned))


DP = setting("DP", PLAN["dp"])
TP = setting("TP", PLAN["tp"])
ZERO = setting("FSDP", PLAN["zero"]) if DP > 1 else 0
RECOMPUTE = setting("RECOMPUTE", PLAN["recompute"])
MICRO_BATCH = setting("MICRO_BATCH", PLAN["micro_batch"])
ACCUMULATION = setting("ACCUMULATION", PLAN["accumulation"])
PRECISION = os.environ.get("TOPT_PRECISION", PLAN["precision"])

# Linear modules of a block that are split by output features, and by input features.
COLUMN = {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "fc1", "fc_in",
          "query_key_value", "dense_h_to_4h"}
ROW = {"o_proj", "out_proj", "down_proj", "fc2", "fc_out", "dense", "dense_4h_to_h"}


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
    """Repeated blocks: outermost lists of modules of one class, as (list, index, block)."""
    found, inside = [], set()
    for module in model.modules():
        if module in inside or not isinstance(module, nn.ModuleList):
            continue
        if len({type(child) for child in module}) != 1 or len(module) < 2:
            continue
        found += [(module, i, child) for i, child in enumerate(module)]
        inside.update(inner for child in module for inner in child.modules())
    return found


def outside_of(model, blocks):
    """Embeddings and linear modules that stand in no block."""
    inside = {inner for _, _, block in blocks for inner in block.modules()}
    return [m for m in model.modules()
            if m not in inside and isinstance(m, (nn.Embedding, nn.Linear))]


def is_tied(modules):
    weights = [m.weight for m in modules]
    return len({id(w) for w in weights}) != len(weights)


def split(model, blocks, mesh):
    """Tensor parallelism: pairs of linear modules by columns and rows, the ends by vocabulary."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    for _, _, block in blocks:
        styles = {}
        for name, module in block.named_modules():
            last = name.rsplit(".", 1)[-1]
            if not isinstance(module, nn.Linear):
                continue
            if last not in COLUMN and last not in ROW:
                raise SystemExit(f"topt_apply: no rule how to split '{name}' of "
                                 f"{type(block).__name__}: add it to COLUMN or ROW")
            styles[name] = ColwiseParallel() if last in COLUMN else RowwiseParallel()
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


def shard(model, blocks, mesh):
    """FSDP2: each block is a unit, the ends are, and the root holds the rest."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    options = {"mesh": mesh, "reshard_after_forward": ZERO == 3, "shard_placement_fn": placement}
    if PRECISION == "bf16-mixed":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                    reduce_dtype=torch.float32)
    ends = outside_of(model, blocks)
    for _, _, block in blocks:
        fully_shard(block, **options)
    if not is_tied(ends):
        for module in ends:
            fully_shard(module, **options)
    fully_shard(model, **options)


def apply(model, device):
    """The model as the plan says; what it returns is what to train.

    A model that is to be sharded may be larger than a device: it is moved there unit by unit.
    """
    blocks = blocks_of(model)
    if PRECISION == "bf16":
        model.to(torch.bfloat16)
    mesh = None
    if TP > 1 or ZERO >= 2:
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh(device.type, (DP, TP), mesh_dim_names=("dp", "tp"))
    if TP > 1:
        split(model, blocks, mesh["tp"])
    if RECOMPUTE:
        blocks = recompute(blocks)
    if ZERO >= 2:
        shard(model, blocks, mesh["dp"])
        return model
    model.to(device)
    if DP > 1:
        if TP > 1:
            raise SystemExit("topt_apply: DDP does not take tensor parallel parameters")
        model = nn.parallel.DistributedDataParallel(
            model, device_ids=[device.index] if device.type == "cuda" else None,
            gradient_as_bucket_view=True)
    return model


def optimizer(model, kind, **options):
    """An optimizer of this kind; with ZeRO-1 its state is shared out over the ranks.

    On GPUs its step is fused where it can be: else it holds another f32 copy of the parameters, which the plan
    leaves no room for."""
    on_gpu = next(model.parameters()).device.type == "cuda"
    if on_gpu and "fused" in inspect.signature(kind).parameters:
        options.setdefault("fused", True)
    if ZERO == 1:
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=kind, **options)
    return kind(model.parameters(), **options)


@contextlib.contextmanager
def one_micro_batch(model, last, device_type):
    with contextlib.ExitStack() as stack:
        if DP > 1 and ZERO < 2 and not last:
            stack.enter_context(model.no_sync())  # gradients are reduced once a step
        if ZERO == 2:
            model.set_reshard_after_backward(last)  # parameters are gathered once a step
        if ZERO >= 2:
            model.set_requires_gradient_sync(True)  # gradients stay sharded in between
        elif PRECISION == "bf16-mixed":
            stack.enter_context(torch.autocast(device_type, dtype=torch.bfloat16))
        yield


def micro_batches(model):
    """For each micro-batch of a step, the context to run its forward and backward in."""
    device_type = next(model.parameters()).device.type
    for i in range(ACCUMULATION):
        yield one_micro_batch(model, i == ACCUMULATION - 1, device_type)
