"""Plan the training of a PyTorch module as it is, without exporting it.

    import topt_torch
    plan = topt_torch.plan(model, batch, hw="h100-80-dgx")  # what `topt plan --json` prints
    plan["untraced"]                          # parameters that no operator was found for: their numbers

The module is called once with `batch` (a tensor, a tuple, or a dict of keywords), on the meta device, where
nothing is computed. Calls of torch's functions become operators; views, casts and what costs next to nothing
are looked through. Needs torch alone, 1.13 or later, and topt in the PATH."""
import copy
import json
import subprocess
import tempfile
from collections import namedtuple
from functools import partial

import torch
from torch.overrides import TorchFunctionMode


# What is known of a tensor that an operator makes: the operator, and its features (an image's: channels, rows
# and columns); of these the first and how many the tensor has; the queries and keys that it is scores of,
# whether they are masked; whether it is a root mean square's inverse.
Value = namedtuple("Value", "op features part scores masked rms", defaults=(None, None, False, False))
Weight = namedtuple("Weight", "name rows")  # of a parameter, a view of one, or rows of one looked up
TOKENS = "tokens"  # of tokens


def window(kernel, stride, padding, dilation=0):
    """What slides over an image, from torch's arguments, each a number or two."""
    two = lambda v: v if isinstance(v, (tuple, list)) else (v, v)
    (kh, kw), (sh, sw), (dh, dw) = two(kernel), two(stride), two(dilation)
    same = (dh * (kh - 1) // 2, dw * (kw - 1) // 2)
    ph, pw = same if padding == "same" else two(0 if padding == "valid" else padding)
    return dict(kernel_h=kh, kernel_w=kw, stride_h=sh, stride_w=sw, pad_top=ph, pad_bottom=ph, pad_left=pw,
                pad_right=pw, dilation_h=dh, dilation_w=dw)


class Trace(TorchFunctionMode):
    """Makes operators of calls. What CALLS names gets a call's output and arguments, and gives its value."""

    def __init__(self):
        super().__init__()
        self.known = {}  # by id: the tensor, kept so that nothing else gets its id, and what is known of it
        self.ops, self.used = [], set()

    def of(self, x, kind=Value):
        known = self.known.get(id(x), (x, None))[1]
        return known if isinstance(known, kind) else None

    def put(self, x, known):
        self.known[id(x)] = x, known
        return x

    def add(self, kind, *inputs, label=None, **attrs):
        name = f"{len(self.ops)}.{label or kind}"
        attrs = {key: v for key, v in attrs.items() if v}
        self.ops.append({"name": name, "kind": kind, "inputs": list(inputs), **attrs})
        return name

    def units(self, op, count, unit=1):
        return self.add("regroup", op, features=count, features_unit=unit)

    def named(self, *tensors):
        names = [w.name for w in (self.of(x, Weight) for x in tensors) if w]
        self.used.update(names)
        return names[0] if names else None

    def rows(self, x):
        """The operator of a tensor that has all its features; an image that is one no more is rows."""
        v = self.of(x)
        if isinstance(v.features, tuple) and x.dim() < 4:
            pixels, width = x.dim() == 3 and x.shape[-1] == v.features[0], x.shape[-1]
            op = self.add("tokens", v.op) if pixels else self.units(self.add("flatten", v.op), width)
            v = v._replace(op=op, features=width)
        if v.part:
            first, count = v.part
            op = self.add("slice", self.units(v.op, 1, v.features), offset=first, features_unit=count)
            v = v._replace(op=self.units(op, count), features=count, part=None)
        self.put(x, v)
        return v.op

    def step(self, x, kind, *others, **attrs):
        """An operator of the tensor, and perhaps of others, with an output like its own."""
        return Value(self.add(kind, self.rows(x), *others, **attrs), self.of(x).features)

    def same(self, out, *args, rms=False, **_):
        v = next(filter(None, map(self.of, args)))
        v = v._replace(rms=v.rms or rms)
        return [v] if isinstance(out, (tuple, list)) else v

    def linear(self, out, x, weight, bias=None):
        op, name, width = self.rows(x), self.named(weight), out.shape[-1]
        tables = [o for o in self.ops if o["kind"] == "embedding"]
        table = next((o for o in tables if o["name"].endswith(f".{name}")), None)
        if table and not table["inputs"]:  # the head is the table of tokens
            shape = {key: table.pop(key) for key in ("vocab", "features")}
            self.ops.insert(0, {"name": "table", "kind": "variable", "inputs": [], **shape})
            table["inputs"] = ["table"]
        if table:
            y = self.add("linear", self.units(op, x.shape[-1]), "table")
        else:
            y = self.add("linear", op, label=name, features=width)
        self.named(bias)
        return Value(y if bias is None else self.add("bias", y), width)

    def conv2d(self, out, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        y, name, c = self.rows(x), self.named(weight, bias), out.shape[1]
        size = window(weight.shape[2:], stride, padding, dilation)
        if groups > 1:
            y = self.units(y, groups, x.shape[1] // groups)
            y = self.units(self.add("conv_grouped", y, features_unit=c // groups, **size), c)
        else:
            y = self.add("conv", y, label=name, features=c, **size)
        return Value(y if bias is None else self.add("bias", y), tuple(out.shape[1:]))

    def pool(self, out, x, kernel_size, stride=None, padding=0, *_, average=False, **_kw):
        size = window(kernel_size, stride or kernel_size, padding)
        return Value(self.add("pool", self.of(x).op, average=average, **size), tuple(out.shape[1:]))

    def mean(self, out, x, *_, **_kw):
        if isinstance(self.of(x).features, tuple) and x.dim() == 4:
            return Value(self.add("global_pool", self.of(x).op), x.shape[1])
        if x.dim() == 3 and out.dim() == 2:
            return self.step(x, "reduce_sequence", mean=True)
        return self.same(out, x)

    def unary(self, _out, x, *_, kind, **_kw):
        return self.step(x, "unary", activation=kind)

    def norm(self, _out, x, _shape, weight=None, bias=None, *_, rms=False, **_kw):
        op, n, width = self.rows(x), self.of(x).features, x.shape[-1] if weight is None else weight.numel()
        how = dict(label=self.named(weight, bias), rms=rms, plain=weight is None)
        if width == n:
            return Value(self.add("norm", op, **how), n)
        return Value(self.add("head_norm", self.units(op, n // width, width), head_dim=width, **how), n)

    def attend(self, _out, q, k, v, *_, attn_mask=None, is_causal=False, **_kw):
        """Queries, keys, values [samples, heads, positions, numbers], of one projection or of several."""
        a, b, c = self.of(q), self.of(k), self.of(v)
        heads, width, wide = q.shape[1] if q.dim() == 4 else 1, q.shape[-1], v.shape[-1]
        attrs = dict(heads=heads, head_dim=width, causal=bool(is_causal) or attn_mask is not None)
        if a.op == b.op == c.op and a.features > heads * width:
            groups = (a.features - heads * width) // (width + wide)
            y = self.units(a.op, groups, a.features // groups)
            y = self.add("attention", y, kv_heads=groups, **attrs)
        else:
            groups = (b.part[1] if b.part else b.features) // width
            kv = [self.units(self.rows(t), groups, t.shape[-1]) for t in (k, v)]
            kv, y = self.add("concat", *kv), self.units(self.rows(q), groups, heads // groups * width)
            y = self.add("attend", y, kv, kv_heads=groups, v_head_dim=wide, **attrs)
        return Value(self.units(y, heads * wide), heads * wide)

    def module_attention(self, out, q, k, _v, width, heads, qkv, qkv_bias, _bk, _bv, _zero, _drop, last,
                         last_bias, attn_mask=None, is_causal=False, **_):
        if self.of(q).op != self.of(k).op or qkv is None:
            return self.same(out, q)  # its parameters are told of
        y = self.linear(q.new_empty(3 * width), q, qkv, qkv_bias)
        y, causal = self.units(y.op, heads, 3 * width // heads), bool(is_causal) or attn_mask is not None
        y = self.add("attention", y, heads=heads, head_dim=width // heads, causal=causal)
        return [self.linear(out[0], self.put(out[0], Value(y, width)), last, last_bias)]

    def product(self, out, x, y):
        a, b = self.of(x), self.of(y)
        if a is None or b is None:
            return self.linear(out, x, y) if self.of(y, Weight) else a or b
        if a.scores:
            return self.attend(out, *a.scores, y, is_causal=a.masked)
        return a._replace(part=None, scores=(x, self.put(y.transpose(-1, -2), b)))

    def both(self, out, x, y, *_, kind, **_kw):
        """A sum or product: of samples, with a parameter, or with a number, a mask, angles of positions."""
        x, y = (y, x) if self.of(x) is None else (x, y)
        a, b, weight = self.of(x), self.of(y), self.of(y, Weight)
        if b:
            if a.scores or b.scores or (a.op == b.op and (kind == "add" or a.rms or b.rms)):
                return Value(*a[:3], *(of_a or of_b for of_a, of_b in zip(a[3:], b[3:])))
            return self.step(x, "weigh" if kind == "mul" and x.shape != y.shape else kind, self.rows(y))
        if not weight:
            mask = kind == "add" and isinstance(y, torch.Tensor) and y.dim() > 1
            return a._replace(masked=a.masked or mask)
        if kind == "mul":
            return self.norm(out, x, (), y, rms=True) if a.rms else self.step(x, "gain", label=self.named(y))
        name, table = self.named(y), weight.rows or (y.shape[-2] if y.dim() > 1 else 1)
        if 1 < table < out.shape[1]:  # kinds of tokens
            return self.step(x, "add", self.add("embedding", label=name, vocab=table, features=out.shape[-1]))
        if table > 1:
            return self.step(x, "position", label=name, positions=table)
        return self.step(x, "bias", label=name)

    def cut(self, out, x, index=None, *_, **_kw):
        """Parts of the features, one position, or a view, of an index or (not looked at) sizes."""
        x, index = x if self.of(x) else index, index if isinstance(index, tuple) else (index, ...)
        v, one = self.of(x), isinstance(out, torch.Tensor)
        if one and x.dim() == 3 and out.dim() == 2 and not v.part:
            at = index[1] if index[1:] and isinstance(index[1], int) else 0
            return self.step(x, "select", offset=at % x.shape[1])
        made, first = [], index[-1].indices(x.shape[-1])[0] if isinstance(index[-1], slice) else 0
        for t in [out] if one else out:
            own = not v.part and not v.scores and t.dim() and t.shape[-1] < x.shape[-1] == v.features
            made.append(v._replace(part=(first, t.shape[-1])) if own else v)
            first += t.shape[-1] if t.dim() else 0
        return made[0] if one else made

    def joined(self, out, parts, *_, **_kw):
        known, image = [t for t in parts if self.of(t)], out.dim() == 4
        ops, d = {self.of(t).op: t for t in known}, 1 if image else -1
        if len(ops) > 1 and out.shape[d] > known[0].shape[d]:
            op, *rest = [self.rows(t) for t in ops.values()]
            for other in rest:
                op = self.add("concat_counts", op, other)
            return Value(op, tuple(out.shape[1:]) if image else out.shape[-1])
        if len(parts) == 2 and self.of(parts[0], Weight) and out.dim() == 3 and parts[0].shape[1] == 1:
            return self.step(known[0], "prepend", label=self.named(parts[0]))
        v = self.of(known[0])
        return v._replace(part=None) if len(known) > 1 else v

    def looked_up(self, out, ids, weight, *_, **_kw):
        table = self.of(weight, Weight)
        if not self.of(ids, str):  # positions, kinds of tokens
            return table and table._replace(rows=weight.shape[0])
        op = self.add("embedding", label=self.named(weight), vocab=weight.shape[0], features=out.shape[-1])
        return Value(op, out.shape[-1])

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name, found = getattr(func, "__name__", ""), None
        if name in ("__bool__", "item") and args[0].is_meta:
            return True  # such as whether all of a mask is set
        out = func(*args, **(kwargs or {}))
        sources = args[0] if name in ("cat", "stack") else args if name not in ASKS else ()
        if name == "embedding" or any(map(self.of, sources)):
            found = CALLS.get(name, Trace.same)(self, out, *args, **(kwargs or {}))
        for t, v in zip(out, found) if isinstance(found, list) else [(out, found)]:
            source = self.of(args[0], (Weight, str)) if args else None
            known = v or source
            if known and isinstance(t, torch.Tensor) and not (known == TOKENS and t.is_floating_point()):
                self.put(t, known)
        return out


ASKS = ("__get__", "__set__", "dim", "size")  # functions that only ask
TABLE = {  # torch's functions, and what makes operators of calls of them; of all others Trace.same
    "embedding": Trace.looked_up, "cat stack": Trace.joined, "linear": Trace.linear, "conv2d": Trace.conv2d,
    "addmm": lambda trace, out, bias, x, weight, **_: trace.linear(out, x, weight, bias),
    "matmul __matmul__ bmm": Trace.product, "scaled_dot_product_attention": Trace.attend,
    "multi_head_attention_forward": Trace.module_attention,
    "split chunk unbind tensor_split __getitem__": Trace.cut,
    "layer_norm": Trace.norm, "rms_norm": partial(Trace.norm, rms=True),
    "rsqrt": partial(Trace.same, rms=True),
    "batch_norm": lambda trace, _out, x, _mean, _variance, weight=None, bias=None, *_, **_kw:
        trace.step(x, "batch_norm", label=trace.named(weight, bias)),
    "max_pool2d _max_pool2d": Trace.pool, "avg_pool2d": partial(Trace.pool, average=True),
    "mean adaptive_avg_pool2d": Trace.mean,
    "add __add__ add_ __iadd__ __radd__ sub __sub__": partial(Trace.both, kind="add"),
    "mul __mul__ mul_ __imul__ __rmul__": partial(Trace.both, kind="mul"),
    "relu relu_": partial(Trace.unary, kind="relu"), "gelu": partial(Trace.unary, kind="gelu_erf"),
    "hardswish": partial(Trace.unary, kind="hard_swish"),
    **{kind: partial(Trace.unary, kind=kind) for kind in "silu tanh sigmoid leaky_relu elu softplus".split()}}
CALLS = {name: call for names, call in TABLE.items() for name in names.split()}


def document(model, batch, loss=None):
    """The module as a native document, and parameters in none of its operators: their numbers, by name."""
    meta = lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x
    trace, shadow, seq = Trace(), {id(b): meta(b) for b in model.buffers()}, 1
    for name, p in model.named_parameters():
        shadow[id(p)] = trace.put(torch.nn.Parameter(meta(p.detach()), False), Weight(name, 0))
    twin = copy.deepcopy(model, shadow)
    keywords = batch if isinstance(batch, dict) else {}
    args = batch if isinstance(batch, (tuple, list)) else () if keywords else (batch,)
    args, keywords = [meta(b) for b in args], {key: meta(b) for key, b in keywords.items()}
    data = [t for t in [*args, *keywords.values()] if isinstance(t, torch.Tensor)]
    for t in data:
        if not t.is_floating_point():
            trace.put(t, TOKENS)
        elif t.dim() == 4:
            c, h, w = t.shape[1:]
            trace.put(t, Value(trace.add("image", channels=c, height=h, width=w), (c, h, w)))
        else:
            trace.put(t, Value(trace.add("input", features=t.shape[-1]), t.shape[-1]))
        seq = max(seq, t.shape[1] if t.dim() == 2 + t.is_floating_point() else 1)
    with torch.no_grad(), trace:
        out = twin(*args, **keywords)
    outs = list(out.values()) if isinstance(out, dict) else out if isinstance(out, (tuple, list)) else [out]
    last = next((t for t in outs if trace.of(t)), None)
    if last is None:
        raise ValueError("topt_torch: the module's output is not made of its batch by functions that "
                         "are known")
    op = trace.rows(last)
    op = trace.add("tokens", op) if isinstance(trace.of(last).features, tuple) else op
    lost = {name: p.numel() for name, p in model.named_parameters() if name not in trace.used}
    if lost:
        mean = trace.add("reduce_features", op, mean=True)
        op = trace.add("weigh", op, trace.add("beside", mean, extra=sum(lost.values())))
    needed = {trace.add(loss or ("cross_entropy" if last.shape[-1] > 1 else "mse"), op)}
    for o in reversed(trace.ops):
        needed.update(o["inputs"] if o["name"] in needed else ())
    return {"format": "topt-model/1", "name": type(model).__name__, "batch": data[0].shape[0], "seq": seq,
            "ops": [o for o in trace.ops if o["name"] in needed]}, lost


def plan(model, batch, hw, topt="topt", loss=None, **options):
    """`topt plan` of the module; `options` are that command's: gpus=8, max_gpus=64 ("_" stands for "-")."""
    doc, lost = document(model, batch, loss)
    given = [["--" + key.replace("_", "-"), *([] if v is True else [str(v)])] for key, v in options.items()]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(doc, file)
        file.flush()
        command = [topt, "plan", file.name, "--hw", hw, "--json", *sum(given, [])]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return {**json.loads(run.stdout), "untraced": lost}
