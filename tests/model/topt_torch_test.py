#!/usr/bin/env python3
"""Modules of PyTorch as topt_torch.py sees them: every parameter in an operator, or told of, and a plan.

    python3 topt_torch_test.py TOPT FOLDER-OF-topt_torch.py"""
import json
import subprocess
import sys
import tempfile

try:
    import torch
    from torch import nn
    from torch.nn import functional as f
except ImportError:
    print("1..0 # SKIP PyTorch is not installed")
    sys.exit(77)

sys.path.insert(0, sys.argv[2])
import topt_torch  # noqa: E402 - its folder is an argument
import topt_torch_count  # noqa: E402 - where torch is
import torch_modules  # noqa: E402

TOPT = sys.argv[1]
failed = tests = 0


def ok(good, text, shown=""):
    global failed, tests
    tests += 1
    failed += not good
    print(f"{'' if good else 'not '}ok {tests} - {text} {'' if good else shown}".rstrip())


class Block(nn.Module):
    """Attention by hand under a causal mask, and a feed-forward."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (z.view(b, t, self.heads, w // self.heads).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(w, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (w // self.heads) ** -0.5
        scores = scores + torch.full((t, t), float("-inf"), device=x.device).triu(1)
        x = x + self.out((f.dropout(f.softmax(scores, -1), 0.1) @ v).transpose(1, 2).reshape(b, t, w))
        return x + self.down(f.gelu(self.up(self.norm2(x))))


class Language(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.tokens, self.places = nn.Embedding(100, 32), nn.Embedding(48, 32)
        self.blocks = nn.ModuleList(Block(32, 4) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 100, bias=False)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Grouped(nn.Module):
    """Root mean squares and rotary positions by hand, keys that two queries share, gated units of one projection."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(32))
        self.q, self.k, self.v = nn.Linear(32, 32, bias=False), nn.Linear(32, 16, bias=False), nn.Linear(32, 16, bias=False)
        self.both, self.down = nn.Linear(32, 96, bias=False), nn.Linear(48, 32, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        y = self.gain * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        q, k, v = (p(y).view(b, t, -1, 8).transpose(1, 2) for p in (self.q, self.k, self.v))
        angles = torch.ones(t, 8, device=x.device)
        q, k = (z * angles.cos() + torch.cat((-z[..., 4:], z[..., :4]), -1) * angles.sin() for z in (q, k))
        k, v = (z[:, :, None].expand(b, 2, 2, t, 8).reshape(b, 4, t, 8) for z in (k, v))
        x = x + ((q @ k.transpose(2, 3)).softmax(-1) @ v).transpose(1, 2).reshape(b, t, 32)
        gate, up = self.both(x).chunk(2, dim=-1)
        return self.down(f.silu(gate) * up)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.each, self.pool, self.classes = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.MaxPool2d(2), nn.Linear(128, 10)

    def forward(self, x):
        x = f.relu(self.norm(self.conv(x)))
        return self.classes(self.pool(x + self.each(x)).flatten(1))


class Shared(nn.Module):
    """Two lookups in one table."""

    def __init__(self):
        super().__init__()
        self.left, self.right, self.out = nn.Embedding(50, 32), nn.Embedding(50, 32), nn.Linear(32, 7)
        self.right.weight = self.left.weight

    def forward(self, left, right):
        return self.out(self.left(left) + self.right(right))


class Gated(nn.Module):
    """Channels weighed by what is made of their means, of an image that is padded beforehand."""

    def __init__(self):
        super().__init__()
        self.conv, self.gate, self.last = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        x = self.conv(f.pad(x, (0, 1, 0, 1)))
        x = x + self.last(x * torch.sigmoid(self.gate(f.adaptive_avg_pool2d(x, 1))))
        return x.mean((2, 3))


class Spare(nn.Module):
    """With a part that is never called, and a number that all are multiplied by."""

    def __init__(self):
        super().__init__()
        self.steps, self.classes = nn.LSTM(32, 32, batch_first=True), nn.Linear(32, 10)
        self.pooler, self.scale = nn.Linear(32, 32), nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.classes(self.steps(x)[0][:, -1]) * self.scale


def inspected(doc):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(doc, file)
        file.flush()
        run = subprocess.run([TOPT, "inspect", file.name, "--json"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if not run.returncode else {"parameters": run.stderr.strip(), "kinds": {}}


def check(name, model, batch, kinds, flops=None):
    want = sum(p.numel() for p in model.parameters())
    doc, lost = topt_torch.document(model, batch)
    seen = inspected(doc)
    ok(seen["parameters"] == want, f"{name}: {want} parameters", seen["parameters"])
    counts = {k: seen["kinds"].get(k, {}).get("operators", 0) for k in kinds}
    ok(counts == kinds, f"... {kinds}", counts)
    if flops:
        ok(abs(seen["flops_per_sample"] / flops - 1) < 0.12, f"... {flops} operations", seen["flops_per_sample"])
    return lost


ids, rows = torch.zeros(2, 16, dtype=torch.long), torch.zeros(2, 6, 32)
products = 2 * 12 * 32 * 32 + 32 * 100
check("a language model", Language(False), ids, {"attention": 2, "position": 1, "add": 4, "norm": 5},
      6 * 16 * products + 2 * 7 * 4 * 16 * 16 * 32)
lost = check("one whose head is its table", Language(True), ids, {"variable": 1, "linear": 9})
ok(not lost, "nothing of it is left out", lost)


class Unlike(nn.Module):
    """Layers of two classes, one of which holds a list itself; a list of one, which is none."""

    def __init__(self):
        super().__init__()
        self.start = nn.ModuleList([nn.Linear(32, 32)])
        self.layers = nn.ModuleList([Block(32, 4), nn.Linear(32, 32), Listed()])

    def forward(self, x):
        x = self.start[0](x)
        for layer in self.layers:
            x = layer(x)
        return x


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))

    def forward(self, x):
        return self.parts[1](self.parts[0](x))


def layers(model, batch):
    """Of each layer the numbers of its parameters' operators; None: of what is in none."""
    counts = {}
    for op in topt_torch.document(model, batch)[0]["ops"]:
        if op["kind"] in ("linear", "norm", "embedding", "position"):
            counts[op.get("layer")] = counts.get(op.get("layer"), 0) + 1
    return counts


got = layers(Language(False), ids)
ok(got == {None: 4, 0: 6, 1: 6}, "children of a ModuleList are layers", got)
got = layers(Unlike(), rows)
ok(got == {None: 1, 0: 6, 1: 1, 2: 2}, "of the outermost one, alike or not", got)
check("shared keys, gated units", Grouped(), rows, {"attention": 1, "norm": 1, "slice": 2, "mul": 1, "unary": 1})
check("images", Images(), torch.zeros(2, 3, 8, 8), {"conv": 1, "conv_grouped": 1, "batch_norm": 1, "pool": 1, "add": 1})
check("images that a pool reads past the end of", nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.MaxPool2d(2, ceil_mode=True),
                                                               nn.Flatten(), nn.Linear(200, 10)),
      torch.zeros(2, 3, 18, 18), {"conv": 1, "pool": 1, "flatten": 1})
check("gated channels", Gated(), torch.zeros(2, 3, 8, 8), {"conv": 2, "linear": 1, "weigh": 1, "global_pool": 2})
check("one table for two lookups", Shared(), (ids, ids.clone()), {"variable": 1, "embedding": 2})
check("torch's own encoder layer", nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), rows, {"attention": 1, "add": 2})
lost = check("parameters that nothing reads", Spare(), rows, {"linear": 2, "beside": 1, "select": 1, "lstm": 1})
ok(lost == {"pooler.weight": 1024, "pooler.bias": 32, "scale": 1}, "are counted, and named", lost)

for name, make, batch, kinds, *apart in torch_modules.MODULES:
    torch.manual_seed(1)
    model = make()
    lost = check(name, model, batch, kinds)
    ok(not lost, "... each of them in an operator", lost)
    doc, _ = topt_torch.document(model, batch)
    seen = inspected(doc)["kinds"]
    flops = lambda *of: sum(seen[kind]["flops_per_sample"] for kind in of if kind in seen)
    # An attention's backward makes its scores again: seven products in place of six.
    got = doc["batch"] * (flops("linear", "conv", "conv_grouped", "conv_transpose", "lstm", "gru", "rnn", "interact")
                          + flops("attention") * 6 // 7)
    want = topt_torch_count.count(model, batch)
    ok(abs(got / want - 1) <= (apart or [0.01])[0], f"... {want} operations of a step", got)
for name, part, words in torch_modules.REFUSED:
    try:
        doc, _ = topt_torch.document(torch_modules.Dynamic(part), torch_modules.ROWS)
        ok(False, f"{name} is refused", [op["kind"] for op in doc["ops"]])
    except topt_torch.NotTraced as error:
        ok(all(word in str(error) for word in words) and "\n" not in str(error), f"{name} is refused: {error}", words)

model = Language(False)
weight = model.head.weight
plan = topt_torch.plan(model, ids, hw="a100-80-dgx", topt=TOPT, gpus=2)
ok(plan["untraced"] == {} and "plan" in json.dumps(plan), "a plan", str(plan)[:200])
ok(model.head.weight is weight and not weight.is_meta, "the module is left as it was")
try:
    topt_torch.plan(model, ids, hw="nonesuch", topt=TOPT)
    ok(False, "hardware that is not known")
except RuntimeError as error:
    ok("nonesuch" in str(error), "hardware that is not known is topt's own error", error)
print(f"1..{tests}")
sys.exit(1 if failed else 0)
