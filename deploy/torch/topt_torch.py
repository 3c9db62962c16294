"""Plan the training of a PyTorch module as it is, without exporting it.

    import topt_torch
    plan = topt_torch.plan(model, batch, hw="h100-80-dgx")   # what `topt plan --json` prints
    plan["untraced"]                                         # parameters that no operator was found for: their numbers

The module is called once with `batch` (a tensor, a tuple, or a dict of keywords), on the meta device, where nothing is
computed. Calls of torch's functions become operators; views, casts and what costs next to nothing are looked through.
Needs torch alone, 1.13 or later, and topt in the PATH."""
import copy
import json
import subprocess
import tempfile
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode

UNARY = {"relu": "relu", "relu_": "relu", "gelu": "gelu_erf", "silu": "silu", "tanh": "tanh", "sigmoid": "sigmoid",
         "leaky_relu": "leaky_relu", "elu": "elu", "softplus": "softplus", "hardswish": "hard_swish"}
SUMS = {"add", "__add__", "add_", "__iadd__", "__radd__", "sub", "__sub__"}
PRODUCTS = {"mul", "__mul__", "mul_", "__imul__", "__rmul__"}
NORMS = {"layer_norm": 2, "rms_norm": 2, "batch_norm": 3}  # where their weights are


def value(op, features):
    """What is known of a tensor: its operator and the features of that (an image's: channels, rows, columns); of these
    the first and how many it has; the queries and keys it is scores of, with a mask; a root mean square's inverse?"""
    return SimpleNamespace(op=op, features=features, part=None, scores=None, masked=False, rms=False)


def like(v, **changed):
    return SimpleNamespace(**{**vars(v), **changed})


def window(kernel, stride, padding, dilation=None):
    two = lambda v: tuple(v) if isinstance(v, (tuple, list)) else (v, v)
    (kh, kw), (sh, sw), (dh, dw) = two(kernel), two(stride), two(dilation or 0)
    ph, pw = two(0) if padding == "valid" else (dh * (kh - 1) // 2, dw * (kw - 1) // 2) if padding == "same" else two(padding)
    return dict(kernel_h=kh, kernel_w=kw, stride_h=sh, stride_w=sw, pad_top=ph, pad_bottom=ph, pad_left=pw, pad_right=pw,
                dilation_h=dh, dilation_w=dw)


class Trace(TorchFunctionMode):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights  # by id of a parameter or a view of one: its name, the rows of it as a table
        self.seen, self.alive, self.ops, self.used, self.tokens = {}, [], [], set(), set()

    def add(self, kind, *inputs, label=None, **attrs):
        name = f"{len(self.ops)}.{label or kind}"
        self.ops.append({"name": name, "kind": kind, "inputs": list(inputs), **{key: v for key, v in attrs.items() if v}})
        return name

    def of(self, x):
        return self.seen.get(id(x)) if isinstance(x, torch.Tensor) else None

    def put(self, x, v):
        self.alive.append(x)  # so that nothing else gets its id
        self.seen[id(x)] = v
        return x

    def named(self, *weights):
        names = [self.weights[id(w)][0] for w in weights if id(w) in self.weights]
        self.used.update(names)
        return names[0] if names else None

    def units(self, op, count, unit=1):
        return self.add("regroup", op, features=count, features_unit=unit)

    def rows(self, x):
        """The operator of a tensor, all of whose features are its own; an image that is one no more is rows."""
        v = self.of(x)
        if isinstance(v.features, tuple) and x.dim() < 4:
            pixels = x.dim() == 3 and x.shape[-1] == v.features[0]
            v.op, v.features = self.add("tokens" if pixels else "flatten", v.op), x.shape[-1]
            v.op = v.op if pixels else self.units(v.op, v.features)
        if v.part:
            cut = self.add("slice", self.units(v.op, 1, v.features), offset=v.part[0], features_unit=v.part[1])
            v.op, v.features, v.part = self.units(cut, v.part[1]), v.part[1], None
        return v.op

    def step(self, x, kind, *others, **attrs):
        """An operator of the tensor, and perhaps of others, with an output like its own."""
        op = self.add(kind, self.rows(x), *others, **attrs)
        return value(op, self.of(x).features)

    def project(self, op, features, weight, bias, width=None):
        name = self.named(weight)
        table = next((o for o in self.ops if o["kind"] == "embedding" and o["name"].endswith(f".{name}")), None)
        if table and not table["inputs"]:  # the head is the table of tokens
            shape = {key: table.pop(key) for key in ("vocab", "features")}
            self.ops.insert(0, {"name": "table", "kind": "variable", "inputs": [], **shape})
            table["inputs"] = ["table"]
        y = self.add("linear", self.units(op, width), "table") if table else self.add("linear", op, label=name, features=features)
        self.named(bias)
        return self.add("bias", y) if bias is not None else y

    def linear(self, out, x, weight, bias=None):
        return value(self.project(self.rows(x), out.shape[-1], weight, bias, x.shape[-1]), out.shape[-1])

    def conv2d(self, out, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        y, name, c, size = self.rows(x), self.named(weight, bias), out.shape[1], window(weight.shape[2:], stride, padding, dilation)
        if groups > 1:
            y = self.add("conv_grouped", self.units(y, groups, x.shape[1] // groups), features_unit=c // groups, **size)
        y = self.units(y, c) if groups > 1 else self.add("conv", y, label=name, features=c, **size)
        return value(self.add("bias", y) if bias is not None else y, tuple(out.shape[1:]))

    def attend(self, q, k, v, causal):
        """Of queries, keys and values [samples, heads, positions, numbers], of one projection or of several."""
        a, b, c = self.of(q), self.of(k), self.of(v)
        heads, width, wide = (q.shape[1] if q.dim() == 4 else 1), q.shape[-1], v.shape[-1]
        attrs, together = dict(heads=heads, head_dim=width, causal=causal), a.op == b.op == c.op and a.features > heads * width
        groups = (a.features - heads * width) // (width + wide) if together else (b.part[1] if b.part else b.features) // width
        if together:
            y = self.add("attention", self.units(a.op, groups, a.features // groups), kv_heads=groups, **attrs)
        else:
            kv = self.add("concat", self.units(self.rows(k), groups, width), self.units(self.rows(v), groups, wide))
            q = self.units(self.rows(q), groups, heads // groups * width)
            y = self.add("attend", q, kv, kv_heads=groups, v_head_dim=wide, **attrs)
        return value(self.units(y, heads * wide), heads * wide)

    def module_attention(self, out, q, k, v, width, heads, qkv, qkv_bias, _k, _v, _zero, _drop, last, last_bias, **kw):
        if self.of(q).op != self.of(k).op or qkv is None:
            return [like(self.of(q))]  # its parameters are told of
        y = self.units(self.project(self.rows(q), 3 * width, qkv, qkv_bias), heads, 3 * width // heads)
        causal = kw.get("attn_mask") is not None or bool(kw.get("is_causal"))
        y = self.add("attention", y, heads=heads, head_dim=width // heads, causal=causal)
        return [value(self.project(y, width, last, last_bias), width)]

    def product(self, out, x, y):
        a, b = self.of(x), self.of(y)
        if a is None or b is None:
            return self.linear(out, x, y) if id(y) in self.weights else a or b
        if a.scores:
            return self.attend(*a.scores, y, a.masked)
        return like(a, part=None, scores=(x, self.put(y.transpose(-1, -2), b)))

    def normed(self, x, weight, label, **how):
        op, n, width = self.rows(x), self.of(x).features, weight.numel() if weight is not None else x.shape[-1]
        return value(self.add("norm", op, label=label, **how) if width == n else
                     self.add("head_norm", self.units(op, n // width, width), label=label, head_dim=width, **how), n)

    def both(self, kind, out, x, y):
        """A sum or product: of samples, with a parameter, or with a number, a mask of scores, angles of positions."""
        if self.of(x) is None:
            x, y = y, x
        a, b, weight = self.of(x), self.of(y), self.weights.get(id(y))
        if b is None and weight is None:
            return like(a, masked=a.masked or (kind == "add" and isinstance(y, torch.Tensor) and y.dim() > 1))
        if b is None:
            name, table = self.named(y), weight[1] or (y.shape[-2] if y.dim() > 1 else 0)
            if kind == "mul":
                return self.normed(x, y, name, rms=True) if a.rms else self.step(x, "gain", label=name)
            if 1 < table < out.shape[1]:  # kinds of tokens
                return self.step(x, "add", self.add("embedding", label=name, vocab=table, features=out.shape[-1]))
            return self.step(x, "position", label=name, positions=table) if table > 1 else self.step(x, "bias", label=name)
        if a.scores or b.scores or (a.op == b.op and (kind == "add" or a.rms or b.rms)):
            return like(a, scores=a.scores or b.scores, masked=a.masked or b.masked, rms=a.rms or b.rms)
        return self.step(x, "weigh" if kind == "mul" and x.shape != y.shape else kind, self.rows(y))

    def cut(self, out, x, index):
        """Parts of the features, one position, or views."""
        v, made, last = self.of(x), [], index[-1] if isinstance(index, tuple) else None
        if index is not None and x.dim() == 3 and out.dim() == 2 and not v.part:
            at = index[1] if isinstance(index, tuple) and len(index) > 1 and isinstance(index[1], int) else 0
            return self.step(x, "select", offset=at % x.shape[1])
        first = last.indices(x.shape[-1])[0] if isinstance(last, slice) else 0
        for t in out if isinstance(out, (tuple, list)) else [out]:
            own = not v.part and not v.scores and t.dim() and t.shape[-1] < x.shape[-1] == v.features
            made.append(like(v, part=(first, t.shape[-1]) if own else v.part))
            first += t.shape[-1] if t.dim() else 0
        return made if isinstance(out, (tuple, list)) else made[0]

    def joined(self, out, parts):
        known, d = [t for t in parts if self.of(t)], 1 if out.dim() == 4 else -1
        ops = {self.of(t).op: t for t in known}
        if len(ops) > 1 and out.shape[d] > known[0].shape[d]:
            op, *rest = [self.rows(t) for t in ops.values()]
            for other in rest:
                op = self.add("concat_counts", op, other)
            return value(op, tuple(out.shape[1:]) if d == 1 else out.shape[-1])
        if len(parts) == 2 and id(parts[0]) in self.weights and out.dim() == 3 and parts[0].shape[1] == 1:
            return self.step(known[0], "prepend", label=self.named(parts[0]))
        return like(self.of(known[0]), part=self.of(known[0]).part if len(known) < 2 else None)

    def looked_up(self, out, ids, weight, **_):
        if id(ids) in self.tokens:
            return value(self.add("embedding", label=self.named(weight), vocab=weight.shape[0], features=out.shape[-1]), out.shape[-1])
        self.weights[id(self.put(out, None))] = (self.weights[id(weight)][0], weight.shape[0])  # positions, kinds of tokens
        return None

    def value(self, name, out, args, kw):
        x = next((t for t in args if self.of(t)), None)
        v, given = self.of(x), lambda key, i: kw.get(key, args[i] if len(args) > i else None)
        if name == "embedding":
            return self.looked_up(out, *args[:2])
        if name in ("cat", "stack") and any(self.of(t) for t in args[0]):
            return self.joined(out, args[0])
        if x is None or not isinstance(out, (torch.Tensor, tuple, list)):
            return None
        calls = {"linear": self.linear, "conv2d": self.conv2d, "multi_head_attention_forward": self.module_attention}
        if name in calls:
            return calls[name](out, *args, **kw)
        if name == "addmm":
            return self.linear(out, args[1], args[2], args[0])
        if name in NORMS:
            kind, weight = "batch_norm" if name[0] == "b" else "norm", given("weight", NORMS[name])
            label, how = self.named(weight, given("bias", NORMS[name] + 1)), {"rms": name[0] == "r", "plain": weight is None}
            return self.normed(x, weight, label, **how) if kind == "norm" else self.step(x, kind, label=label)
        if name in ("_max_pool2d", "max_pool2d", "avg_pool2d"):
            size = window(args[1], given("stride", 2) or args[1], given("padding", 3) or 0)
            return value(self.add("pool", v.op, average=name == "avg_pool2d", **size), tuple(out.shape[1:]))
        if name in ("adaptive_avg_pool2d", "mean") and isinstance(v.features, tuple) and x.dim() == 4:
            return value(self.add("global_pool", v.op), x.shape[1])
        if name == "mean" and x.dim() == 3 and out.dim() == 2:
            return self.step(x, "reduce_sequence", mean=True)
        if name == "scaled_dot_product_attention":
            return self.attend(*args[:3], bool(kw.get("is_causal")) or kw.get("attn_mask") is not None)
        if name in ("matmul", "__matmul__", "bmm"):
            return self.product(out, *args[:2])
        if name in SUMS or name in PRODUCTS:
            return self.both("add" if name in SUMS else "mul", out, *args[:2])
        if name in UNARY:
            return self.step(x, "unary", activation=UNARY[name])
        if name in ("split", "chunk", "__getitem__", "unbind", "tensor_split"):
            return self.cut(out, x, args[1] if name == "__getitem__" else None)
        same = like(v, rms=v.rms or name == "rsqrt")
        return same if isinstance(out, torch.Tensor) else [same]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in ("__bool__", "item") and args[0].is_meta:
            return True  # such as whether all of a mask is set
        out = func(*args, **(kwargs or {}))
        found = None if name in ("__get__", "__set__", "dim", "size") else self.value(name, out, args, kwargs or {})
        for t, v in zip(out, found) if isinstance(found, list) else [(out, found)]:
            source = id(args[0]) if args and isinstance(t, torch.Tensor) and id(t) not in self.weights else None
            if isinstance(t, torch.Tensor) and v is not None:
                self.put(t, v)
            elif source in self.tokens and not t.is_floating_point():
                self.tokens.add(id(self.put(t, None)))
            elif source in self.weights:
                self.weights[id(self.put(t, None))] = self.weights[source]
        return out


def document(model, batch, loss=None):
    """The module as a native document, and the numbers of parameters that are in none of its operators, by name."""
    meta = lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x
    shadow = {id(p): torch.nn.Parameter(meta(p.detach()), False) for p in model.parameters()}
    trace = Trace({id(shadow[id(p)]): (name, 0) for name, p in model.named_parameters()})
    shadow.update({id(b): meta(b) for b in model.buffers()})
    twin, keywords = copy.deepcopy(model, shadow), {k: meta(b) for k, b in batch.items()} if isinstance(batch, dict) else {}
    args = [meta(b) for b in (batch if isinstance(batch, (tuple, list)) else () if keywords else (batch,))]
    data, seq = [t for t in [*args, *keywords.values()] if isinstance(t, torch.Tensor)], 1
    for t in data:
        if not t.is_floating_point():
            trace.tokens.add(id(t))
        elif t.dim() == 4:
            trace.put(t, value(trace.add("image", channels=t.shape[1], height=t.shape[2], width=t.shape[3]), tuple(t.shape[1:])))
        else:
            trace.put(t, value(trace.add("input", features=t.shape[-1]), t.shape[-1]))
        seq = max(seq, t.shape[1] if t.dim() == 2 + t.is_floating_point() else 1)
    with torch.no_grad(), trace:
        out = twin(*args, **keywords)
    outs = list(out.values()) if isinstance(out, dict) else out if isinstance(out, (tuple, list)) else [out]
    last = next((t for t in outs if trace.of(t)), None)
    if last is None:
        raise ValueError("topt_torch: the module's output is not made of its batch by functions that are known")
    op = trace.rows(last)
    op = trace.add("tokens", op) if isinstance(trace.of(last).features, tuple) else op
    lost = {name: p.numel() for name, p in model.named_parameters() if name not in trace.used}
    if lost:
        op = trace.add("weigh", op, trace.add("beside", trace.add("reduce_features", op, mean=True), extra=sum(lost.values())))
    needed = {trace.add(loss or ("cross_entropy" if last.shape[-1] > 1 else "mse"), op)}
    for o in reversed(trace.ops):
        needed.update(o["inputs"] if o["name"] in needed else ())
    return {"format": "topt-model/1", "name": type(model).__name__, "batch": data[0].shape[0], "seq": seq,
            "ops": [o for o in trace.ops if o["name"] in needed]}, lost


def plan(model, batch, hw, topt="topt", loss=None, **options):
    """`topt plan` of the module; `options` are that command's: gpus=8, max_gpus=64 ("_" stands for "-")."""
    doc, lost = document(model, batch, loss)
    more = [part for key, v in options.items() for part in ["--" + key.replace("_", "-")] + ([] if v is True else [str(v)])]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(doc, file)
        file.flush()
        run = subprocess.run([topt, "plan", file.name, "--hw", hw, "--json", *more], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return {**json.loads(run.stdout), "untraced": lost}
