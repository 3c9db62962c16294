"""Plan the training of a PyTorch module as it is, without exporting it.

    import topt_torch
    plan = topt_torch.plan(model, batch, hw="h100-80-dgx")  # what `topt plan --json` prints
    plan["untraced"]  # parameters that no operator was found for: their numbers

The module is called once with `batch` (a tensor, a tuple, or a dict of keywords), on the meta
device, where nothing is computed. Calls of torch's functions become operators; views, casts and
what costs next to nothing are looked through. Needs torch, 1.13 or later, and topt in the PATH."""
import copy
import json
import subprocess
from collections import Counter, namedtuple
from functools import partial, reduce

import torch
from torch.overrides import TorchFunctionMode

# A tensor's attribute `topt` says what made it. Value: the operator; its features (of an image:
# channels, rows, columns); of a part of another's features that one; of scores their queries and
# keys, and whether they are masked; whether it is a root mean square's inverse.
Value = namedtuple("Value", "op features whole scores masked rms",
                   defaults=(None, None, False, False))
Weight = namedtuple("Weight", "name shared rows", defaults=(0,))  # or a view, or rows looked up
TOKENS = "tokens"


def of(x, kind=Value):
    known = getattr(x, "topt", None)
    return known if isinstance(known, kind) else None


class Trace(TorchFunctionMode):
    """Makes operators of calls. A method of TABLE gets a call's output and arguments, and gives
    what made the output: a Value, or an operator that has the output's features."""

    def __init__(self):
        super().__init__()
        self.ops, self.used, self.tables, self.layer = [], set(), {}, {}

    def add(self, kind, *inputs, weights=(), **attrs):
        """An operator, named after the first parameter that it has."""
        names = [of(w, Weight).name for w in weights if of(w, Weight)]
        self.used.update(names)
        name = f"{len(self.ops)}.{[*names, kind][0]}"
        attrs = {key: v for key, v in attrs.items() if v}
        self.ops.append({"name": name, "kind": kind, "inputs": list(inputs), **self.layer,
                         **attrs})
        return name

    def number(self, module):
        """Operators of the outermost ModuleLists' children belong to layers, which FSDP gathers
        and checkpoints by itself."""
        for i, child in enumerate(layers_of(module)):
            child.register_forward_pre_hook(lambda *_, i=i: setattr(self, "layer", {"layer": i}))
            child.register_forward_hook(lambda *_: setattr(self, "layer", {}))

    def units(self, op, count, unit=1):
        return self.add("regroup", op, features=count, features_unit=unit)

    def step(self, x, kind, *others, **attrs):
        """An operator of the tensor, and perhaps of others, with an output like its own."""
        return Value(self.add(kind, of(x).op, *others, **attrs), of(x).features)

    def biased(self, op, bias):
        return op if bias is None else self.add("bias", op, weights=[bias])

    def same(self, out, *args, rms=False, **_):
        v = next(filter(None, map(of, args)))
        if isinstance(v.features, tuple) and isinstance(out, torch.Tensor) and out.dim() < 4:
            if out.dim() == 3:
                return Value(self.add("tokens", v.op), v.features[0])
            return self.units(self.add("flatten", v.op), out.shape[-1])
        return v._replace(rms=v.rms or rms)

    def linear(self, out, x, weight, bias=None):
        table = self.tables.get(of(weight, Weight))  # that of the tokens, where it is the head too
        if table:
            y = self.add("linear", self.units(of(x).op, x.shape[-1]), table)
        else:
            y = self.add("linear", of(x).op, weights=[weight], features=out.shape[-1])
        return self.biased(y, bias)

    def slid(self, kind, y, out, x, kernel, stride, dilation=1, **attrs):
        """A window over an image, padded so that its output is as large as torch's: F.pad too."""
        size_of_x = of(x).features[1:] if isinstance(of(x).features, tuple) else x.shape[2:]
        for i, side, before, after in (0, "h", "top", "bottom"), (1, "w", "left", "right"):
            all_three = kernel, stride, dilation
            size, by, apart = (v if isinstance(v, int) else v[i] for v in all_three)
            pad = max(0, (out.shape[i + 2] - 1) * by + apart * (size - 1) + 1 - size_of_x[i])
            attrs.update({f"kernel_{side}": size, f"stride_{side}": by, f"dilation_{side}": apart,
                          f"pad_{before}": (pad + (by > 1)) // 2, f"pad_{after}": (pad + 1) // 2})
        return self.add(kind, y, **attrs)

    def conv2d(self, out, x, weight, bias=None, stride=1, _padding=0, dilation=1, groups=1):
        y, c = of(x).op, out.shape[1]
        if isinstance(of(x).features, int):  # one pixel, such as the mean of all
            y = self.add("linear", y, weights=[weight], features=c)
            return Value(self.biased(y, bias), c)
        how = dict(kernel=weight.shape[2:], stride=stride, dilation=dilation, weights=[weight])
        if groups == 1:
            return self.biased(self.slid("conv", y, out, x, features=c, **how), bias)
        y = self.units(y, groups, x.shape[1] // groups)
        y = self.slid("conv_grouped", y, out, x, features_unit=c // groups, **how)
        return self.biased(self.units(y, c), bias)

    def pool(self, out, x, size, stride=None, *_, average=False, **_kw):
        return self.slid("pool", of(x).op, out, x, size, stride or size, average=average)

    def mean(self, out, x, *_, **_kw):
        if isinstance(of(x).features, tuple) and x.dim() == 4:
            return Value(self.add("global_pool", of(x).op), x.shape[1])
        over = x.dim() == 3 and out.dim() == 2
        return self.step(x, "reduce_sequence", mean=True) if over else self.same(out, x)

    def norm(self, _out, x, _shape, weight=None, bias=None, *_, rms=False, **_kw):
        n, width = of(x).features, x.shape[-1] if weight is None else weight.numel()
        how = dict(weights=[weight, bias], rms=rms, plain=weight is None)
        if width == n:
            return self.step(x, "norm", **how)
        op = self.units(of(x).op, n // width, width)
        return Value(self.add("head_norm", op, head_dim=width, **how), n)

    def attend(self, _out, q, k, v, attn_mask=None, *_, is_causal=False, **_kw):
        """Queries, keys, values [samples, heads, positions, numbers], of one projection or more."""
        parts, heads = [of(t) for t in (q, k, v)], q.shape[1] if q.dim() == 4 else 1
        width, wide, causal = q.shape[-1], v.shape[-1], bool(is_causal) or attn_mask is not None
        how = dict(heads=heads, head_dim=width, causal=causal)
        whole, *others = [part.whole or part[:2] for part in parts]
        if others == [whole, whole] and whole[1] > heads * width:
            groups = (whole[1] - heads * width) // (width + wide)
            y = self.units(whole[0], groups, whole[1] // groups)
            y = self.add("attention", y, kv_heads=groups, **how)
        else:
            groups = parts[1].features // width
            sizes = heads // groups * width, width, wide
            y, *kv = [self.units(part.op, groups, n) for part, n in zip(parts, sizes)]
            kv = self.add("concat", *kv)
            y = self.add("attention", y, kv, kv_heads=groups, v_head_dim=wide, **how)
        return Value(self.units(y, heads * wide), heads * wide)

    def multi_head(self, out, q, k, _v, width, heads, qkv, qkv_bias, _bk, _bv, _zero, _drop, last,
                   last_bias, attn_mask=None, is_causal=False, **_):
        if of(q).op != of(k).op or qkv is None:
            return self.same(out, q)  # its parameters are told of
        all_three = q.new_empty(1, heads, 1, width // heads)
        all_three.topt = Value(self.linear(q.new_empty(3 * width), q, qkv, qkv_bias), 3 * width)
        out[0].topt = self.attend(out, *[all_three] * 3, attn_mask, is_causal=is_causal)
        return [Value(self.linear(out[0], out[0], last, last_bias), width)]

    def product(self, out, x, y):
        if not (of(x) and of(y)):
            return self.linear(out, x, y) if of(y, Weight) else of(x) or of(y)
        if of(x).scores:
            return self.attend(out, *of(x).scores, y, is_causal=of(x).masked)
        keys = y.transpose(-1, -2)
        keys.topt = of(y)
        return of(x)._replace(scores=(x, keys))

    def both(self, out, x, y, *_, kind, **_kw):
        """A sum or product with a value, a parameter, or a number, a mask, angles of positions."""
        x, y = (y, x) if of(x) is None else (x, y)
        a, b, weight = of(x), of(y), of(y, Weight)
        if b:
            if a.scores or b.scores or (a.op == b.op and (kind == "add" or a.rms or b.rms)):
                return Value(*a[:3], *(of_a or of_b for of_a, of_b in zip(a[3:], b[3:])))
            return self.step(x, "weigh" if kind == "mul" and x.shape != y.shape else kind, b.op)
        if not weight:
            mask = kind == "add" and isinstance(y, torch.Tensor) and y.dim() > 1
            return a._replace(masked=a.masked or mask)
        if kind == "mul":
            if a.rms:
                return self.norm(out, x, (), y, rms=True)
            return self.step(x, "gain", weights=[y])
        rows = weight.rows or (y.shape[-2] if y.dim() > 1 else 1)
        if 1 < rows < out.shape[1]:  # kinds of tokens
            kinds = self.add("embedding", weights=[y], vocab=rows, features=out.shape[-1])
            return self.step(x, "add", kinds)
        how = dict(kind="position", positions=rows) if rows > 1 else dict(kind="bias")
        return self.step(x, weights=[y], **how)

    def cut(self, out, x, index=None, *_, **_kw):
        """Parts of the features, one position, or a view, by an index or (not looked at) sizes."""
        v, index = of(x) or of(index), index if isinstance(index, tuple) else (index, ...)
        one, made = isinstance(out, torch.Tensor), []
        if one and x.dim() == 3 and out.dim() == 2 and not v.whole:
            at = index[1] if index[1:] and isinstance(index[1], int) else 0
            return self.step(x, "select", offset=at % x.shape[1])
        first = index[-1].indices(x.shape[-1])[0] if isinstance(index[-1], slice) else 0
        for n in (t.shape[-1] if t.dim() else 0 for t in ([out] if one else out)):
            made.append(v)
            if 0 < n < x.shape[-1] == v.features and not v.scores:
                op, how = self.units(v.op, 1, v.features), dict(offset=first, features_unit=n)
                made[-1] = Value(self.units(self.add("slice", op, **how), n), n, v.whole or v[:2])
            first += n
        return made

    def joined(self, out, parts, *_, **_kw):
        known, d = list(filter(of, parts)), 1 if out.dim() == 4 else -1
        op, *others = dict.fromkeys(of(t).op for t in known)
        if others and out.shape[d] > known[0].shape[d]:
            return reduce(partial(self.add, "concat_counts"), others, op)
        if len(parts) == 2 and of(parts[0], Weight) and out.dim() == 3 and parts[0].shape[1] == 1:
            return self.step(known[0], "prepend", weights=[parts[0]])
        return of(known[0])

    def looked_up(self, out, ids, weight, *_, **_kw):
        table, shape = of(weight, Weight), dict(vocab=weight.shape[0], features=out.shape[-1])
        if not of(ids, str):  # positions, kinds of tokens
            return table and table._replace(rows=weight.shape[0])
        if not (table and table.shared):
            return self.add("embedding", weights=[weight], **shape)
        variable = self.add("variable", weights=[weight], **shape)
        return self.add("embedding", self.tables.setdefault(table, variable))

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, found = getattr(func, "__name__", ""), None
        if name in ("__bool__", "item") and args[0].is_meta:
            return True  # such as whether all of a mask is set
        out, name = func(*args, **(kwargs or {})), name.strip("_")
        if name == "embedding" or any(map(of, args[0] if name in ("cat", "stack") else args)):
            found = TABLE.get(name, Trace.same)(self, out, *args, **(kwargs or {}))
        source = of(args[0], (Weight, str)) if args and isinstance(out, torch.Tensor) else None
        for t, v in zip(out if isinstance(out, (tuple, list)) else [out],
                        found if isinstance(found, list) else [found]):
            if isinstance(v, str):
                v = Value(v, tuple(t.shape[1:]) if t.dim() == 4 else t.shape[-1])
            v = v or (None if source == TOKENS and t.is_floating_point() else source)
            if v and isinstance(t, torch.Tensor):
                t.topt = v
        return out


def unary(kind):
    return lambda trace, _, x, *_a, **_kw: trace.step(x, "unary", activation=kind)


CALLS = {  # names of torch's functions without underscores around, and what is made of their calls
    "linear": Trace.linear, "matmul bmm": Trace.product, "conv2d": Trace.conv2d,
    "addmm": lambda trace, out, bias, x, weight, **_: trace.linear(out, x, weight, bias),
    "embedding": Trace.looked_up, "cat stack": Trace.joined,
    "split chunk unbind tensor_split getitem": Trace.cut,
    "scaled_dot_product_attention": Trace.attend, "multi_head_attention_forward": Trace.multi_head,
    "layer_norm": Trace.norm, "rms_norm": partial(Trace.norm, rms=True),
    "rsqrt": partial(Trace.same, rms=True), "mean adaptive_avg_pool2d": Trace.mean,
    "batch_norm": lambda trace, _, x, _mean, _variance, weight=None, bias=None, *_a, **_kw:
        trace.step(x, "batch_norm", weights=[weight, bias]),
    "max_pool2d": Trace.pool, "avg_pool2d": partial(Trace.pool, average=True),
    "add iadd radd sub": partial(Trace.both, kind="add"),
    "mul imul rmul": partial(Trace.both, kind="mul"),
    "gelu": unary("gelu_erf"), "hardswish": unary("hard_swish"),
    **{kind: unary(kind) for kind in "relu silu tanh sigmoid leaky_relu elu softplus".split()}}
TABLE = {name: call for names, call in CALLS.items() for name in names.split()}


def layers_of(module):
    """Children of the outermost ModuleLists that have two of them or more, whatever their classes,
    but no lists: those that topt_apply.py shards and checkpoints one by one."""
    lists = torch.nn.ModuleList, torch.nn.ModuleDict
    for child in module.children():
        if isinstance(child, lists[0]) and len(child) > 1 and not any(isinstance(c, lists) for c in child):
            yield from child
        else:
            yield from layers_of(child)


def document(model, batch, loss=None):
    """The module as a native document, and parameters in none of its operators: their numbers."""
    meta = lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x
    trace, shadow, seq = Trace(), {id(b): meta(b) for b in model.buffers()}, 1
    uses = Counter(id(p) for m in model.modules() for p in m.parameters(False))
    for name, p in model.named_parameters():
        shadow[id(p)] = torch.nn.Parameter(meta(p.detach()), False)
        shadow[id(p)].topt = Weight(name, uses[id(p)] > 1)
    twin = copy.deepcopy(model, shadow)
    trace.number(twin)
    batch = batch if isinstance(batch, (dict, tuple, list)) else (batch,)
    keywords = {key: meta(v) for key, v in batch.items()} if isinstance(batch, dict) else {}
    args = [] if isinstance(batch, dict) else [meta(v) for v in batch]
    data = [t for t in [*args, *keywords.values()] if isinstance(t, torch.Tensor)]
    for t in data:
        seq = max(seq, t.shape[1] if t.dim() == 2 + t.is_floating_point() else 1)
        if not t.is_floating_point():
            t.topt = TOKENS
        elif t.dim() == 4:
            c, h, w = t.shape[1:]
            t.topt = Value(trace.add("image", channels=c, height=h, width=w), (c, h, w))
        else:
            t.topt = Value(trace.add("input", features=t.shape[-1]), t.shape[-1])
    with torch.no_grad(), trace:
        out = twin(*args, **keywords)
    out = out.values() if isinstance(out, dict) else out
    last = next(filter(of, [out] if isinstance(out, torch.Tensor) else out), None)
    if last is None:
        raise ValueError("topt_torch: no known functions lead from the batch to the output")
    op = trace.add("tokens", of(last).op) if isinstance(of(last).features, tuple) else of(last).op
    lost = {name: p.numel() for name, p in model.named_parameters() if name not in trace.used}
    if lost:
        mean = trace.add("reduce_features", op, mean=True)
        op = trace.add("weigh", op, trace.add("beside", mean, extra=sum(lost.values())))
    needed = {trace.add(loss or ("cross_entropy" if last.shape[-1] > 1 else "mse"), op)}
    for o in reversed(trace.ops):
        needed.update(o["inputs"] if o["name"] in needed else ())
    return {"format": "topt-model/1", "name": type(model).__name__, "batch": data[0].shape[0],
            "seq": seq, "ops": [o for o in trace.ops if o["name"] in needed]}, lost


def plan(model, batch, hw, topt="topt", loss=None, **options):
    """`topt plan` of the module; `options` are its own: gpus=8, max_gpus=64 ("_" means "-")."""
    doc, lost = document(model, batch, loss)
    command = [topt, "plan", "/dev/stdin", "--hw", hw, "--json"]
    for key, v in options.items():
        command += ["--" + key.replace("_", "-"), *([] if v is True else [str(v)])]
    run = subprocess.run(command, input=json.dumps(doc), capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return {**json.loads(run.stdout), "untraced": lost}
