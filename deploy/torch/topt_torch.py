"""Plan the training of a PyTorch module as it is, without exporting it.

    import topt_torch
    plan = topt_torch.plan(model, batch, hw="h100-80-dgx")  # what `topt plan --json` prints
    plan["untraced"]  # parameters that no operator reads: their numbers

The module is called with `batch` (a tensor, a tuple, or a dict of keywords), on the meta device, where nothing is computed.
Calls of torch's functions become operators; views, casts and what costs next to nothing are looked through; every other
function is refused by its name and the module that calls it. Needs torch, 1.13 or later, and topt in the PATH."""
import contextlib
import copy
import itertools
import json
import math
import subprocess
from collections import Counter, namedtuple
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

# A dimension of a tensor is a tuple of digits of the axes of what made it, the outermost first. Axes: b samples, s positions,
# f features or channels, h and w rows and columns of an image, r copies. `cut`: count of `full` indices, from `first` on.
Digit = namedtuple("Digit", "axis stride size")
Cut = namedtuple("Cut", "axis stride full first count")
# What made a tensor: the operator (None: the data itself), the extents of its axes, the digits of the tensor's dimensions,
# parts of axes that are all that is there, and what is known beside: queries and keys of scores,
# whether it is a statistic of the operator's output or divided by one, whether it is a loss; of data, whether they are whole
# numbers, and which they are.
Value = namedtuple("Value", "op axes dims cuts scores stat normed loss ids data parts",
                   defaults=((), None, False, False, False, False, 0, None))
Weight = namedtuple("Weight", "names rows", defaults=(0,))  # of parameters alone, perhaps rows looked up


class NotTraced(ValueError):
    """A function that no operator of topt does, by its name and the module that calls it."""


def of(x, kind=Value):
    known = getattr(x, "topt", None)
    return known if isinstance(known, kind) else None


def product(digits, axes="bsfhwr"):
    return math.prod(d.size for d in digits if d.axis in axes)


def digits_of(axis, sizes):
    """Digits of an axis that is made of these sizes, the outermost first."""
    return [(Digit(axis, math.prod(sizes[i + 1:]), n),) if n > 1 else () for i, n in enumerate(sizes)]


def regrouped(dims, shape):
    """The digits of a view with this shape; None where it cuts one unevenly."""
    left, made = [d for dim in dims for d in dim], []
    for n in shape:
        dim = []
        while product(dim) < n and left:
            d, need = left.pop(0), n // product(dim)
            if d.size > need:
                if d.size % need:
                    return None
                d, rest = d._replace(stride=d.stride * (d.size // need), size=need), d._replace(size=d.size // need)
                left.insert(0, rest)
            if dim and dim[-1].axis == d.axis and dim[-1].stride == d.stride * d.size:
                d = d._replace(size=d.size * dim.pop().size)
            dim.append(d)
        if product(dim) != n:
            return None
        made.append(tuple(dim))
    return tuple(made) if not left else None


class Layouts(TorchFunctionMode):
    """Where numbers of tensors lie in what made them, and operators that lay them out in another way."""

    def __init__(self, batch, seq=0, calls=None):
        super().__init__()
        self.batch, self.seq, self.before = batch, seq, calls or Counter()
        self.ops, self.claims, self.calls, self.lengths, self.roots = [], {}, Counter(), {}, []
        self.variables, self.layer, self.path, self.called, self.shapes = {}, {}, [], "", {}
        self.numbers, self.sources, self.attended = itertools.count(1), {}, set()
        self.plan_only = {}  # what no operator computes as the module does, though it costs the same

    def refuse(self, why="no operator of topt does it"):
        name, kind = self.path[-1] if self.path else ("", "the module")
        raise NotTraced(f"topt_torch: {self.called} in {repr(name) + ' ' if name else ''}({kind}): {why}")

    def add(self, kind, *inputs, claims=None, frozen=False, **attrs):
        """An operator. claims: its parameters' names, and how many numbers of each it has."""
        name = f"{len(self.ops)}.{next(iter(claims or ()), kind)}"
        attrs = {key: v for key, v in attrs.items() if v}
        self.claims[name] = claims or {}
        self.ops.append({"name": name, "kind": kind, "inputs": list(inputs), **self.layer, **attrs,
                         **({"frozen": True} if frozen else {})})
        return name

    def plain(self, op, count, unit=1):
        return self.add("regroup", op, features=count, features_unit=unit)

    def grouped(self, op, count, unit):
        return op if unit == 1 else self.plain(op, count, unit)

    def under(self, make, *args):
        """What `make` gives, whose calls are traced as those of a module are."""
        called = self.called
        with self:
            made = make(*args)
        self.called = called
        return made

    def like(self, shape, value):
        t = torch.empty(shape, device="meta")
        t.topt = value
        return t

    # ---- sources ----

    def data(self, x, axis=0, ids=False):
        """A tensor of data whose dimension `axis` is the samples'."""
        rest = iter(digits_of("f", [n for i, n in enumerate(x.shape) if i != axis]))
        dims = tuple((Digit("b", 1, n),) if i == axis and n > 1 else () if i == axis else next(rest) for i, n in enumerate(x.shape))
        return Value(None, {"b": x.shape[axis] if x.dim() else 1, "f": product(sum(dims, ()), "f")}, dims, ids=ids,
                     data=next(self.numbers))

    def traced(self, x):
        """What made a tensor; one of parameters, or of constants, for each sample becomes an operator."""
        v = of(x)
        if v is None and isinstance(x, torch.Tensor) and x.dim() and x.shape[0] == self.batch:
            v = self.data(x)
            if of(x, Weight):
                rows, width = x[0].numel() // x.shape[-1], x.shape[-1]
                has = sum(math.prod(self.shapes[name][0]) for name in of(x, Weight).names)
                if has < rows * width:  # one row, or less, for all
                    rows = 1
                v = self.tokens(x, v)
                v = v._replace(op=self.add("position" if rows > 1 else "bias", v.op, positions=rows if rows > 1 else 0,
                                           **self.claimed(x, numbers=rows * width)))
            x.topt = v
        if v is None:
            self.refuse("it is of parameters or constants alone, without samples")
        if v.scores:
            self.refuse("it takes a product of two computed tensors that is no attention")
        return v

    def source(self, v, key, make):
        """The operator that reads these data; each part of them, and each layout of it, once."""
        key = v.data, v.cuts, *key
        if key not in self.sources:
            layer, self.layer = self.layer, {}
            self.sources[key] = make()
            self.layer = layer
        return self.sources[key]

    def row_source(self, v, positions, features):
        """An operator for data: [samples, positions, features]."""
        self.lengths.setdefault(positions, 0)
        key = v.dims[-1:], tuple(sorted(d for dim in v.dims[:-1] for d in dim))
        if positions == self.seq or not self.seq:
            return self.source(v, key, lambda: self.add("input", features=features))
        return self.source(v, key, lambda: self.add(
            "tokens", self.add("image", channels=features, height=positions, width=1)))

    # ---- layouts ----

    def whole(self, v):
        """The value without cuts: parts of features, and of positions, are cut out by operators."""
        while v.cuts and v.op is not None:
            cut, *rest = v.cuts
            if cut.axis in "hw":
                width = v.axes["w"]
                v = self.tokenised(v)
                cut, *rest = [c._replace(axis="s", stride=c.stride * (width if c.axis == "h" else 1)) if c.axis in "hw" else c
                              for c in (cut, *rest)]
            op, n = v.op, v.axes[cut.axis]
            unit, kept = cut.stride * cut.full, cut.stride * cut.count
            if cut.axis == "s" and unit == n and kept == 1:
                op = self.add("select", op, offset=cut.first)
            else:
                op = self.add("transpose", op) if cut.axis == "s" else op
                op = self.add("slice", self.grouped(op, n // unit, unit), offset=cut.first * cut.stride, features_unit=kept)
                op = self.plain(op, n // unit * kept) if kept > 1 else op
                op = self.add("transpose", op) if cut.axis == "s" else op
            smaller = lambda s, c=cut: s if s < c.stride * c.full else s // c.full * c.count
            v = v._replace(op=op, axes={**v.axes, cut.axis: n // unit * kept},
                           dims=tuple(tuple(d._replace(stride=smaller(d.stride)) if d.axis == cut.axis else d for d in dim)
                                      for dim in v.dims),
                           cuts=tuple(c._replace(stride=smaller(c.stride)) if c.axis == cut.axis else c for c in rest))
        return v

    def tokenised(self, v):
        """An image as positions, row by row."""
        if "h" not in v.axes:
            return v
        axes, width = dict(v.axes), v.axes["w"]
        h, w = axes.pop("h"), axes.pop("w")
        move = lambda d: d._replace(axis="s", stride=d.stride * (width if d.axis == "h" else 1)) if d.axis in "hw" else d
        return v._replace(op=self.add("tokens", v.op), axes={**axes, "s": h * w},
                          dims=tuple(tuple(map(move, dim)) for dim in v.dims))

    def flat(self, v):
        """[samples, 1, all numbers]; the order of the numbers is not looked at."""
        op, n = v.op, math.prod(size for axis, size in v.axes.items() if axis != "b")
        self.plan_only["views that lay numbers out anew"] = True
        if "h" in v.axes:
            return self.plain(self.add("flatten", op), n)
        if v.axes["s"] > 1:
            return self.plain(self.add("flatten", self.add("untokens", op, height=v.axes["s"], width=1)), n)
        return op

    def renumbered(self, v, groups):
        """The same tensor, dimensions `groups[axis]` of which are that axis now, and samples where they were."""
        dims, axes = [tuple(d for d in dim if d.axis == "b") for dim in v.dims], {"b": v.axes["b"]}
        for axis, where in groups.items():
            sizes = [product(v.dims[i], "sfhwr") for i in where]
            axes[axis] = math.prod(sizes)
            for i, digit in zip(where, digits_of(axis, sizes)):
                dims[i] = dims[i] + digit
        return Value(v.op, axes, tuple(dims))

    def repeated(self, v):
        """Copies are made by an operator, as positions."""
        copies = product(sum(v.dims, ()), "r")
        if copies == 1 or v.op is None:
            return v._replace(dims=tuple(tuple(d._replace(axis="f") if d.axis == "r" else d for d in dim) for dim in v.dims))
        v = self.tokenised(v)
        op = self.add("untokens", v.op, height=v.axes["s"], width=1)
        op = self.add("tokens", self.add("resize", op, height=v.axes["s"] * copies, width=1))
        stride, dims = v.axes["s"], []
        for dim in v.dims:
            made = []
            for d in dim:
                made.append(Digit("s", stride, d.size) if d.axis == "r" else d)
                stride *= d.size if d.axis == "r" else 1
            dims.append(tuple(made))
        return v._replace(op=op, axes={**v.axes, "s": v.axes["s"] * copies}, dims=tuple(dims))

    def tokens(self, x, v=None):
        """[samples, positions, features], the last dimension of x its features."""
        v = self.repeated(self.whole(self.statistic(v or self.traced(x))))
        if len(v.dims) == 1 and product(v.dims[0], "b") > 1:  # a number for each sample
            v = self.tokens(x, v._replace(dims=v.dims + ((),)))
            return v._replace(dims=v.dims[:1])
        last, rest = v.dims[-1] if v.dims else (), [d for dim in v.dims[:-1] for d in dim]
        if product(last, "b") > 1:
            self.refuse("it mixes the samples of the batch")
        whole = lambda digits, axis: product(digits, axis) == v.axes.get(axis, 1)
        only = lambda digits, axes: all(d.axis in axes for d in digits)
        positions, features = product(rest, "sfhwr"), product(last)
        if v.op is None:
            op = self.row_source(v, positions, features)
        elif "h" in v.axes and only(last, "f") and whole(last, "f") and only(rest, "bhw") and whole(rest, "h") and whole(rest, "w"):
            return self.tokenised(v)
        elif "s" in v.axes and only(last, "f") and whole(last, "f") and only(rest, "bs") and whole(rest, "s"):
            return v
        elif only(rest, "bf") and whole(rest, "f") and only(last, "shw") and not product(last, "f") > 1:
            op = self.add("transpose", self.tokenised(v).op)
        else:
            op = self.flat(v)
            if positions > 1:
                op = self.add("tokens", self.add("unflatten", self.plain(op, 1, positions * features), height=positions, width=1))
                op = self.plain(op, features)
        return self.renumbered(v, {"s": range(len(v.dims) - 1), "f": [len(v.dims) - 1]})._replace(op=op)

    def image(self, x):
        """[samples, channels, rows, columns] of [samples, channels, ...]: depths are rows, all others columns."""
        v = self.repeated(self.whole(self.statistic(self.traced(x))))
        if product(v.dims[0], "sfhwr") > 1 or any(product(dim, "b") > 1 for dim in v.dims[1:]):
            self.refuse("its first dimension is not the samples")
        high, wide = v.dims[2], sum(v.dims[3:], ())
        c, h, w = product(v.dims[1]), product(high), product(wide)
        fits = lambda digits, axis: all(d.axis == axis for d in digits) and product(digits) == v.axes.get(axis, 1)
        if v.op is None:
            op = self.source(v, (v.dims, h, w), lambda: self.add("image", channels=c, height=h, width=w))
        elif "h" in v.axes and fits(v.dims[1], "f") and fits(high, "h") and fits(wide, "w"):
            return v
        elif "s" in v.axes and fits(v.dims[1], "f") and fits(high + wide, "s"):
            op = self.add("untokens", v.op, height=h, width=w)
        else:
            op = self.add("unflatten", self.plain(self.flat(v), c, h * w), height=h, width=w)
        groups = {"f": [1], "h": [2], "w": range(3, len(v.dims))}
        return self.renumbered(v, groups)._replace(op=op)

    def statistic(self, v):
        """The mean of all features, where no operator has taken it in."""
        if not v.stat:
            return v
        v = self.tokenised(self.whole(v._replace(stat=False)))
        return v._replace(op=self.add("reduce_features", v.op, mean=True), axes={**v.axes, "f": 1})

    def pictured(self, *tensors):
        """Both as images where the first is one, else as positions: values of one layout."""
        v = self.whole(self.traced(tensors[0]))
        dims, dim = v.dims, tensors[0].dim()
        if "h" in v.axes and dim > 2 and product(dims[1]) == v.axes["f"] and all(d.axis == "f" for d in dims[1]):
            return [self.image(t) for t in tensors]
        return [self.tokens(t) for t in tensors]

    # ---- parameters ----

    @staticmethod
    def keys(*weights):
        """Parameters, each by its name and which part of it a tensor is."""
        return [(name, w.storage_offset()) for w in weights if of(w, Weight) for name in of(w, Weight).names]

    def claimed(self, *weights, numbers=0):
        """The parameters of an operator, how many numbers it has of each, and whether they are trained."""
        claims = {}
        for w in weights:
            left = numbers or (w.numel() if w is not None else 0)
            size = lambda name: math.prod(self.shapes[name][0])
            for name in sorted(of(w, Weight).names if of(w, Weight) else (), key=size, reverse=True):
                claims[name] = min(left, size(name))
                left -= claims[name]
        self.calls.update(self.keys(*weights))
        return dict(claims=claims, frozen=bool(claims) and not any(self.shapes[name][1] for name in claims))

    def again(self, *weights):
        """Whether an operator has these parameters already."""
        return any(self.calls[key] for key in self.keys(*weights))

    def shared(self, *weights):
        return any(self.before[key] > 1 for key in self.keys(*weights))

    def copied(self, x):
        """Whether a tensor repeats parameters, such as for each sample."""
        return of(x, Weight) is not None and x.numel() > sum(math.prod(self.shapes[name][0]) for name in of(x, Weight).names)

    def once(self, what, *weights):
        if self.shared(*weights):
            names = ", ".join(sorted({name for w in weights if of(w, Weight) for name in of(w, Weight).names}))
            self.refuse(f"{what} with the parameters of another call ({names}), which no document can say")

    def variable(self, weight, rows, features):
        """The operator that several others read a matrix of."""
        key = *self.keys(weight), rows, features
        if key not in self.variables:
            layer, self.layer = self.layer, {}
            self.variables[key] = self.add("variable", vocab=rows, features=features, **self.claimed(weight))
            self.layer = layer
        else:
            self.calls.update(self.keys(weight))
        return self.variables[key]

    def biased(self, v, bias):
        if bias is None:
            return v
        op = self.add("scale", v.op, factor=1) if self.again(bias) else self.add("bias", v.op, **self.claimed(bias))
        return v._replace(op=op)


class Trace(Layouts):
    """Makes operators of calls. A method of TABLE gets a call's output and arguments, and gives what made the output: a
    Value, a list of one for each output, or None."""

    def number(self, module):
        """Operators of the outermost ModuleLists' children belong to layers, which FSDP gathers
        and checkpoints by itself."""
        for i, child in enumerate(layers_of(module)):
            child.register_forward_pre_hook(lambda *_, i=i: setattr(self, "layer", {"layer": i}))
            child.register_forward_hook(lambda *_: setattr(self, "layer", {}))
        for name, child in module.named_modules():
            child.register_forward_pre_hook(lambda m, _, name=name: self.path.append((name, type(m).__name__)))
            child.register_forward_hook(lambda *_: self.path.pop() and None)

    # ---- views ----

    def permuted(self, out, x, *args, func=None, **kwargs):
        order = list(func(torch.empty([2 + i for i in range(x.dim())], device="meta"), *args, **kwargs).shape)
        return of(x)._replace(dims=tuple(of(x).dims[n - 2] for n in order), parts=None)

    def viewed(self, out, x, *_, **_kw):
        v = of(x)
        if v.scores:
            return v
        dims = regrouped(v.dims, out.shape)
        if dims is None and (v.cuts or v.stat):
            v = self.whole(self.statistic(v))
            dims = regrouped(v.dims, out.shape)
        if dims is None and v.op is None:
            return self.data(out, ids=v.ids)
        return v._replace(dims=dims, parts=None) if dims is not None else self.refuse("the view cuts features or positions unevenly")

    def expanded(self, out, x, *_, **_kw):
        v, more = of(x), out.dim() - x.dim()
        if v.scores:
            return v
        dims = [()] * more + list(v.dims)
        for i, n in enumerate(out.shape):
            had = x.shape[i - more] if i >= more else 1
            if n != had:
                dims[i] = (Digit("r", 1, n // had),) + dims[i]
        return v._replace(dims=tuple(dims), parts=None)

    def as_complex(self, _out, x):
        return of(x)._replace(dims=of(x).dims[:-2] + (of(x).dims[-2] + of(x).dims[-1],))

    def as_real(self, out, x):
        return of(x)._replace(dims=regrouped(of(x).dims, out.shape))

    def index_one(self, v, d, n, first, count, keep, step=1):
        """The value of `count` indices from `first` on, `step` apart, of dimension d, which has n."""
        dim = v.dims[d]
        if v.parts and v.parts[0] == d and step == 1:
            start = 0
            for part in v.parts[1]:
                if (start, part.shape[d]) == (first, count):
                    v = of(part)
                    return v if keep else v._replace(dims=v.dims[:d] + v.dims[d + 1:])
                start += part.shape[d]
        kept, cuts = (), v.cuts
        if step > 1 and len(dim) == 1 and n % step == 0:
            outer, inner = dim[0]._replace(stride=dim[0].stride * step, size=n // step), dim[0]._replace(size=step)
            kept, dim, n, first, count = (outer,), (inner,), step, first % step, 1
        if count == n:
            kept = kept + dim
        elif any(x.axis == "b" for x in dim):
            self.refuse("it takes some samples of the batch")
        elif len(dim) == 1 and dim[0].axis != "r":
            cuts = cuts + (Cut(dim[0].axis, dim[0].stride, n, first, count),)
            kept = kept + ((dim[0]._replace(size=count),) if count > 1 else ())
        elif all(x.axis == "r" for x in dim):
            kept = kept + ((Digit("r", 1, count),) if count > 1 else ())
        else:
            part = regrouped((dim,), (n // count, count)) if n % count == 0 and first % count == 0 else None
            if not part or len(part[0]) != 1:
                self.refuse("it cuts several dimensions in one")
            d0 = part[0][0]
            cuts, kept = cuts + (Cut(d0.axis, d0.stride, d0.size, first // count, 1),), part[1]
        dims = v.dims[:d] + ((kept,) if keep else ()) + v.dims[d + 1:]
        return v._replace(dims=dims, cuts=cuts, parts=None)

    def taken(self, out, x, index, *_, **_kw):
        v, d, index = of(x) or self.traced(x), 0, index if isinstance(index, tuple) else (index,)
        if v.scores:
            return self.interaction(out, v, index)
        shape, lists = list(x.shape), [i for i in index if isinstance(i, (torch.Tensor, list)) and not isinstance(i, bool)]
        given = sum(i is not None and i is not Ellipsis for i in index)
        if lists:
            return self.gathered(out, x, index)
        for i in index:
            if i is None:
                v, shape, d = v._replace(dims=v.dims[:d] + ((),) + v.dims[d:], parts=None), shape[:d] + [1] + shape[d:], d + 1
            elif i is Ellipsis:
                d += x.dim() - given
            elif isinstance(i, slice):
                first, stop, step = i.indices(shape[d])
                count = len(range(first, stop, step))
                v, d = self.index_one(v, d, shape[d], first, count, True, step) if count != shape[d] else v, d + 1
            else:
                v = self.index_one(v, d, shape[d], int(i) % shape[d], 1, False)
                del shape[d]
        return v

    def gathered(self, out, x, index):
        """Some positions of each sample, or some indices of one dimension, by numbers that are data."""
        tensors = [(i, t) for i, t in enumerate(index) if isinstance(t, (torch.Tensor, list))]
        d, v = tensors[-1][0], of(x)
        if any(i is None or i is Ellipsis or isinstance(i, int) for i in index[:d]) or len(tensors) > 2 or \
                any(i is not Ellipsis and i != slice(None) for i in index[d + 1:]):
            self.refuse("indices of several dimensions")
        n = torch.as_tensor(tensors[-1][1]).numel() if isinstance(tensors[-1][1], list) else tensors[-1][1].numel()
        if len(tensors) == 2 and d == 1 and n == x.shape[0]:  # a position of each sample
            return self.index_one(v, 1, x.shape[1], 0, 1, False)
        if len(tensors) == 1 and out.dim() == x.dim() and n <= x.shape[d]:
            return self.index_one(v, d, x.shape[d], 0, n, True) if n != x.shape[d] else v
        return self.refuse("indices of several dimensions")

    def selected(self, out, x, dim, index):
        if isinstance(index, torch.Tensor):
            return self.gathered(out, x, (slice(None),) * (dim % x.dim()) + (index,))
        return self.index_one(of(x), dim % x.dim(), x.shape[dim], index % x.shape[dim], 1, False)

    def narrowed(self, _out, x, dim, start, length):
        return self.index_one(of(x), dim % x.dim(), x.shape[dim], start, length, True)

    def split(self, out, x, *args, dim=None, unbind=False, at=1, **_):
        dim = args[at] if dim is None and len(args) > at else dim or 0
        start, made, d = 0, [], dim % x.dim()
        for t in out:
            n = 1 if unbind else t.shape[d]
            made.append(of(x) if n == x.shape[d] and not unbind else self.index_one(of(x), d, x.shape[d], start, n, not unbind))
            start += n
        return made

    def joined(self, out, parts, dim=0, **_kw):
        d, parts = dim % out.dim(), [t for t in parts if t.numel()]
        if len(parts) == 2 and of(parts[0], Weight) and of(parts[1]) and d == 1 and out.dim() == 3 and parts[0].shape[1] == 1:
            v = self.tokens(parts[1])
            return self.renumbered(v._replace(dims=v.dims[:1] + ((Digit("s", 1, out.shape[1]),),) + v.dims[2:]), {"s": [1], "f": [2]})._replace(
                op=self.add("prepend", v.op, **self.claimed(parts[0], numbers=out.shape[2])))
        values = [self.traced(t) for t in parts]
        if len(values) == 1:
            return values[0]
        if all(v.op is None for v in values):
            return self.data(out, ids=values[0].ids)
        first, cuts = values[0], [v.cuts[-1] if v.cuts else None for v in values]
        if None not in cuts and all(v.op == first.op and v.cuts[:-1] == first.cuts[:-1] and c[:3] == cuts[0][:3] for v, c in zip(values, cuts)):
            c = cuts[0]
            if sum(cut.count for cut in cuts) == c.full and out.shape[d] % c.full == 0:
                rest = tuple(x for x in first.dims[d] if (x.axis, x.stride) != (c.axis, c.stride))
                dims = first.dims[:d] + ((Digit(c.axis, c.stride, c.full),) + rest,) + first.dims[d + 1:]
                return first._replace(dims=dims, cuts=first.cuts[:-1])
        known = [self.whole(v) for v in values]
        if d == 1 and out.dim() > 2 and all("h" in v.axes for v in known):
            images, axis = [self.image(t) for t in parts], "f"
            v = images[0]._replace(axes={**images[0].axes, "f": out.shape[1]}, dims=images[0].dims[:1] + (digits_of("f", [out.shape[1]])[0],) + images[0].dims[2:])
            return v._replace(op=self.concat([i.op for i in images]), parts=(d, parts))
        moved = [self.under(torch.movedim, t, d, -1) for t in parts]
        laid, axis = [self.tokens(t) for t in moved], out.shape[d]
        v = laid[0]._replace(axes={**laid[0].axes, "f": axis}, dims=laid[0].dims[:-1] + (digits_of("f", [axis])[0],))
        v = v._replace(op=self.concat([t.op for t in laid]))
        made = of(self.under(torch.movedim, self.like(moved[0].shape[:-1] + (axis,), v), -1, d))
        return made._replace(parts=(d, parts))

    def concat(self, ops):
        while len(ops) > 1:
            ops = [self.add("concat_counts", *ops[i:i + 4]) if len(ops[i:i + 4]) > 1 else ops[i] for i in range(0, len(ops), 4)]
        return ops[0]

    def stacked(self, out, parts, dim=0, **_):
        return of(self.under(lambda: torch.cat([self.unsqueezed(t, dim % out.dim()) for t in parts], dim)))

    def unsqueezed(self, t, dim):
        y = t.unsqueeze(dim)
        if of(t) is None and of(t, Weight) is None and t.shape[0] == self.batch and dim:
            y.topt = self.data(y)
        return y

    # ---- products ----

    def linear(self, out, x, weight, bias=None):
        if of(weight, Weight) is None:
            self.refuse("a product with a matrix that is no parameter")
        v, n, k = self.tokens(x), out.shape[-1], x.shape[-1]
        if weight.numel() != n * k:
            self.refuse("matrices of several shapes in one")
        if self.shared(weight) and of(weight, Weight).names:
            op = self.add("linear", v.op, self.variable(weight, n, k))
        else:
            op = self.add("linear", v.op, features=n, **self.claimed(weight))
        return self.biased(self.lasting(v, op, n), bias)

    def lasting(self, v, op, n):
        """The value that an operator makes of one, position by position, with n features."""
        return Value(op, {**v.axes, "f": n}, v.dims[:-1] + (digits_of("f", [n])[0],))

    def each(self, out, x, weight):
        """A matrix for each index of a dimension, [.., g, t, k] by [g, k, n]: groups of a convolution of single pixels."""
        g, k, n = weight.shape[-3:]
        if weight.numel() != g * k * n or x.dim() < 3 or x.shape[-3] != g:
            self.refuse("matrices of several shapes in one")
        self.once("a grouped product", weight)
        moved = self.under(lambda: x.movedim(-3, -2).flatten(-2))
        v = self.tokens(moved)
        op = self.add("untokens", v.op, height=v.axes["s"], width=1)
        op = self.add("conv_grouped", self.plain(op, g, k), kernel_h=1, kernel_w=1, features_unit=n, **self.claimed(weight))
        op = self.add("tokens", self.plain(op, g * n))
        y = self.like(moved.shape[:-1] + (g * n,), self.lasting(v, op, g * n))
        return of(self.under(lambda: y.unflatten(-1, (g, n)).movedim(-2, -3)))

    def product(self, out, x, y, *_, **_kw):
        a, b = of(x), of(y)
        if a and not (b or of(y, Weight)) and (y.dim() < 3 or y.shape[0] != self.batch):
            self.refuse("a product with a matrix that is no parameter")
        if a and a.scores:
            self.attended.add(id(a.scores))
            return self.attend(out, *a.scores[:2], y)
        a, b = (self.traced(t) if v or self.copied(t) or not of(t, Weight) else None for t, v in ((x, a), (y, b)))
        if a and of(y, Weight):
            return self.linear(out, x, y) if y.dim() < 3 or y.numel() == y.shape[-1] * y.shape[-2] else self.each(out, x, y)
        if b and of(x, Weight):  # over positions
            turned = self.under(lambda: torch.matmul(y.transpose(-1, -2), x.transpose(-1, -2)).transpose(-1, -2))
            return of(turned)
        if b and b.scores:
            self.refuse("a product of two computed tensors that is no attention")
        if b is None:
            self.refuse("a product of parameters")
        return Value("", {"b": self.batch}, ((),) * out.dim(), scores=(x, self.under(lambda: y.transpose(-1, -2)), self.called))

    def added(self, out, bias, x, y, *_, **_kw):
        """A product and a sum: with a parameter, or with scores."""
        made = self.like(out.shape, self.product(out, x, y))
        return of(self.under(torch.add, made, bias)) if of(bias) or of(bias, Weight) else of(made)

    def einsum(self, out, equation, *operands):
        operands = operands[0] if isinstance(operands[0], (list, tuple)) else operands
        left, _, right = equation.replace(" ", "").partition("->")
        if len(operands) != 2 or "->" not in equation:
            self.refuse(f"'{equation}' is not of two tensors to one")
        lists = left.split(",")
        for i, (letters, t) in enumerate(zip(lists, operands)):
            more = "".join(chr(913 + j) for j in range(10))[:t.dim() - len(letters) + 3] if "..." in letters else ""
            lists[i] = letters.replace("...", more)
            right = right.replace("...", more) if more else right
        (a, x), (b, y) = zip(lists, operands)
        if of(x, Weight) and not of(y, Weight):
            (a, x), (b, y) = (b, y), (a, x)
        if len(set(a)) < len(a) or len(set(b)) < len(b) or set(a + b) < set(right):
            self.refuse(f"'{equation}' takes a diagonal")
        if any(c not in right and c not in b for c in a) or any(c not in right and c not in a for c in b):
            self.refuse(f"'{equation}' sums over one tensor alone")
        size = {**dict(zip(a, x.shape)), **dict(zip(b, y.shape))}
        both, inner = [c for c in a if c in b and c in right], [c for c in a if c in b and c not in right]
        left_out, right_out = [c for c in a if c not in b], [c for c in b if c not in a]
        outer = [c for c in left_out if c in right]
        if of(y, Weight) and not both:
            def make():
                z = x.permute([a.index(c) for c in outer + inner]).flatten(len(outer)) if inner else x.unsqueeze(-1)
                w = y.permute([b.index(c) for c in inner + right_out]).reshape(math.prod(size[c] for c in inner), -1)
                z = torch.matmul(z, w).unflatten(-1, [size[c] for c in right_out] or [1])
                z = z if right_out else z.squeeze(-1)
                return z.permute([(outer + right_out).index(c) for c in right])
        else:
            shape = lambda *lists: [math.prod(size[c] for c in letters) for letters in lists]
            where = [size[c] for c in both]
            samples = both if not of(y, Weight) else []

            def make():
                if samples or not of(y, Weight):
                    z = x.permute([a.index(c) for c in both + outer + inner]).reshape(where + shape(outer, inner))
                    w = y.permute([b.index(c) for c in both + inner + right_out]).reshape(where + shape(inner, right_out))
                else:
                    z = x.permute([a.index(c) for c in outer[:1] + both + outer[1:] + inner]).reshape(
                        [size[c] for c in outer[:1]] + shape(both, outer[1:], inner))
                    w = y.permute([b.index(c) for c in both + inner + right_out]).reshape(shape(both, inner, right_out))
                    z = torch.matmul(z, w).reshape([size[c] for c in outer[:1] + both + outer[1:] + right_out])
                    return z.permute([(outer[:1] + both + outer[1:] + right_out).index(c) for c in right])
                z = torch.matmul(z, w).reshape([size[c] for c in both + outer + right_out])
                return z.permute([(both + outer + right_out).index(c) for c in right])
        return of(self.under(make))

    def interaction(self, out, v, index):
        """The products of every two vectors of a sample, taken from all of them by a list of pairs."""
        x, y, _ = v.scores
        pairs = [i for i in index if isinstance(i, (torch.Tensor, list))]
        if len(pairs) != 2 or of(x).op != of(y).op or out.dim() != 2:
            self.refuse("it takes a product of two computed tensors that is no attention")
        n, d = x.shape[1:]
        flat = self.tokens(self.under(lambda: x.flatten(1)))
        if flat.axes["s"] != 1 or n > 256:
            self.refuse("products of every two of more than 256 vectors")
        op = self.add("unflatten", self.plain(flat.op, 1, n * d), height=n, width=d)
        op = self.add("interact", op)
        want = out.shape[1]
        if want != n * (n - 1) // 2:
            self.refuse(f"{want} products of {n} vectors, not those of every two")
        return Value(op, {"b": self.batch, "s": 1, "f": want}, (of(x).dims[0],) + (digits_of("f", [want])[0],))

    # ---- attention ----

    def by_heads(self, x):
        """Positions and heads of [.., positions, numbers], moved apart where they are not."""
        v = self.statistic(of(x) or self.traced(x))
        lead, at, last = v.dims[:-2], v.dims[-2], v.dims[-1]
        if any(d.axis == "b" for d in at):
            self.refuse("attention over the dimension of samples (batch_first, or batch_dim, says which it is)")
        if "s" in v.axes and all(d.axis == "s" for d in at) and all(d.axis in "bfr" for dim in lead for d in dim) and \
                all(d.axis == "f" for d in last) and product(at) * math.prod(c.full // c.count for c in v.cuts if c.axis == "s") == v.axes["s"]:
            return v
        if any(d.axis == "b" for dim in lead for d in dim[1:]):
            self.refuse("its samples lie inside of other dimensions")
        sizes = [(product(dim, "b"), product(dim, "sfhwr")) for dim in lead]
        n = len(lead)

        def apart():  # samples, positions, then heads and all else that each of them is done for
            y = x.reshape([size for pair in sizes for size in pair] + list(x.shape[-2:]))
            y = y.permute([2 * i for i in range(n)] + [2 * n] + [2 * i + 1 for i in range(n)] + [2 * n + 1])
            return y.reshape(math.prod(pair[0] for pair in sizes), x.shape[-2], -1)
        v = self.tokens(self.under(apart))
        digits = digits_of("f", [pair[1] for pair in sizes] + [x.shape[-1]])
        dims = tuple(tuple(d for d in dim if d.axis == "b") + digit for dim, digit in zip(lead, digits))
        return Value(v.op, v.axes, dims + (digits_of("s", [x.shape[-2]])[0], digits[-1]))

    def attend(self, out, q, k, v, attn_mask=None, *_, is_causal=False, **_kw):
        """Queries, keys, values [samples, heads, positions, numbers], of one projection or more."""
        parts = [self.by_heads(t) for t in (q, k, v)]
        width, wide, causal = q.shape[-1], v.shape[-1], bool(is_causal) and attn_mask is None
        heads, kv = (math.prod(product(dim, axes) for dim in part.dims[:-2]) for part, axes in zip(parts[:2], ("sfhwr", "f")))
        how = dict(heads=heads, head_dim=width, causal=causal and k.shape[-2] >= q.shape[-2])
        if kv < 1 or heads % kv:
            self.refuse(f"{heads} heads of queries and {kv} of keys")
        packed = len({part.op for part in parts}) == 1 and parts[0].op and all(c.axis == "f" for part in parts for c in part.cuts)
        if packed and parts[0].axes["f"] == heads * width + kv * (width + wide):
            op = self.add("attention", self.plain(parts[0].op, kv, parts[0].axes["f"] // kv), kv_heads=kv, **how)
        else:
            parts = [self.whole(part) for part in parts]
            values = math.prod(product(dim, "f") for dim in parts[2].dims[:-2])
            if values != kv:
                self.refuse(f"{kv} heads of keys and {values} of values")
            sizes = heads // kv * width, width, wide
            query, key, value = [self.plain(part.op, kv, n) for part, n in zip(parts, sizes)]
            op = self.add("attention", query, self.add("concat", key, value), kv_heads=kv, v_head_dim=wide, **how)
        first = parts[0]
        sizes = [product(dim, "sfhwr") for dim in first.dims[:-2]]
        digits = digits_of("f", sizes + [wide])
        dims = tuple(tuple(d for d in dim if d.axis == "b") + digit for dim, digit in zip(first.dims[:-2], digits))
        dims += (digits_of("s", [q.shape[-2]])[0], digits[-1])
        return Value(self.plain(op, heads * wide), {"b": first.axes["b"], "s": q.shape[-2], "f": heads * wide}, dims)

    def multi_head(self, out, query, key, value, width, heads, weight, bias, _bk, _bv, _zero, _drop, last, last_bias, *_,
                   attn_mask=None, is_causal=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, **_kw):
        """torch's own: [positions, samples, features]."""
        if query.dim() != 3 or _bk is not None:
            self.refuse("one sample alone, or biases of keys")
        matrices = [q_proj_weight, k_proj_weight, v_proj_weight]

        def project():
            if weight is not None and of(query) == of(key) == of(value):
                return F.linear(query, weight, bias).chunk(3, -1)
            each = weight.chunk(3) if weight is not None else matrices
            biases = bias.chunk(3) if bias is not None else [None] * 3
            return [F.linear(t, w, b) for t, w, b in zip((query, key, value), each, biases)]

        def attention():
            q, k, v = (t.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3) for t in project())
            mixed = self.like(q.shape, self.attend(None, q, k, v, is_causal=is_causal))
            return F.linear(mixed.permute(2, 0, 1, 3).flatten(-2), last, last_bias)
        made = of(self.under(attention))
        weights = made._replace(scores=(query, key, "the weights of attention"))
        self.attended.add(id(weights.scores))
        return [made, weights]

    # ---- recurrences ----

    def recurrence(self, out, x, *args, kind="lstm", gates=4):
        """Layers and directions of torch's own recurrences; each is a product of all inputs, and then the steps."""
        if isinstance(args[0], torch.Tensor) and isinstance(args[1], (list, tuple)) is False and args[0].dtype == torch.int64:
            self.refuse("sequences of different lengths")
        hx, flat, biases, layers, _drop, _train, both, first = args[:8]
        states = list(hx) if isinstance(hx, (list, tuple)) else [hx]
        each, ways = 2 + 2 * bool(biases), 1 + bool(both)
        if len(flat) != each * layers * ways:
            self.refuse("the hidden state is projected")
        y, ends = x if first else self.under(lambda: x.transpose(0, 1)), []
        for layer in range(layers):
            made = []
            for way in range(ways):
                at = layer * ways + way
                weights = flat[at * each:(at + 1) * each]
                given = [self.under(lambda s=s: s[at]) if of(s) else None for s in states]
                steps = self.unrolled if self.shared(*weights) or (gates == 3 and not biases) else self.direction
                z, end = steps(y, weights, given, kind, gates, way)
                made.append(z)
                ends.append(end)
            y = self.under(torch.cat, made, -1) if ways > 1 else made[0]
        last = of(self.under(torch.stack, ends))
        return [of(y if first else self.under(lambda: y.transpose(0, 1))), *[last] * len(states)]

    def direction(self, x, weights, given, kind, gates, back):
        w, hidden, *biases = weights
        n, v = hidden.shape[1], self.tokens(x)
        claims = self.claimed(w)
        op = self.add("linear", v.op, features=n, features_unit=gates, **claims)
        for bias in biases[:1 if gates == 3 else 2]:
            op = self.add("bias", op, **self.claimed(bias))
        if gates == 3 and biases:  # of the state's product: that of the last gate is the operator's own
            op = self.add("beside", op, extra=2, **self.claimed(biases[1], numbers=2 * n))
        if given[0] is not None:  # where the steps begin
            states = [self.tokens(t).op for t in given if t is not None]
            states = (states * gates)[:gates]
            op = self.add("insert", op, self.add("concat", *states) if gates > 1 else states[0])
        op = self.add("reverse", op) if back else op
        activation = {"rnn_tanh": "tanh", "rnn_relu": "relu"}.get(kind)
        how = self.claimed(hidden)
        if gates == 3 and biases:
            how["claims"][of(biases[1], Weight).names[0]] = n
        op = self.add("rnn" if activation else kind, op, activation=activation, **how)
        y = self.like(x.shape[:-1] + (n,), self.lasting(v, op, n))
        end = self.under(lambda: y[:, -1])
        return self.like(y.shape, of(y)._replace(op=self.add("reverse", op))) if back else y, end

    def unrolled(self, x, weights, given, kind, gates, back):
        """Step by step, by the operators of a cell: its parameters are those of other calls, too."""
        cell = {4: self.lstm_cell, 3: self.gru_cell, 1: partial(self.rnn_cell, kind=kind)}[gates]
        w, hidden, *biases = weights
        state = [t if t is not None else torch.zeros(x.shape[0], hidden.shape[1], device="meta") for t in given]
        outputs, steps = [None] * x.shape[1], range(x.shape[1])
        for t in reversed(steps) if back else steps:
            state = list(self.under(cell, self.under(lambda t=t: x[:, t]), state, w, hidden, *biases))
            outputs[t] = state[0]
        return self.under(torch.stack, outputs, 1), state[0]

    @staticmethod
    def lstm_cell(x, state, w, hidden, bias=None, more=None):
        i, f, g, o = (F.linear(x, w, bias) + F.linear(state[0], hidden, more)).chunk(4, -1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    @staticmethod
    def gru_cell(x, state, w, hidden, bias=None, more=None):
        h = state[0] if isinstance(state, (list, tuple)) else state
        (r, z, n), (r2, z2, n2) = F.linear(x, w, bias).chunk(3, -1), F.linear(h, hidden, more).chunk(3, -1)
        r, z = (r + r2).sigmoid(), (z + z2).sigmoid()
        n = (n + r * n2).tanh()
        return (n + z * (h - n),)

    @staticmethod
    def rnn_cell(x, state, w, hidden, bias=None, more=None, kind="rnn_tanh"):
        h = state[0] if isinstance(state, (list, tuple)) else state
        return (getattr(torch, kind[4:].replace("_cell", ""))(F.linear(x, w, bias) + F.linear(h, hidden, more)),)

    def cell(self, out, *args, made=None):
        values = [of(t) for t in self.under(made, *args)]
        return values if isinstance(out, tuple) else values[0]

    # ---- images ----

    def window(self, kind, v, out, kernel, stride, dilation=1, **attrs):
        """Windows over one to three dimensions, padded so that the output is as large as torch's. Of three the last two are
        columns, with as many windows of as many numbers."""
        n = out.dim() - 2
        if n == 3:
            self.plan_only["windows over three dimensions"] = True
        three = [[p] * n if isinstance(p, int) else list(p) for p in (kernel, stride or kernel, dilation)]
        three = [p * n if len(p) < n else p for p in three]
        folded = [[p[0], math.prod(p[1:])] for p in three]
        sizes, outs = (v.axes["h"], v.axes["w"]), (out.shape[2], math.prod(out.shape[3:]))
        for i, side, before, after in (0, "h", "top", "bottom"), (1, "w", "left", "right"):
            size, by, apart = (p[i] for p in folded)
            apart = apart if i == 0 or n < 3 else 1
            reach = apart * (size - 1) + 1
            if kind == "conv_transpose":
                least = (sizes[i] - 1) * by + reach
                if n == 3 and i and outs[i] > least:
                    by = -(-outs[i] // sizes[i])
                    least = (sizes[i] - 1) * by + reach
                pad = max(0, least - outs[i])
                attrs["height" if i == 0 else "width"] = outs[i]
            else:
                if outs[i] > 1:  # windows that start before the end
                    by = max(by, -(-(sizes[i] - reach) // (outs[i] - 1)) if (outs[i] - 1) * by + reach < sizes[i] - by + 1 else by)
                elif sizes[i] >= reach + by:
                    by = sizes[i] - reach + 1
                pad = max(0, (outs[i] - 1) * by + reach - sizes[i])
            attrs.update({f"kernel_{side}": size, f"stride_{side}": by, f"dilation_{side}": apart,
                          f"pad_{before}": (pad + (by > 1)) // 2, f"pad_{after}": pad - (pad + (by > 1)) // 2})
        op = self.add(kind, attrs.pop("x", v.op), **attrs)
        spatial = digits_of("h", [out.shape[2]]) + digits_of("w", list(out.shape[3:]))
        axes = {**v.axes, "f": out.shape[1], "h": outs[0], "w": outs[1]}
        return Value(op, axes, (v.dims[0], digits_of("f", [out.shape[1]])[0], *spatial))

    def conv(self, out, x, weight, bias=None, stride=1, _padding=0, dilation=1, groups=1, **_kw):
        if of(weight, Weight) is None:
            self.refuse("a convolution with a kernel that is no parameter")
        kernel, c = weight.shape[2:], out.shape[1]
        if groups == 1 and math.prod(kernel) == 1 and (out.shape[2:] == x.shape[2:] and (math.prod(out.shape[2:]) == 1 or self.shared(weight))):
            y = self.under(lambda: F.linear(x.movedim(1, -1), weight.flatten(1), bias).movedim(-1, 1))  # of single pixels
            return of(y)
        self.once("a convolution", weight)
        v = self.image(x)
        if groups == 1:
            v = self.window("conv", v, out, kernel, stride, dilation, features=c, **self.claimed(weight))
            return self.biased(v, bias)
        grouped = self.plain(v.op, groups, x.shape[1] // groups)
        v = self.window("conv_grouped", v, out, kernel, stride, dilation, x=grouped, features_unit=c // groups, **self.claimed(weight))
        return self.biased(v._replace(op=self.plain(v.op, c)), bias)

    def conv_transpose(self, out, x, weight, bias=None, stride=1, _padding=0, _output_padding=0, groups=1, dilation=1, **_kw):
        if of(weight, Weight) is None:
            self.refuse("a convolution with a kernel that is no parameter")
        if groups != 1:
            self.refuse("a transposed convolution in groups")
        self.once("a transposed convolution", weight)
        v = self.window("conv_transpose", self.image(x), out, weight.shape[2:], stride, dilation, features=out.shape[1], **self.claimed(weight))
        return self.biased(v, bias)

    def pool(self, out, x, size, stride=None, *_, average=False, **_kw):
        outs = out if isinstance(out, (list, tuple)) else [out]
        if x.dim() != outs[0].dim() or x.dim() < 3:
            self.refuse("one sample alone")
        return [self.window("pool", self.image(x), outs[0], size, stride or size, average=average)] + [None] * (len(outs) - 1)

    def adaptive(self, out, x, *_, average=True, **_kw):
        outs = out if isinstance(out, (list, tuple)) else [out]
        ins, made = x.shape[2:], outs[0].shape[2:]
        if math.prod(made) == 1 and average:
            v = self.image(x)
            return [Value(self.add("global_pool", v.op), {"b": v.axes["b"], "s": 1, "f": v.axes["f"]}, v.dims[:2] + ((),) * len(made))]
        stride = [max(1, a // b) for a, b in zip(ins, made)]
        kernel = [max(1, a - (b - 1) * s) for a, b, s in zip(ins, made, stride)]
        return [self.window("pool", self.image(x), outs[0], kernel, stride, average=average)] + [None] * (len(outs) - 1)

    def resized(self, out, x, *_, mode="nearest", align_corners=None, **_kw):
        v = self.image(x)
        outs = out.shape[2], math.prod(out.shape[3:])
        op = self.add("resize", v.op, height=outs[0], width=outs[1], linear=mode != "nearest", corners=bool(align_corners))
        spatial = digits_of("h", [out.shape[2]]) + digits_of("w", list(out.shape[3:]))
        return Value(op, {**v.axes, "h": outs[0], "w": outs[1]}, v.dims[:2] + tuple(spatial))

    def pixels(self, out, x, r):
        b, c, h, w = x.shape
        return of(self.under(lambda: x.reshape(b, c // r // r, r, r, h, w).permute(0, 1, 4, 2, 5, 3).reshape(out.shape)))

    def unpixels(self, out, x, r):
        b, c, h, w = x.shape
        return of(self.under(lambda: x.reshape(b, c, h // r, r, w // r, r).permute(0, 1, 3, 5, 2, 4).reshape(out.shape)))

    # ---- norms ----

    def norm(self, out, x, shape=(), weight=None, bias=None, *_, rms=False, **_kw):
        if len(shape) > 1:  # of several dimensions: of all their numbers
            n = len(shape)
            flat = [t.flatten() if t is not None else None for t in (weight, bias)]
            if weight is not None:
                for t, w in zip(flat, (weight, bias)):
                    if t is not None:
                        t.topt = of(w, Weight)
            return of(self.under(lambda: F.layer_norm(x.flatten(-n), [math.prod(shape)], *flat).unflatten(-1, list(shape))))
        v = self.whole(self.traced(x))
        plain, width = weight is None or self.again(weight), x.shape[-1]
        how = dict(rms=rms, plain=plain, **({} if plain else self.claimed(weight, bias)))
        if plain:
            self.claimed_again(weight, bias)
        last = v.dims[-1]
        if "s" in v.axes and all(d.axis == "f" for d in last) and 1 < width < v.axes["f"] and len(last) == 1 and last[0].stride == 1:
            op = self.add("head_norm", self.plain(v.op, v.axes["f"] // width, width), head_dim=width, **how)
            return v._replace(op=self.plain(op, v.axes["f"]), normed=False)
        v = self.tokens(x)
        made = v._replace(op=self.add("norm", v.op, **how), normed=False)
        if bias is not None and rms and not plain:
            made = made._replace(op=self.add("bias", made.op))
        return made

    def claimed_again(self, *weights):
        self.calls.update(self.keys(*weights))

    def batch_norm(self, out, x, _mean=None, _variance=None, weight=None, bias=None, *_, **_kw):
        v = self.image(x) if x.dim() > 2 else self.tokens(x)
        if weight is None:
            return v._replace(op=self.add("scale", v.op, factor=1))
        self.once("a batch norm", weight)
        return v._replace(op=self.add("batch_norm", v.op, **self.claimed(weight, bias)))

    def group_norm(self, out, x, groups, weight=None, bias=None, *_, **_kw):
        v = self.image(x) if x.dim() > 2 else self.image(self.under(lambda: x[:, :, None]))
        c = x.shape[1]
        self.once("a group norm", weight)
        op = self.add("group_norm", self.grouped(v.op, groups, c // groups), **self.claimed(weight, bias))
        v = v._replace(op=self.plain(op, c) if c > groups else op)
        return v if x.dim() > 2 else v._replace(dims=v.dims[:2])

    def instance_norm(self, out, x, _mean=None, _var=None, weight=None, bias=None, *_, **_kw):
        return self.group_norm(out, x, x.shape[1], weight, bias)

    # ---- number by number ----

    def same(self, out, x, *_, **_kw):
        v = of(x)
        return v._replace(parts=None) if v.parts else v

    def chosen(self, out, condition, x=None, y=None, **_kw):
        if x is None:
            self.refuse("the shape of its output depends on numbers")
        return of(self.under(torch.add, x, y)) if of(x) and of(y) else self.same(out, x if of(x) else y)

    def function(self, out, x, *args, activation="relu", alpha=0.0, beta=0.0, **_kw):
        v = self.traced(x) if not (of(x) and of(x).scores) else of(x)
        if v.scores or v.stat or v.op is None:
            return v
        v = self.whole(v)
        return v._replace(op=self.add("unary", v.op, activation=activation, alpha=alpha, beta=beta), normed=False, parts=None)

    def gated(self, out, x, dim=-1):
        def make():
            a, gate = x.chunk(2, dim)
            return a * gate.sigmoid()
        return of(self.under(make))

    def prelu(self, out, x, weight):
        v = self.image(x) if x.dim() > 2 else self.tokens(x)
        self.once("a PReLU", weight)
        return v._replace(op=self.add("prelu" if weight.numel() > 1 else "prelu_shared", v.op, **self.claimed(weight)))

    def softmax(self, out, x, *_, log=False, **_kw):
        return of(x)._replace(parts=None)

    def both(self, out, x, y, *_, kind="add", **_kw):
        """A sum or product with a value, a parameter, or a number, a mask, angles of positions."""
        x, y = (y, x) if of(x) is None else (x, y)
        a, b, weight = of(x), of(y), of(y, Weight)
        if b and (a.scores or b.scores):
            return a if a.scores else b
        if b and (a.loss or b.loss):
            return a if a.loss else b
        if b and a.op is None and b.op is None:
            return a if x.shape == out.shape else b if y.shape == out.shape else self.data(out)
        if b and (a.op is None) != (b.op is None):  # of data and of what is made of them
            t = x if a.op is None else y
            if t.shape == out.shape:
                t = self.like(t.shape, self.tokens(t))
                x, y, a, b = (t, y, of(t), b) if a.op is None else (x, t, a, of(t))
        if b and a.op == b.op and (kind == "add" or a.stat or b.stat):
            if a.stat == b.stat or len(a.cuts) == len(b.cuts):
                return (a if not a.stat else b)._replace(normed=a.stat != b.stat, stat=a.stat and b.stat, parts=None)
        if b:
            return self.of_two(out, x, y, kind)
        if weight:
            return self.with_weight(out, x, y, weight, kind)
        v = a._replace(parts=None)
        return v if tuple(out.shape) == tuple(x.shape) or a.scores else of(self.under(lambda: x.expand(out.shape)))

    def of_two(self, out, x, y, kind):
        if y.shape == out.shape != x.shape:
            x, y = y, x
        if x.shape == y.shape:
            a, b = self.whole(self.statistic(of(x))), self.whole(self.statistic(of(y)))
            if a.op and b.op and a.axes == b.axes and a.dims == b.dims and not product(sum(a.dims, ()), "r") > 1:
                return a._replace(op=self.add(kind, a.op, b.op), normed=False, parts=None)
        elif kind == "mul" and x.shape == out.shape and x.dim() == y.dim() > 2:
            if y.shape[1] == x.shape[1] and y[0].numel() == y.shape[1] and "h" in self.whole(of(x)).axes:  # channels
                v, g = self.image(x), self.tokens(self.under(lambda: y.flatten(1)))
                return v._replace(op=self.add("weigh", v.op, g.op), parts=None)
            if y.shape[:-1] == x.shape[:-1] and y.shape[-1] == 1:  # positions
                v, g = self.tokens(x), self.tokens(y)
                return v._replace(op=self.add("weigh", v.op, g.op), parts=None)
        if x.shape != out.shape:
            x = self.under(lambda: x.expand(out.shape))
        a, b = self.pictured(x, y if y.shape == x.shape else self.under(lambda: y.expand(out.shape)))
        return a._replace(op=self.add(kind, a.op, b.op), normed=False, parts=None)

    def with_weight(self, out, x, y, weight, kind):
        a, numbers = of(x), y.numel()
        if a.scores or numbers == 1 or a.stat:
            return a  # its few numbers are told of
        if x.shape != out.shape:
            x = self.under(lambda: x.expand(out.shape))
            a = of(x)
        shape = (1,) * (out.dim() - y.dim()) + tuple(y.shape)
        channels = out.dim() > 3 and shape[1] == numbers
        v = self.image(x) if channels else self.tokens(x)
        if kind == "mul":
            if a.normed and not channels and numbers == v.axes["f"]:
                return self.norm(out, x, (), y, rms=True)
            if numbers != v.axes["f"]:
                return v
            if self.again(y):
                return v._replace(op=self.add("scale", v.op, factor=1))
            return v._replace(op=self.add("gain", v.op, **self.claimed(y)))
        rows = weight.rows or (numbers // v.axes["f"] if numbers > v.axes["f"] else 1)
        if 1 < rows < v.axes["s"] and out.dim() > 2 if not channels else False:  # kinds of tokens
            kinds = self.add("embedding", vocab=rows, features=out.shape[-1], **self.claimed(y, numbers=rows * out.shape[-1]))
            return v._replace(op=self.add("add", v.op, kinds))
        if numbers % v.axes["f"] or (self.again(y) and rows > 1):
            return v
        if rows > 1:
            return v._replace(op=self.add("position", v.op, positions=rows, **self.claimed(y, numbers=rows * v.axes["f"])))
        return self.biased(v, y)

    # ---- reductions ----

    def reduced(self, out, x, dim=None, keepdim=False, *_, average=True, **kw):
        outs = out if isinstance(out, (list, tuple)) else [out]
        v, out = of(x), outs[0]
        if v.scores and not (keepdim or self.called in ("max", "amax", "logsumexp")):
            self.refuse("it takes a product of two computed tensors that is no attention")
        if v.scores or v.loss or v.stat:
            return v
        if "axis" in kw:
            dim = kw["axis"]
        if isinstance(dim, torch.Tensor):
            return self.both(out, x, dim)
        if dim is None:
            if out.dim() == 0:
                return self.lost(out, x)
            self.refuse("a reduction of all dimensions")
        where = sorted(d % x.dim() for d in ([dim] if isinstance(dim, int) else dim))
        rest = [None] * (len(outs) - 1)
        kept = [i for i in range(x.dim()) if i not in where]
        gone = sum((v.dims[i] for i in where), ())
        shaped = lambda dims: tuple(() if i in where else dims[i] for i in range(x.dim()) if keepdim or i not in where)
        if any(d.axis == "b" for d in gone):
            self.refuse("a sum or mean over samples")
        if v.op is None and v.ids:
            return [self.data(out, ids=True), *rest]
        if v.op is None and where == [x.dim() - 1] and x.dim() > 2:
            v = self.tokens(x)
        v = self.whole(v) if v.op else v
        full = lambda axis: product(gone, axis) == v.axes.get(axis, 1)
        if not product(gone) > 1:
            return [v._replace(dims=shaped(v.dims), parts=None), *rest]
        if v.op and all(d.axis == "f" for d in gone) and full("f"):
            return [v._replace(dims=shaped(v.dims), stat=True, parts=None), *rest]
        if v.op and "h" in v.axes and full("h") and full("w") and all(d.axis in "hw" for d in gone):
            made = Value(self.add("global_pool", v.op), {"b": v.axes["b"], "s": 1, "f": v.axes["f"]}, shaped(v.dims))
            return [made, *rest]
        if v.op and "s" in v.axes and full("s") and all(d.axis == "s" for d in gone):
            made = Value(self.add("reduce_sequence", v.op, mean=average), {**v.axes, "s": 1}, shaped(v.dims))
            return [made, *rest]
        lead = [i for i in kept if v.dims[i] and not any(d.axis == "b" for d in v.dims[i])]
        samples = [i for i in kept if i not in lead]
        turned = self.under(lambda: x.permute(samples + lead[-1:] + lead[:-1] + where).flatten(0, max(0, len(samples) - 1)))
        n = math.prod(x.shape[i] for i in where)
        middle = math.prod(x.shape[i] for i in lead[:-1])
        turned = self.under(lambda: turned.reshape(turned.shape[0], x.shape[lead[-1]] if lead else 1, middle, n))
        pooled = self.pool(turned[..., :1], turned, (1, n), (1, n), average=average)[0]
        made = self.like(turned.shape[:3], pooled._replace(dims=pooled.dims[:3]))
        back = lead[-1:] + lead[:-1]
        y = self.under(lambda: made.reshape([made.shape[0]] + [x.shape[i] for i in back]))
        y = self.under(lambda: y.permute([0] + [1 + back.index(i) for i in lead]).reshape(out.shape))
        return [of(y), *rest]

    # ---- tables and losses ----

    def looked_up(self, out, ids, weight, *_, **_kw):
        table, rows, n = of(weight, Weight), weight.shape[0], out.shape[-1]
        if not of(ids):  # positions, kinds of tokens
            return table and table._replace(rows=rows)
        if table is None:
            self.refuse("a table that is no parameter")
        length = product(sum(of(ids).dims, ()), "f")
        self.lengths[length] = 1
        if self.shared(weight):
            op = self.add("embedding", self.variable(weight, rows, n))
        else:
            op = self.add("embedding", vocab=rows, features=n, **self.claimed(weight))
        dims = of(ids).dims + (digits_of("f", [n])[0],)
        v = self.renumbered(of(ids)._replace(dims=dims), {"s": range(len(dims) - 1), "f": [len(dims) - 1]})._replace(op=op)
        if self.seq > length:  # a document has one number of tokens: those beyond are cut off
            v = self.whole(v._replace(axes={**v.axes, "s": self.seq}, cuts=(Cut("s", 1, self.seq, 0, length),)))
        return v

    def bag(self, out, ids, weight, *_, **_kw):
        if of(ids) is not None and self.seq > 1:
            self.refuse("bags of rows beside a sequence")
        ids, weight = (weight, ids) if of(ids, Weight) else (ids, weight)
        self.once("a bag of rows", weight)
        bags, n = out.shape
        op = self.add("embedding_bag", tables=[weight.shape[0]], lookups=max(1, ids.numel() // bags), features=n, **self.claimed(weight))
        if bags != self.batch:
            self.refuse(f"{bags} bags for {self.batch} samples")
        return [Value(self.plain(self.add("join_vectors", op), n), {"b": bags, "s": 1, "f": n}, (digits_of("b", [bags])[0], digits_of("f", [n])[0]))]

    def lost(self, out, x, *_, **_kw):
        """A loss: what it is of leads on."""
        v = of(x)
        if v is None or v.op is None:
            return None
        last = 1 if self.called in ("cross_entropy", "nll_loss") and x.dim() > 2 else -1
        v = self.tokens(self.under(lambda: x.movedim(last, -1)) if x.dim() else x)
        self.roots.append((v, "cross_entropy" if self.called in ("cross_entropy", "nll_loss") else "mse"))
        return Value(v.op, v.axes, (), loss=True)

    # ---- calls ----

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name == "__get__":
            name = getattr(func.__self__, "__name__", "")
        elif name in ("__set__", "__delete__"):
            return func(*args, **kwargs)
        asked, name = name in ASKED, name.strip("_")
        self.called = name
        tensors = [t for t in flattened([*args, *kwargs.values()]) if isinstance(t, torch.Tensor)]
        meta = any(t.is_meta for t in tensors)
        if meta and asked and not (name in ("bool", "item") and getattr(args[0], "topt", None) == ALL):
            self.refuse("the module asks for a number of a tensor (a condition or a size that depends on data)")
        if meta and name in DYNAMIC:
            self.dynamic(name, args)
        if name == "setitem" and of(args[2]) and not args[2].topt.ids:
            self.refuse("numbers are put into a tensor; torch.stack or torch.cat of the parts is known")
        if meta and name not in ("getitem", "index_select"):
            args, kwargs = moved(args), moved(kwargs)
        try:
            out = SHAPES.get(name, func)(*args, **kwargs) if meta else func(*args, **kwargs)
        except NotTraced:
            raise
        except (NotImplementedError, RuntimeError) as error:
            if not meta or isinstance(error, (torch.cuda.OutOfMemoryError,) if hasattr(torch.cuda, "OutOfMemoryError") else ()):
                raise
            self.called = name
            self.refuse(f"torch does not do it without numbers: {str(error).splitlines()[0][:200]}")
        self.called = name
        values = [t for t in tensors if of(t)]
        if name in PRODUCTS and not values and any(of(t, Weight) for t in tensors):
            for t in tensors:  # constants for each sample, such as the first state of a recurrence
                if of(t, Weight) is None and t.is_floating_point() and t.dim() > 1 and t.shape[0] == self.batch:
                    t.topt = self.data(t)
                    values.append(t)
        if name in ("embedding", "embedding_bag") or values:
            self.outputs(out, self.what(name, func, out, args, kwargs, values), name)
        elif any(of(t, Weight) for t in tensors) and name not in CONSTANT:
            weights = [of(t, Weight) for t in tensors if of(t, Weight)]
            names = tuple(dict.fromkeys(n for w in weights for n in w.names))
            for t in flattened([out]):
                if isinstance(t, torch.Tensor) and of(t, Weight) is None:
                    t.topt = Weight(names)
                    if name in ("expand", "repeat", "expand_as", "tile") and t.dim() == 3 and t.shape[0] == self.batch and \
                            t.shape[1] > 1 and self.copied(t):
                        self.traced(t)  # rows that are read for each sample, such as latents
        elif name == "all" and isinstance(out, torch.Tensor):
            out.topt = ALL
        return out

    def dynamic(self, name, args):
        """A shape that depends on numbers."""
        if name == "getitem":
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if not any(isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8) and i.dim() for i in index):
                return
            self.called = "boolean indexing"
        if name == "where" and len(args) > 1 or name == "repeat_interleave" and not isinstance(args[-1], torch.Tensor):
            return
        self.refuse("the shape of its output depends on numbers")

    def what(self, name, func, out, args, kwargs, values):
        if not any(isinstance(t, torch.Tensor) for t in flattened([out])) or name in CONSTANT:
            return None
        call = TABLE.get(name)
        if all(of(t).ids for t in values) and name not in IDS:
            return None
        if call is None and all(of(t).op is None and not of(t).scores for t in values):
            return None if all(of(t).ids for t in values) else self.refuse()
        if call is None:
            self.refuse()
        if "out" in kwargs:
            kwargs = {key: v for key, v in kwargs.items() if key != "out"}
        if call is Trace.permuted:
            return call(self, out, *args, func=func, **kwargs)
        return call(self, out, *args, **kwargs)

    def outputs(self, out, found, name):
        outs = out if isinstance(out, (tuple, list)) else [out]
        for t, v in zip(outs, found if isinstance(found, list) else [found]):
            if v is not None and isinstance(t, torch.Tensor):
                t.topt = v


ALL = "whether all of a mask is set"


def three_pooled(x, size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """What torch 1.13 can't do on the meta device: the output's shape alone."""
    if dilation not in (1, (1, 1, 1)) or return_indices:
        raise NotImplementedError("windows of three dimensions with gaps, or where their largest numbers are")
    return F.avg_pool3d(x, size, stride, padding, ceil_mode)


def interleaved(x, times, dim, **_):
    """The shape alone, too."""
    dim %= x.dim()
    return x.unsqueeze(dim + 1).expand([-1] * (dim + 1) + [times] + [-1] * (x.dim() - dim - 1)).flatten(dim, dim + 1)


# What torch can't do on the meta device: shapes alone; and whether padding is at the end, which asks for a path of inference.
SHAPES = {"max_pool3d": three_pooled, "repeat_interleave": interleaved, "weight_norm": lambda v, *_: torch.empty_like(v),
          "nested_tensor_from_mask_left_aligned": lambda *_: False}


def flattened(things):
    for x in things:
        if isinstance(x, (list, tuple)):
            yield from flattened(x)
        elif isinstance(x, dict):
            yield from flattened(x.values())
        else:
            yield x


def moved(things):
    """Constants that the module made elsewhere, on the meta device too."""
    if isinstance(things, dict):
        return {key: moved(v) for key, v in things.items()}
    if isinstance(things, (list, tuple)) and not isinstance(things, torch.Size):
        made = [moved(x) for x in things]
        return type(things)(made) if type(things) in (list, tuple) else things
    return things.to("meta") if isinstance(things, torch.Tensor) and things.dim() and not things.is_meta else things


def unary(kind, **how):
    return partial(Trace.function, activation=kind, **how)


def halves(kind):
    return partial(Trace.cell, made=getattr(Trace, kind))


# Names of torch's functions without underscores around, and what is made of their calls.
CALLS = {
    "permute transpose t T mT movedim moveaxis swapaxes swapdims": Trace.permuted,
    "view reshape flatten unflatten squeeze unsqueeze ravel view_as reshape_as": Trace.viewed,
    "expand expand_as repeat broadcast_to tile": Trace.expanded, "repeat_interleave": Trace.expanded,
    "view_as_complex": Trace.as_complex, "view_as_real": Trace.as_real,
    "getitem": Trace.taken, "select": Trace.selected, "index_select": Trace.selected, "narrow": Trace.narrowed,
    "split split_with_sizes chunk tensor_split": Trace.split, "unbind": partial(Trace.split, unbind=True, at=0),
    "iter": lambda *_: None,
    "cat concat concatenate": Trace.joined, "stack": Trace.stacked,
    "linear": Trace.linear, "matmul bmm mm rmatmul": Trace.product, "addmm baddbmm": Trace.added, "einsum": Trace.einsum,
    "scaled_dot_product_attention": Trace.attend, "multi_head_attention_forward": Trace.multi_head,
    "lstm": Trace.recurrence, "gru": partial(Trace.recurrence, kind="gru", gates=3),
    "rnn_tanh": partial(Trace.recurrence, kind="rnn_tanh", gates=1), "rnn_relu": partial(Trace.recurrence, kind="rnn_relu", gates=1),
    "lstm_cell": halves("lstm_cell"), "gru_cell": halves("gru_cell"), "rnn_tanh_cell": halves("rnn_cell"),
    "rnn_relu_cell": partial(Trace.cell, made=partial(Trace.rnn_cell, kind="rnn_relu")),
    "conv1d conv2d conv3d": Trace.conv, "conv_transpose1d conv_transpose2d conv_transpose3d": Trace.conv_transpose,
    "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices": Trace.pool,
    "avg_pool1d avg_pool2d avg_pool3d": partial(Trace.pool, average=True),
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d": Trace.adaptive,
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d": partial(Trace.adaptive, average=False),
    "interpolate upsample": Trace.resized, "pixel_shuffle": Trace.pixels, "pixel_unshuffle": Trace.unpixels,
    "layer_norm": Trace.norm, "rms_norm": partial(Trace.norm, rms=True), "batch_norm": Trace.batch_norm,
    "group_norm": Trace.group_norm, "instance_norm": Trace.instance_norm,
    "mean": Trace.reduced, "std var norm": Trace.reduced, "sum nansum": partial(Trace.reduced, average=False),
    "max min amax amin logsumexp": partial(Trace.reduced, average=False),
    "embedding": Trace.looked_up, "embedding_bag": Trace.bag,
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy": Trace.lost,
    "binary_cross_entropy_with_logits kl_div gaussian_nll_loss poisson_nll_loss": Trace.lost,
    "add iadd radd sub isub rsub subtract": partial(Trace.both, kind="add"),
    "mul imul rmul multiply div idiv truediv itruediv rtruediv rdiv true_divide maximum minimum": partial(Trace.both, kind="mul"),
    "masked_fill": Trace.same, "where": Trace.chosen, "glu": Trace.gated, "prelu": Trace.prelu,
    "softmax log_softmax softmin": Trace.softmax,
    "gelu": unary("gelu_erf"), "hardswish": unary("hard_swish"), "hardsigmoid": unary("hard_sigmoid", alpha=1 / 6, beta=0.5),
    "relu6 hardtanh": unary("clip", beta=6.0), "mish celu selu logsigmoid": unary("softplus"),
    **{kind: unary(kind) for kind in "relu silu tanh sigmoid leaky_relu elu softplus softsign".split()},
    # Looked through: they cost next to nothing beside products, or move no numbers.
    "to type float half bfloat16 double type_as contiguous clone detach data cpu cuda requires_grad real imag conj": Trace.same,
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout native_dropout": Trace.same,
    "neg abs pow rpow ipow square sqrt rsqrt exp expm1 log log1p log2 sin cos erf reciprocal clamp clamp_min clamp_max clip": Trace.same,
    "roll flip normalize sign round floor ceil nan_to_num positive identity tril triu to_dense alias": Trace.same,
    "lerp addcmul addcdiv pad": Trace.same}
TABLE = {name: call for names, call in CALLS.items() for name in names.split()}
# Their output is no value, whatever they are given: made anew, or whether numbers compare.
CONSTANT = set("""zeros_like ones_like full_like empty_like rand_like randn_like randint_like bernoulli new_zeros new_ones new_full
    new_empty new_tensor eq ne lt gt le ge isnan isinf isfinite logical_and logical_or logical_not and or invert xor any all shape size
    dim is_floating_point grad fn requires_grad_ retain_grad register_hook stride device dtype layout bool_ equal is_same_size
    argsort_ids set_ isclose allclose is_contiguous storage_offset data_ptr element_size has_names""".split())
# Of whole numbers that are data: what is still one.
IDS = set("""embedding embedding_bag view reshape flatten unsqueeze squeeze transpose permute t T getitem to type long int contiguous
    clone detach narrow select split chunk unbind cat stack add sub rsub clamp where masked_fill expand repeat movedim roll flip""".split())
PRODUCTS = set("""linear matmul bmm mm addmm baddbmm einsum conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d lstm gru
    rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell multi_head_attention_forward""".split())
DYNAMIC = set("nonzero masked_select unique unique_consecutive argwhere bincount getitem where repeat_interleave masked_scatter".split())
ASKED = set("__bool__ __int__ __float__ __index__ __complex__ item tolist numpy".split())  # whether all of a mask is set: yes



def layers_of(module):
    """Children of the outermost ModuleLists that have two of them or more, whatever their classes,
    but no lists: those that topt_apply.py shards and checkpoints one by one."""
    lists = torch.nn.ModuleList, torch.nn.ModuleDict
    for child in module.children():
        if isinstance(child, lists[0]) and len(child) > 1 and not any(isinstance(c, lists) for c in child):
            yield from child
        else:
            yield from layers_of(child)


@contextlib.contextmanager
def indexed():
    """torch 1.13 tells a mode of no index that is a number, a slice or a tensor alone, but of tuples."""
    known = torch.Tensor.__getitem__

    def __getitem__(t, index):
        index = index if isinstance(index, tuple) else (index,)
        return known(t, index + (Ellipsis,) if len(index) == 1 and isinstance(index[0], (torch.Tensor, list)) else index)
    torch.Tensor.__getitem__ = __getitem__
    try:
        yield
    finally:
        del torch.Tensor.__getitem__


def traced(model, batch, batch_dim, seq, calls):
    """One pass over the module: the trace, and its outputs."""
    meta = lambda x: x.detach().to("meta") if isinstance(x, torch.Tensor) else x
    shadow, parameters = {id(b): meta(b) for b in model.buffers()}, dict(model.named_parameters())
    for name, p in parameters.items():
        shadow[id(p)] = nn.Parameter(meta(p), p.is_floating_point())
        shadow[id(p)].topt = Weight((name,))
    for t in (t for m in model.modules() for t in vars(m).values() if isinstance(t, torch.Tensor)):
        shadow.setdefault(id(t), meta(t))  # such as the weight that a norm of weights made last
    twin = copy.deepcopy(model, shadow)
    batch = batch if isinstance(batch, (dict, tuple, list)) else (batch,)
    keywords = {key: meta(v) for key, v in batch.items()} if isinstance(batch, dict) else {}
    args = [] if isinstance(batch, dict) else [meta(v) for v in batch]
    data = [t for t in flattened([*args, *keywords.values()]) if isinstance(t, torch.Tensor) and t.dim() > batch_dim]
    if not data:
        raise ValueError("topt_torch: the batch has no tensor")
    trace = Trace(data[0].shape[batch_dim], seq, calls)
    trace.shapes = {name: (tuple(p.shape), p.requires_grad) for name, p in parameters.items()}
    trace.number(twin)
    for t in data:
        if t.shape[batch_dim] == trace.batch and t.dtype != torch.bool:
            t.topt = trace.data(t, batch_dim, not t.is_floating_point())
    with torch.enable_grad(), indexed(), trace:
        out = twin(*args, **keywords)
    return trace, [t for t in flattened([vars(out) if hasattr(out, "__dict__") and not isinstance(out, (dict, torch.Tensor)) else out])
                   if isinstance(t, torch.Tensor)], data


def ended(trace, out):
    """The operator that the loss is of, all outputs in it; whether the module has a loss of its own."""
    trace.path, trace.called, trace.layer = [], "the output", {}
    ends = list(trace.roots)
    for t in out:
        v = of(t)
        if v and v.scores and id(v.scores) not in trace.attended:
            trace.called = v.scores[2]
            trace.refuse("its output is a product of two computed tensors that is no attention")
        if v and v.op and not v.loss and not v.scores:
            with trace:
                flat = t.movedim(1, -1) if "h" in v.axes and t.dim() > 2 else t
            ends.append((trace.tokens(flat), None))
    if not ends:
        raise NotTraced("topt_torch: no known functions lead from the batch to the output")
    (main, kind), *others = ends
    inputs = {o["name"]: o["inputs"] for o in trace.ops}
    reached = set()

    def reach(op):
        todo = [op]
        while todo:
            op = todo.pop()
            if op not in reached:
                reached.add(op)
                todo += inputs.get(op, ())
    reach(main.op)
    op = main.op
    for v, _ in others:
        if v.op in reached:
            continue
        reach(v.op)
        g = trace.add("reduce_features", v.op, mean=True)  # an output beside the first one has its part in the loss
        if v.axes["s"] != main.axes["s"]:
            g = trace.add("reduce_sequence", g, mean=True) if v.axes["s"] > 1 else g
            if main.axes["s"] > 1:
                g = trace.add("resize", trace.add("untokens", g, height=1, width=1), height=main.axes["s"], width=1)
                g = trace.add("tokens", g)
        op = trace.add("weigh", op, g)
    return op, kind or ("cross_entropy" if main.axes["f"] > 1 else "mse")


def document(model, batch, loss=None, batch_dim=0):
    """The module as a native document, and parameters in none of its operators: their numbers."""
    first, _, _ = traced(model, batch, batch_dim, 0, None)
    tokens = [n for n, ids in first.lengths.items() if ids] or list(first.lengths) or [1]
    trace, out, data = traced(model, batch, batch_dim, max(tokens), first.calls)
    op, kind = ended(trace, out)

    def reached(ends):
        needed = set(ends)
        for o in reversed(trace.ops):
            needed.update(o["inputs"] if o["name"] in needed else ())
        return needed
    held = Counter()
    for name in reached({op}):
        held.update(trace.claims[name])
    lost = {name: p.numel() - held[name] for name, p in model.named_parameters() if p.numel() > held[name]}
    if not any(held.values()):
        raise NotTraced("topt_torch: no parameter of the module has an operator")
    if lost:
        mean = trace.add("reduce_features", op, mean=True)
        op = trace.add("weigh", op, trace.add("beside", mean, extra=sum(lost.values())))
    needed = reached({trace.add(loss or kind, op)})
    return {"format": "topt-model/1", "name": type(model).__name__, "batch": trace.batch,
            "seq": max(tokens), **({"plan_only": ", ".join(trace.plan_only)} if trace.plan_only else {}),
            "ops": [o for o in trace.ops if o["name"] in needed]}, lost


def plan(model, batch, hw, topt="topt", loss=None, batch_dim=0, **options):
    """`topt plan` of the module; `options` are its own: gpus=8, max_gpus=64 ("_" means "-")."""
    doc, lost = document(model, batch, loss, batch_dim)
    command = [topt, "plan", "/dev/stdin", "--hw", hw, "--json"]
    for key, v in options.items():
        command += ["--" + key.replace("_", "-"), *([] if v is True else [str(v)])]
    run = subprocess.run(command, input=json.dumps(doc), capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return {**json.loads(run.stdout), "untraced": lost}
