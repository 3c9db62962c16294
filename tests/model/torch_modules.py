"""Modules that people train, small, for topt_torch_test.py: a row of MODULES each.

A row is a name, what makes the module, its batch, the operators of some kinds that it must become, and, where it is not one in a
hundred, how far operations may be off: a step of a recurrence counts its cell, and products of every two vectors only those that are
read. One of REFUSED is a name, what is refused, and words of the error: the function's name and the module's path."""
import math

import torch
from torch import nn
from torch.nn import functional as f


class Residual(nn.Module):
    def __init__(self, c, n, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n)
        self.conv2, self.bn2 = nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n)
        self.down = nn.Sequential(nn.Conv2d(c, n, 1, stride, bias=False), nn.BatchNorm2d(n)) if c != n else nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(f.relu(self.bn1(self.conv1(x)))))
        return f.relu(y + self.down(x))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1),
                         Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


class UNet(nn.Module):
    """Halves and doubles an image; what was there before is joined to what comes back."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.mid = self.two(1, 8), self.two(8, 16), self.two(16, 32)
        self.up2, self.back2 = nn.ConvTranspose2d(32, 16, 2, 2), self.two(32, 16)
        self.up1, self.back1 = nn.ConvTranspose2d(16, 8, 4, 2, 1), self.two(16, 8)
        self.last, self.pool = nn.Conv2d(8, 2, 1), nn.MaxPool2d(2)

    @staticmethod
    def two(c, n):
        return nn.Sequential(nn.Conv2d(c, n, 3, padding=1), nn.GroupNorm(4, n), nn.SiLU(), nn.Conv2d(n, n, 3, padding=1), nn.ReLU())

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(self.pool(a))
        x = self.mid(self.pool(b))
        x = self.back2(torch.cat([self.up2(x), b], 1))
        return self.last(self.back1(torch.cat([self.up1(x), a], 1)))


class LSTMLanguage(nn.Module):
    """Two layers, both ways, and the tokens' table as the head's."""

    def __init__(self, tied=False, both=False):
        super().__init__()
        self.tokens, self.steps = nn.Embedding(50, 16), nn.LSTM(16, 16, 2, batch_first=True, bidirectional=both)
        self.head = nn.Linear(32 if both else 16, 50)
        if tied:
            self.head.weight = self.tokens.weight

    def forward(self, ids):
        out, (_h, _c) = self.steps(self.tokens(ids))
        return self.head(out)


class Seq2Seq(nn.Module):
    """The encoder's last state starts a decoder, which is called step by step."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(40, 16), nn.Embedding(30, 16)
        self.encoder, self.decoder = nn.GRU(16, 24, batch_first=True), nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, 30)

    def forward(self, source, target):
        _, h = self.encoder(self.source(source))
        made = []
        for t in range(target.shape[1]):
            y, h = self.decoder(self.target(target[:, t:t + 1]), h)
            made.append(self.head(y))
        return torch.cat(made, 1)


class Started(nn.Module):
    """A whole decoder that an encoder's two states start; sequences of two lengths."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(40, 16), nn.Embedding(30, 16)
        self.encoder, self.decoder = nn.LSTM(16, 24, batch_first=True), nn.LSTM(16, 24, batch_first=True)
        self.head = nn.Linear(24, 30)

    def forward(self, source, target):
        state = self.encoder(self.source(source))[1]
        return self.head(self.decoder(self.target(target), state)[0])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(60, 32), nn.Parameter(torch.zeros(1, 12, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True)
        self.layers, self.pooler, self.classes = nn.TransformerEncoder(layer, 2), nn.Linear(32, 32), nn.Linear(32, 3)

    def forward(self, ids):
        x = self.layers(self.tokens(ids) + self.places, src_key_padding_mask=ids == 1)
        return self.classes(torch.tanh(self.pooler(x[:, 0])))


class Translator(nn.Module):
    """torch's own encoder and decoder, with attention from one to the other."""

    def __init__(self):
        super().__init__()
        self.tokens, self.both = nn.Embedding(60, 32), nn.Transformer(32, 4, 1, 1, 64, 0.0, batch_first=True)
        self.head = nn.Linear(32, 60)

    def forward(self, source, target):
        return self.head(self.both(self.tokens(source), self.tokens(target)))


class ViT(nn.Module):
    """Patches by a convolution, a class token, torch's own attention, positions."""

    def __init__(self):
        super().__init__()
        self.patch, self.cls, self.places = nn.Conv2d(3, 32, 4, 4), nn.Parameter(torch.zeros(1, 1, 32)), nn.Parameter(torch.zeros(1, 17, 32))
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True), nn.LayerNorm(32)
        self.mlp, self.head = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)), nn.Linear(32, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.places
        y = self.norm1(x)
        x = x + self.attention(y, y, y)[0]
        return self.head((x + self.mlp(self.norm2(x)))[:, 0])


class Mixer(nn.Module):
    """Linear maps over positions and over features, of patches that are cut out by hand."""

    def __init__(self):
        super().__init__()
        self.patch, self.norm1, self.norm2 = nn.Linear(48, 32), nn.LayerNorm(32), nn.LayerNorm(32)
        self.across, self.along = (nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n)) for n in (16, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        b, c, h, w = x.shape
        x = self.patch(x.reshape(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, 48))
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.along(self.norm2(x))
        return self.head(x.mean(1))


class Waves(nn.Module):
    """A waveform through strided convolutions, a grouped one for positions, attention by hand."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv1d(1, 16, 10, 5, bias=False), nn.GroupNorm(16, 16)
        self.more = nn.ModuleList([nn.Conv1d(16, 16, 3, 2), nn.Conv1d(16, 16, 2, 2)])
        self.project, self.places = nn.Linear(16, 32), nn.Conv1d(32, 32, 4, padding=2, groups=4)
        self.layer, self.head = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), nn.Linear(32, 12)

    def forward(self, wave):
        x = f.gelu(self.norm(self.first(wave[:, None])))
        for conv in self.more:
            x = f.gelu(conv(x))
        x = self.project(x.transpose(1, 2))
        x = x + f.gelu(self.places(x.transpose(1, 2))[..., :-1]).transpose(1, 2)
        return self.head(self.layer(x))


def video():
    return nn.Sequential(nn.Conv3d(3, 8, 3, (1, 2, 2), 1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(8, 16, (3, 1, 1), padding=(1, 0, 0)),
                         nn.ConvTranspose3d(16, 8, 2, 2), nn.Conv3d(8, 8, 3, groups=8), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 5))


class Inverted(nn.Module):
    """MobileNet's block: wide, each channel by itself, squeezed and excited, narrow."""

    def __init__(self, c):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(c, 4 * c, 1, bias=False), nn.BatchNorm2d(4 * c), nn.ReLU6())
        self.each = nn.Sequential(nn.Conv2d(4 * c, 4 * c, 3, 1, 1, groups=4 * c, bias=False), nn.BatchNorm2d(4 * c), nn.Hardswish())
        self.less, self.more, self.narrow = nn.Conv2d(4 * c, c, 1), nn.Conv2d(c, 4 * c, 1), nn.Conv2d(4 * c, c, 1)

    def forward(self, x):
        y = self.each(self.wide(x))
        y = y * f.hardsigmoid(self.more(f.relu(self.less(y.mean((2, 3), keepdim=True)))))
        return x + self.narrow(y)


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, 16, mode="sum") for n in (100, 50, 20))
        self.bottom, self.top = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()), nn.Linear(16 + 6, 1)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        all_four = torch.stack([x] + [table(sparse[:, i]) for i, table in enumerate(self.tables)], 1)
        products = torch.bmm(all_four, all_four.transpose(1, 2))
        i, j = torch.tril_indices(4, 4, -1)
        return self.top(torch.cat([x, products[:, i, j]], 1))


class Einsum(nn.Module):
    """Attention all in einsums, with a matrix of parameters for each head."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Parameter(torch.randn(32, 4, 8) / 6) for _ in range(3))
        self.out, self.each = nn.Parameter(torch.randn(4, 8, 32) / 6), nn.Parameter(torch.randn(4, 8, 8) / 3)

    def forward(self, x):
        q, k, v = (torch.einsum("btd,dhk->bthk", x, w) for w in (self.q, self.k, self.v))
        v = torch.einsum("bthk,hkj->bthj", v, self.each)
        scores = torch.einsum("bqhk,bthk->bhqt", q, k) / math.sqrt(8)
        return torch.einsum("bthk,hkd->btd", torch.einsum("bhqt,bthk->bqhk", scores.softmax(-1), v), self.out)


class Loop(nn.Module):
    """A cell in a loop over the steps, which starts from zeros and is asked for all of them."""

    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell(12, 16), nn.Linear(16, 5)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 16, device=x.device)
        state, steps = (h, h) if isinstance(self.cell, nn.LSTMCell) else h, []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            steps.append(state[0] if isinstance(state, tuple) else state)
        return self.out(torch.stack(steps, 1))


class Thrice(nn.Module):
    """One block called three times, as ALBERT's layers are."""

    def __init__(self):
        super().__init__()
        self.block, self.out = nn.Sequential(nn.LayerNorm(24), nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24)), nn.Linear(24, 7)

    def forward(self, x):
        for _ in range(3):
            x = x + self.block(x)
        return self.out(x)


class TwoEnds(nn.Module):
    """A part with two outputs, both read, and a module that has two itself, of positions and of all."""

    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(16, 24), nn.Linear(16, 40)

        def forward(self, x):
            return torch.relu(self.a(x)), self.b(x)

    def __init__(self):
        super().__init__()
        self.part, self.left, self.right, self.third = self.Part(), nn.Linear(24, 6), nn.Linear(40, 6), nn.Linear(40, 3)

    def forward(self, x):
        a, b = self.part(x)
        return {"all": self.left(a) + self.right(b), "some": self.third(b.mean(1))}


class Chunks(nn.Module):
    """Parts of a projection of which each has a use."""

    def __init__(self):
        super().__init__()
        self.all, self.one, self.two, self.three = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        a, b, c = self.all(x).chunk(3, -1)
        a, b = self.one(a), self.two(b)
        return self.three(torch.stack([a, b, c], 2).unbind(2)[1] * a + c)


def generator():
    return nn.Sequential(nn.ConvTranspose2d(16, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False),
                         nn.BatchNorm2d(16), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, padding=1), nn.PixelShuffle(2),
                         nn.ConvTranspose2d(4, 3, 4, 2, 1), nn.Tanh())


def sounds():
    return nn.Sequential(nn.Conv1d(4, 8, 5, 2, 2), nn.LeakyReLU(), nn.ConvTranspose1d(8, 4, 4, 2, 1), nn.InstanceNorm1d(4, affine=True), nn.MaxPool1d(2),
                         nn.Conv1d(4, 4, 3, padding=2, dilation=2))


class Adapted(nn.Module):
    """A frozen part, layers' outputs scaled by parameters, a mean square by hand, latents that read the input."""

    def __init__(self):
        super().__init__()
        self.frozen, self.gamma, self.latents = nn.Linear(16, 16), nn.Parameter(torch.ones(16)), nn.Parameter(torch.randn(3, 16))
        self.frozen.requires_grad_(False)
        self.k, self.v, self.out = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 2)

    def forward(self, x):
        x = x + self.gamma * self.frozen(x)
        q = self.latents.expand(x.shape[0], -1, -1)
        mixed = torch.softmax(q @ self.k(x).transpose(1, 2) / 4, -1) @ self.v(x)
        return self.out(mixed.mean(1))


class Dynamic(nn.Module):
    """A part that does what the row says, with a linear map before it."""

    def __init__(self, what):
        super().__init__()

        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.what = what

            def forward(self, x):
                return self.what(x)
        self.first, self.part = nn.Linear(16, 16), Part()

    def forward(self, x):
        return self.part(self.first(x))


def ids(*shape):
    return torch.randint(2, 20, shape)


def when(x):
    return x * 2 if x.sum() > 0 else x


ROWS = torch.randn(4, 8, 16)
SQUARE = torch.randn(2, 3, 32, 32)
MODULES = [
    ("ResNet", resnet, SQUARE, {"conv": 6, "batch_norm": 6, "global_pool": 1, "linear": 1}),
    ("UNet", UNet, torch.randn(2, 1, 16, 16), {"conv_transpose": 2, "group_norm": 5, "conv": 11}),
    ("LSTM language model", LSTMLanguage, ids(4, 8), {"lstm": 2, "embedding": 1}, 0.12),
    ("tied, both ways", lambda: LSTMLanguage(both=True), ids(4, 8), {"lstm": 4, "reverse": 4}, 0.12),
    ("weight tying", lambda: LSTMLanguage(tied=True), ids(4, 8), {"variable": 1, "lstm": 2}, 0.12),
    ("GRU seq2seq with a loop", Seq2Seq, (ids(4, 8), ids(4, 5)), {"gru": 1}, 0.12),
    ("LSTM seq2seq", Started, (ids(4, 8), ids(4, 5)), {"lstm": 2, "insert": 1}, 0.12),
    ("BERT by nn.TransformerEncoder", Bert, ids(4, 12), {"attention": 2, "select": 1}),
    ("nn.Transformer", Translator, (ids(4, 8), ids(4, 6)), {"attention": 3, "variable": 1}),
    ("ViT", ViT, torch.randn(2, 3, 16, 16), {"attention": 1, "prepend": 1, "conv": 1}),
    ("MLP-Mixer", Mixer, torch.randn(2, 3, 16, 16), {"linear": 6, "transpose": 2}),
    ("wav2vec-like Conv1d", Waves, torch.randn(2, 400), {"conv": 3, "conv_grouped": 1, "attention": 1}),
    ("Conv3d video net", video, torch.randn(2, 3, 8, 16, 16), {"conv": 2, "conv_grouped": 1, "conv_transpose": 1}),
    ("MobileNet block", lambda: nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Inverted(8), nn.Flatten(), nn.Linear(8 * 256, 10)), SQUARE,
     {"conv_grouped": 1, "weigh": 1, "linear": 3}),
    ("DLRM", DLRM, (torch.randn(8, 13), ids(8, 3, 4)), {"embedding_bag": 3, "interact": 1}, 0.16),
    ("attention in einsums", Einsum, ROWS[:, :, :1].expand(4, 8, 32).clone(), {"attention": 1, "conv_grouped": 1, "linear": 4}),
    ("RNN cell in a loop", lambda: Loop(nn.RNNCell), torch.randn(4, 6, 12), {"variable": 2, "linear": 13}),
    ("LSTM cell in a loop", lambda: Loop(nn.LSTMCell), torch.randn(4, 6, 12), {"variable": 2, "linear": 13}),
    ("GRU cell in a loop", lambda: Loop(nn.GRUCell), torch.randn(4, 6, 12), {"variable": 2, "linear": 13}),
    ("nn.RNN, relu", lambda: Dynamic(nn.RNN(16, 8, nonlinearity="relu", batch_first=True)), ROWS, {"rnn": 1}, 0.35),
    ("a block called three times", Thrice, torch.randn(4, 8, 24), {"variable": 2, "linear": 7, "norm": 3}),
    ("two outputs, both used", TwoEnds, ROWS, {"linear": 5, "weigh": 1}),
    ("chunks", Chunks, ROWS, {"linear": 4, "slice": 3}),
    ("GAN generator", generator, torch.randn(4, 16, 1, 1), {"conv_transpose": 3, "resize": 1}),
    ("Conv1d autoencoder", sounds, torch.randn(4, 4, 32), {"conv": 2, "conv_transpose": 1}),
    ("latents and a frozen part", Adapted, ROWS, {"attention": 1, "gain": 1}),
    ("baddbmm", lambda: Dynamic(lambda x: torch.bmm(torch.baddbmm(torch.zeros(4, 8, 8), x, x.transpose(1, 2)).softmax(-1), x)), ROWS, {"attention": 1}),
]
REFUSED = [
    ("nonzero", lambda x: x[x.sum(-1).nonzero()], ("nonzero", "'part'")),
    ("boolean indexing", lambda x: x[x > 0], ("boolean indexing", "'part'")),
    ("masked_select", lambda x: torch.masked_select(x, x > 0), ("masked_select", "'part'")),
    ("a condition on numbers", when, ("bool", "'part'")),
    ("item", lambda x: x * x.max().item(), ("item", "'part'")),
    ("topk", lambda x: x.topk(2, -1)[0], ("topk", "'part'")),
    ("argmax", lambda x: x.argmax(-1).float(), ("argmax", "'part'")),
    ("gather", lambda x: x.gather(1, torch.zeros(4, 2, 16, dtype=torch.long)), ("gather", "'part'")),
    ("scatter", lambda x: x.scatter(1, torch.zeros(4, 8, 16, dtype=torch.long), 0.0), ("scatter", "'part'")),
    ("cumsum", lambda x: x.cumsum(1), ("cumsum", "'part'")),
    ("fft", lambda x: torch.fft.rfft(x).abs(), ("fft_rfft", "'part'")),
    ("a product that is no attention", lambda x: (x.transpose(1, 2) @ x).sum(1), ("no attention", "'part'")),
    ("a product of samples", lambda x: x[:, 0] @ x[:, 1].T, ("no attention", "matmul")),
    ("a matrix that is no parameter", lambda x: x @ torch.ones(16, 3), ("no parameter", "'part'")),
    ("some samples", lambda x: x[:2], ("samples", "'part'")),
    ("a packed sequence", lambda x: nn.utils.rnn.pack_padded_sequence(x, [8, 7, 7, 6], batch_first=True)[0], ("pack_padded_sequence", "'part'")),
]
