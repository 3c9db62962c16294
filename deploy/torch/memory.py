#!/usr/bin/env python3
"""memory.py - what a rank holds while PyTorch's FSDP2 trains a Hugging Face model, without a GPU.

    python3 memory.py --config CONFIG.json --ranks N [--micro-batch B] [--sequence S]
        [--precision bf16-mixed|bf16|f32] [--checkpoint [children]] [--no-reshard] [--units blocks|ends|tail]
        [--ddp [views]] [--lora RANK] [--replicate R] [--accumulation A [--no-sync]] [--optimizer foreach|fused|single] [--list PHASE]

A judge of topt's memory model that is independent of it.  transformers builds the model on the meta
device, fully_shard wraps each decoder block and the root (--units ends: embedding and head too, as
topt_apply.py does; tail: the same with the head kept gathered after forward, as accelerate 1.14 and torchtitan do, there
with the last norm, which lies in the root here), and one step (forward, loss, backward,
AdamW) runs on fake tensors in a fake process group of N ranks: every tensor has its shape, type and
lifetime, none has contents.  PyTorch's own FSDPMemTracker adds up the storages that are alive after each
operation.  What is printed, as JSON on one line: for each phase of the step, the bytes of each component
at the moment when their sum was largest, the unit and the operation of that moment, and which
FSDP units were gathered then.  The phases: forward (embedding and blocks), head (norm, logits, loss),
head_backward, blocks_backward, end_backward (the embedding, and the root's reduce-scatter), step.
With --list PHASE also every tensor alive at that phase's moment, by the operation that made it (slower).

What is measured
  - A step in steady state: AdamW's moments exist before it, gradients do not (zero_grad sets them
    to None).  With --accumulation A > 1 the step has A forward and backward passes; with --no-sync all but
    the last do without reduce-scatter.
  - sharded_parameters, sharded_gradients, optimizer: what stays.  unsharded_parameters and
    unsharded_gradients: of gathered units.  all_gather: outputs of all-gathers that are not yet
    freed (parameters lie in them once more).  reduce_scatter: inputs of reduce-scatters.
    activations: made in forward, and again in a checkpointed block's backward.  temporaries: made
    in backward; in the optimizer's step, under optimizer, what is more than the two moments is temporary.
  - Precision: bf16-mixed keeps parameters, gradients and moments in f32, gathers and computes in
    bf16 and reduces gradients in f32 (MixedPrecisionPolicy(param_dtype=bf16, reduce_dtype=f32));
    bf16 keeps everything in bf16.
  - --ddp wraps the model in DistributedDataParallel instead (bf16-mixed is then autocast over f32 parameters), whose
    collectives are replaced by none; buckets are what gradients are reduced in, sharded_ components are whole. With --ddp views,
    gradients are views of buckets (gradient_as_bucket_view).  Its phases: forward, head, head_backward (all of backward), step.
  - --lora RANK puts an adapter of two maps of so many numbers beside each linear map of the blocks, without dropout; all
    else is frozen, in bf16 with bf16-mixed, as the scripts of topt launch have it.
  - The loss is the model's own: transformers casts logits to f32 and takes cross_entropy of
    them; both are counted as they are.
  - Attention is that of a GPU: aten's flash attention, with the logarithms of sums (f32, one per head and
    position) saved for backward, and in backward what its kernel allocates inside: f32 sums of the
    queries' gradients, one f32 value per head and position, and gradients of keys and values once per
    query head where several share them.  (On the CPU, PyTorch would take another kernel.)

What is not measured: the CUDA context, communicators' buffers, cuBLAS's workspaces, temporaries inside of
other kernels, the allocator's rounding and fragments.  Storages are counted while Python's references
live, as the allocator does that FSDP2 relies on (it frees in the order of the CPU's program and keeps
references across streams).

How to run it: it needs PyTorch 2.14 or so, transformers 5 and nothing else; no GPU, no network.  Debian 12
has older ones, so in a chroot of a newer Debian, as root (1.7 GB, some minutes):

    mmdebstrap --variant=minbase --include=python3-torch,python3-transformers,python3-accelerate \\
        forky DIR
    mount --bind /proc DIR/proc; mount --bind /dev DIR/dev
    cp memory.py CONFIG.json DIR/tmp/
    chroot DIR python3 /tmp/memory.py --config /tmp/CONFIG.json --ranks 8
    umount DIR/proc DIR/dev

Seen with torch 2.14.1, transformers 5.12.1.
"""

import argparse
import contextlib
import json
import os
import sys
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch
import torch.distributed as dist
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.common_utils import get_untyped_storages
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker, _FSDPRefType
from torch.distributed._tools.mem_tracker import MemTracker, _MemRefType
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.weak import WeakIdKeyDictionary
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

NAMES = {
    "Sharded Param": "sharded_parameters",
    "Sharded Grad": "sharded_gradients",
    "OptState": "optimizer",
    "Unsharded Param": "unsharded_parameters",
    "Unsharded Grad": "unsharded_gradients",
    "All Gather": "all_gather",
    "Reduce Scatter": "reduce_scatter",
    "Activation": "activations",
    "Temp": "temporaries",
    "Buffer": "buffers",
    "Inputs": "inputs",
    "Parameter": "sharded_parameters",
    "Gradient": "sharded_gradients",
    "Optstate": "optimizer",
    "Other": "buckets",
    "Total": "total",
}


class Flash(torch.autograd.Function):
    """Flash attention as a GPU runs it: the operator's own results, and what its kernels allocate."""

    @staticmethod
    def forward(ctx, query, key, value, causal, scale):
        out, lse, cum_q, cum_k, max_q, max_k, seed, offset, _ = (
            torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, causal, False, scale=scale)
        )
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.rest = (cum_q, cum_k, max_q, max_k, 0.0, causal, seed, offset)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, grad):
        query, key, value, out, lse = ctx.saved_tensors
        batch, heads, length, width = query.shape
        held = [
            query.new_empty(batch, heads, length, width, dtype=torch.float32),
            query.new_empty(batch, heads, length, dtype=torch.float32),
        ]
        if key.shape[1] != heads:
            held += [key.new_empty(batch, heads, key.shape[2], width) for _ in range(2)]
        grads = torch.ops.aten._scaled_dot_product_flash_attention_backward(
            grad, query, key, value, out, lse, *ctx.rest, scale=ctx.scale
        )
        del held
        return (*grads, None, None)


def attend(module, query, key, value, mask, scaling=None, is_causal=None, **_):
    """The attention function that transformers calls, in place of its sdpa."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    out = Flash.apply(query, key, value, causal, scaling)
    return out.transpose(1, 2).contiguous(), None


class Moments:
    """What both trackers share: the largest moment of each phase of a step, apart from the others."""

    def begin(self, listed):
        self.phase = "forward"
        self.prefix = ""
        self.moments = {}
        self.operation = ""
        self.unit = ""
        self.making = None
        self.listed = listed
        self.origins = WeakIdKeyDictionary()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operation = str(func)
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _track(self, reftype, t):
        super()._track(self.making or reftype, t)
        if self.listed:
            for st in get_untyped_storages(t):
                self.origins.setdefault(st, f"{self.operation} {list(t.shape)} {str(t.dtype)[6:]}")

    def _list(self):
        """What is alive now: component, operation that made it, shape, type; how often and bytes in all."""
        found = {}
        for st, (info, _) in self._WINFO.items():
            key = (NAMES[info.reftype.value], self.origins.get(st, "before the step"))
            count, held = found.get(key, (0, 0))
            found[key] = (count + 1, held + info.mem_consumed)
        rows = [{"component": c, "of": o, "count": n, "bytes": b} for (c, o), (n, b) in found.items() if b]
        return sorted(rows, key=lambda r: -r["bytes"])

    def _update_peak_stats(self, peak_state):
        super()._update_peak_stats(peak_state)
        phase = self.prefix + self.phase
        snap = next((s for d, s in self._curr_mem_snap.items() if d.type == "cpu"), None)
        if snap is None or snap["Total"] <= self.moments.get(phase, {"total": -1})["total"]:
            return
        self.label()
        moment = {NAMES[getattr(k, "value", k)]: v for k, v in snap.items()}
        moment["unit"] = self.unit
        moment["operation"] = self.operation
        moment["gathered"] = self.gathered()
        if phase == self.listed:
            moment["alive"] = self._list()
        self.moments[phase] = moment

    def label(self):
        """Gives what is alive its right component, before a moment is noted."""

    def gathered(self):
        return []


class Replicas(Moments, MemTracker):
    """A tracker of DDP: parameters, gradients and the buckets that these are reduced in."""

    def __init__(self, model, optimizer, args):
        super().__init__()
        self.begin(args.list)
        self.track_external(model, optimizer)
        self.making = _MemRefType.OTH
        with self:
            self.module = replicate(model, args)
        self.making = None
        blocks_of(model)[-1].register_forward_hook(lambda *_: self.after_blocks())

    def after_blocks(self):
        if self.phase == "forward":
            self.phase = "head"


class Tracker(Moments, FSDPMemTracker):
    """A tracker of FSDP2 that knows which of its units a step is at."""

    def __init__(self, model, optimizer, args):
        super().__init__(model, optimizer)
        self.begin(args.list)
        self.module = model
        self.blocks = list(blocks_of(model))
        self.units = [(n or "root", m) for n, m in model.named_modules() if isinstance(m, FSDPModule) and m._get_fsdp_state()._fsdp_param_group]
        self.names = {m: n for n, m in self.units}

    def _fsdp_state_pre_forward(self, fsdp_mod, orig_fsdp_state_pre_fw):
        inner = super()._fsdp_state_pre_forward(fsdp_mod, orig_fsdp_state_pre_fw)
        comm = fsdp_mod._get_fsdp_state()._fsdp_param_group._all_gather_comm
        allocate = comm.allocate

        def allocate_output(*args, **kwargs):
            self.making, before = _FSDPRefType.ALL_GATHER, self.making
            result = allocate(*args, **kwargs)
            self.making = before
            return result

        comm.allocate = allocate_output

        def outer(*args, **kwargs):
            self.unit = self.names[fsdp_mod]
            return self.preparing(inner, *args, **kwargs)

        return outer

    def _fsdp_state_post_forward(self, fsdp_mod, orig_fsdp_state_post_fw):
        inner = super()._fsdp_state_post_forward(fsdp_mod, orig_fsdp_state_post_fw)

        def outer(*args, **kwargs):
            result = inner(*args, **kwargs)
            if self.phase == "forward" and fsdp_mod is self.blocks[-1]:
                self.phase = "head"
                self.unit = "root"
            return result

        return outer

    def _fsdp_param_group_pre_backward(self, fsdp_mod, orig_fsdp_param_group_pre_backward):
        inner = super()._fsdp_param_group_pre_backward(fsdp_mod, orig_fsdp_param_group_pre_backward)

        def outer(*args, **kwargs):
            self.unit = self.names[fsdp_mod]
            if fsdp_mod is self.blocks[-1]:
                self.phase = "blocks_backward"
            return self.preparing(inner, *args, **kwargs)

        return outer

    def _fsdp_param_group_post_backward(self, fsdp_mod, orig_fsdp_param_group_post_backward):
        inner = super()._fsdp_param_group_post_backward(fsdp_mod, orig_fsdp_param_group_post_backward)

        def outer(*args, **kwargs):
            self.making = _FSDPRefType.REDUCE_SCATTER
            inner(*args, **kwargs)
            self.making = None
            if fsdp_mod is self.blocks[0]:
                self.phase = "end_backward"
                self.unit = "root"

        return outer

    def preparing(self, inner, *args, **kwargs):
        """Calls what gathers a unit: what is allocated meanwhile are its parameters."""
        self.making = _FSDPRefType.UNSHARDED_PARAM
        result = inner(*args, **kwargs)
        self.making = None
        return result

    def label(self):
        """Gradients of gathered units are called so as soon as they are there, not first when reduced."""
        if self.phase in ("forward", "head"):
            return
        for _, unit in self.units:
            for p in unit._get_fsdp_state()._fsdp_param_group.fsdp_params:
                for grad in (getattr(p, "_unsharded_param", None) is not None and p._unsharded_param.grad,
                             p.unsharded_accumulated_grad):
                    if isinstance(grad, torch.Tensor):
                        self._update_and_maybe_create_winfos(grad, _FSDPRefType.UNSHARDED_GRAD)

    def gathered(self):
        return [n for n, m in self.units if m._get_fsdp_state()._fsdp_param_group.is_unsharded]


def blocks_of(model):
    """The longest list of modules: the decoder's blocks."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len)


def shard(model, mesh, args):
    policy = MixedPrecisionPolicy()
    if args.precision == "bf16-mixed":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {"mesh": mesh, "mp_policy": policy}
    if args.no_reshard:
        options["reshard_after_forward"] = False
    for block in blocks_of(model):
        fully_shard(block, **options)
    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    tied = first.weight is last.weight
    if args.units != "blocks" and not tied:
        fully_shard(first, **options)
    if args.units == "ends" and not tied:
        fully_shard(last, **options)
    if args.units == "tail":
        fully_shard(first if tied else last, **{**options, "reshard_after_forward": False})
    fully_shard(model, **options)


def replicate(model, args):
    """DDP, its collectives replaced by none."""

    def reduced(_, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    module = DistributedDataParallel(model, init_sync=False, gradient_as_bucket_view=args.ddp == "views")
    module.register_comm_hook(None, reduced)
    return module


class Adapted(torch.nn.Module):
    """A frozen linear map, and two small ones beside it."""

    def __init__(self, base, rank, dtype):
        super().__init__()
        self.base = base
        kind = {"bias": False, "dtype": dtype, "device": base.weight.device}
        self.down = torch.nn.Linear(base.in_features, rank, **kind)
        self.up = torch.nn.Linear(rank, base.out_features, **kind)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * 2.0


def adapt(model, rank, precision):
    """Adapters beside all linear maps of the blocks; what is not theirs is frozen, in bf16 where that is computed in."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model.requires_grad_(False)
    for block in blocks_of(model):
        maps = [(m, n, c) for m in block.modules() for n, c in m.named_children() if isinstance(c, torch.nn.Linear)]
        for module, name, child in maps:
            setattr(module, name, Adapted(child, rank, dtype))


def make_model(config, mesh, args):
    rest_in_bf16 = args.precision == "bf16" or (args.lora and args.precision == "bf16-mixed")
    dtype = torch.bfloat16 if rest_in_bf16 else torch.float32
    with torch.device("cpu" if args.ddp else "meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="gpu")
    model.train()
    if args.lora:
        adapt(model, args.lora, args.precision)
    if args.checkpoint == "children":
        for block in blocks_of(model):
            for name, child in list(block.named_children()):
                block.register_module(name, checkpoint_wrapper(child, preserve_rng_state=False))
    elif args.checkpoint:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if not args.ddp:
        shard(model, mesh, args)
        model.to_empty(device="cpu")
    return model


def make_optimizer(model, args):
    """AdamW with its moments, as after a step."""
    how = {"foreach": {"foreach": True}, "fused": {"fused": True}, "single": {"foreach": False}}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **how[args.optimizer])
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.requires_grad else None
    optimizer.step()
    optimizer.zero_grad()
    return optimizer


def run_step(optimizer, tracker, ids, args):
    model = tracker.module
    cast = args.ddp and args.precision == "bf16-mixed"
    for i in range(args.accumulation):
        last = i + 1 == args.accumulation
        if args.ddp:
            model.require_backward_grad_sync = last or not args.no_sync
        elif args.no_sync:
            model.set_requires_gradient_sync(last)
        tracker.reset_mod_stats()
        tracker.prefix = "" if last else "earlier_"
        tracker.phase = "forward"
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(cast)):
            loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        tracker.phase = "head_backward"
        tracker.unit = "root"
        loss.backward()
        del loss
    tracker.phase = "step"
    tracker.unit = ""
    optimizer.step()


def measure(config, mesh, args):
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = make_model(config, mesh, args)
        optimizer = make_optimizer(model, args)
        ids = torch.zeros(args.micro_batch, args.sequence, dtype=torch.int64)
        if args.ddp:
            tracker = Replicas(model, optimizer, args)
        else:
            tracker = Tracker(model, optimizer, args)
            tracker.track_inputs((ids,))
        with tracker:
            run_step(optimizer, tracker, ids, args)
        tracker.moments["parameters"] = sum(p.numel() for p in model.parameters())
    return tracker.moments


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--config", required=True)
    p.add_argument("--ranks", type=int, required=True)
    p.add_argument("--ddp", nargs="?", const="plain", choices=["plain", "views"],
                   help="DDP instead of FSDP2; views: gradient_as_bucket_view")
    p.add_argument("--lora", type=int, metavar="RANK", help="adapters beside the blocks' linear maps, all else frozen")
    p.add_argument("--replicate", type=int, default=1, help="ranks that hold each shard (HSDP)")
    p.add_argument("--micro-batch", type=int, default=1)
    p.add_argument("--sequence", type=int, default=4096)
    p.add_argument("--precision", choices=["bf16-mixed", "bf16", "f32"], default="bf16-mixed")
    p.add_argument("--checkpoint", nargs="?", const="blocks", choices=["blocks", "children"],
                   help="recompute each block in backward; children: each of its modules by itself")
    p.add_argument("--no-reshard", action="store_true", help="reshard_after_forward=False")
    p.add_argument("--units", choices=["blocks", "ends", "tail"], default="blocks",
                   help="ends: embedding and head too; tail: so, and the head is kept gathered after forward")
    p.add_argument("--accumulation", type=int, default=1)
    p.add_argument("--no-sync", action="store_true", help="reduce gradients after the last pass only")
    p.add_argument("--optimizer", choices=["foreach", "fused", "single"], default="foreach")
    p.add_argument("--list", metavar="PHASE", help="also what is alive at that phase's largest moment")
    return p.parse_args(argv)


def main(argv):
    args = parse(argv)
    ALL_ATTENTION_FUNCTIONS.register("gpu", attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register("gpu", lambda *_, **__: None)
    with open(args.config) as f:
        stored = json.load(f)
    config = transformers.AutoConfig.for_model(stored.pop("model_type"), **stored)
    dist.init_process_group("fake", rank=0, world_size=args.ranks, store=FakeStore())
    if args.replicate > 1:
        mesh = init_device_mesh("cpu", (args.replicate, args.ranks // args.replicate),
                                mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh("cpu", (args.ranks,))
    with contextlib.redirect_stdout(sys.stderr):
        moments = measure(config, mesh, args)
    count = moments.pop("parameters")
    peak = max(moments, key=lambda phase: moments[phase]["total"])
    print(json.dumps({"asked": vars(args), "parameters": count, "peak": peak,
                      "peak_bytes": moments[peak]["total"], "phases": moments}))


if __name__ == "__main__":
    main(sys.argv[1:])
