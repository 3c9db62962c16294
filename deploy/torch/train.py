"""train.py TARGET CONFIG TEXT STEPS REPORT - a Hugging Face model trained as a plan's files say.

TARGET is torchrun (topt_apply.py beside the plan says how) or accelerate (its environment does).
CONFIG is a config.json; TEXT is taken byte by byte.  Weights and samples do not depend on the number
of ranks.  Each rank writes REPORT.RANK, JSON: the losses of the steps, each the mean over the global
batch, and what PyTorch then says about the model: its wrapper, the mesh and placement of its
parameters, how many of them this rank holds, FSDP's units, blocks that are checkpointed, forward passes a
step and samples in each.  deploy/torch/obey.sh compares that with the plan.
"""
import collections
import json
import os
import sys

import torch
import torch.distributed as dist
import transformers
from torch.distributed.tensor import DTensor

SEQ = 64
ADAMW = {"lr": 3e-3, "eps": 1e-3}  # with so large an eps the scale of gradients matters, too


def build(path):
    with open(path, encoding="utf-8") as f:
        stored = json.load(f)
    config = transformers.AutoConfig.for_model(stored.pop("model_type"), **stored)
    torch.manual_seed(1)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")


def samples(path, vocabulary, batch, step):
    """The global batch of a step."""
    with open(path, "rb") as f:
        letters = f.read()
    part = torch.tensor(list(letters[step * batch * SEQ:(step + 1) * batch * SEQ])) % vocabulary
    return part.view(batch, SEQ)


def loss_of(model, ids):
    return model(input_ids=ids, labels=ids, use_cache=False).loss


def seen_forward(model):
    """Counts forward passes of the embedding, and the samples in each."""
    seen = collections.Counter()

    def hook(_, args):
        seen["forwards"] += 1
        seen["samples"] += args[0].shape[0]

    inner = getattr(model, "module", model)
    inner.get_input_embeddings().register_forward_pre_hook(hook)
    return seen


def layout(model):
    """What PyTorch says about the parameters: counts and numbers of each mesh and placement."""
    found = collections.defaultdict(lambda: [0, 0, 0])
    for p in model.parameters():
        key = "plain"
        if isinstance(p, DTensor):
            mesh = p.device_mesh
            key = f"{tuple(mesh.mesh_dim_names or ())} {tuple(mesh.shape)} {tuple(p.placements)}"
        local = p.to_local() if isinstance(p, DTensor) else p
        for i, n in enumerate((1, p.numel(), local.numel())):
            found[key][i] += n
    return found


def units(model):
    """FSDP's units: how many, and how many of them reshard after forward."""
    from torch.distributed.fsdp import FSDPModule
    groups = {m._get_fsdp_state()._fsdp_param_group for m in model.modules() if isinstance(m, FSDPModule)}
    groups.discard(None)
    return len(groups), sum(g._reshard_after_forward for g in groups)


def checkpointed(model):
    """Modules that are made again in backward, by PyTorch's wrapper or transformers' own means."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
    return sum(isinstance(m, CheckpointWrapper) or getattr(m, "gradient_checkpointing", False) is True
               for m in model.modules() if not isinstance(m, transformers.PreTrainedModel))


def report(model, optimizer, losses, seen, steps, path):
    fsdp, reshard = units(model)
    state = getattr(optimizer, "optim", optimizer).state.values()  # ZeroRedundancyOptimizer has another inside
    held = sum((v.to_local() if isinstance(v, DTensor) else v).numel()
               for s in state for v in s.values() if isinstance(v, torch.Tensor) and v.dim())
    facts = {"losses": losses, "ranks": dist.get_world_size(), "wrapper": type(model).__name__,
             "layout": layout(model), "units": fsdp, "reshard": reshard, "moments": held,
             "checkpointed": checkpointed(model),
             "forwards": seen["forwards"] / steps, "samples": seen["samples"] / max(1, seen["forwards"])}
    with open(f"{path}.{dist.get_rank()}", "w", encoding="utf-8") as f:
        json.dump(facts, f)


def by_topt_apply(config, text, steps, path):
    import topt_apply
    device = topt_apply.start()
    model = build(config)
    vocabulary = model.config.vocab_size
    model = topt_apply.apply(model, device)
    optimizer = topt_apply.optimizer(model, torch.optim.AdamW, **ADAMW)
    seen = seen_forward(model)
    batch = topt_apply.DP * topt_apply.MICRO_BATCH * topt_apply.ACCUMULATION
    losses = []
    for step in range(steps):
        ids = samples(text, vocabulary, batch, step)
        total = torch.zeros(())
        for i, context in enumerate(topt_apply.micro_batches(model)):
            with context:
                loss = loss_of(model, ids[topt_apply.rows(i)].to(device)) / topt_apply.ACCUMULATION
                loss.backward()
            total += loss.detach().cpu()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
    report(model, optimizer, losses, seen, steps, path)


def on_the_cpu(sharded):
    """accelerate shards on accelerators alone: it is told that this machine's CPU ranks are such; and else takes MPI."""
    from accelerate import state
    kind = state.DistributedType.MULTI_GPU if sharded else state.DistributedType.MULTI_CPU
    state.PartialState._prepare_backend = lambda self, *_, **__: ("gloo", kind)
    state.PartialState.set_device = lambda self: setattr(self, "device", torch.device("cpu"))
    state.PartialState.default_device = property(lambda self: torch.device("cpu"))


def by_accelerate(config, text, steps, path):
    sharded = os.environ.get("ACCELERATE_USE_FSDP") == "true"
    if not torch.cuda.is_available():
        on_the_cpu(sharded)
    from accelerate import Accelerator
    from accelerate.utils import GradientAccumulationPlugin
    micro, accumulation = int(os.environ["OBEY_MICRO_BATCH"]), int(os.environ["OBEY_ACCUMULATION"])
    accelerator = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(
        num_steps=accumulation, sync_each_batch=True))
    model = build(config)
    vocabulary = model.config.vocab_size
    if os.environ["OBEY_RECOMPUTE"] == "1" and os.environ.get("FSDP_ACTIVATION_CHECKPOINTING") != "true":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    model, optimizer = accelerator.prepare(model, optimizer)
    seen = seen_forward(model)
    shares = int(os.environ["OBEY_DP"])
    mine = dist.get_rank() * shares // dist.get_world_size()
    losses = []
    for step in range(steps):
        ids = samples(text, vocabulary, shares * micro * accumulation, step)
        total = torch.zeros(())
        for i in range(accumulation):
            first = (i * shares + mine) * micro
            with accelerator.accumulate(model):
                loss = loss_of(model, ids[first:first + micro].to(accelerator.device))
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.detach().cpu() / accumulation
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
    report(model, getattr(optimizer, "optimizer", optimizer), losses, seen, steps, path)


def main():
    target, config, text, steps, path = sys.argv[1:]
    torch.set_num_threads(1)
    {"torchrun": by_topt_apply, "accelerate": by_accelerate}[target](config, text, int(steps), path)
    dist.barrier()
    dist.destroy_process_group()


main()
