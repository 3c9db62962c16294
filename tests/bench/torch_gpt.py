#!/usr/bin/env python3
"""torch_gpt.py WIDTH HEADS LAYERS SEQ BATCH STEPS - steps of training a GPT by PyTorch on one thread, for a comparison.

The model is the one that `topt import` makes of a GPT-2 config with a vocabulary of 128 and tied embeddings: layer norms, biases,
GELU by tanh, Adam.  Prints nothing but the loss of the last step; whoever compares takes the processor's time of two runs
of different lengths.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, mask):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, d // self.heads).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(d, 2))
        p = (q @ k.transpose(-2, -1) * (1 / math.sqrt(d // self.heads))).masked_fill(mask, float("-inf"))
        y = (F.softmax(p, -1) @ v).transpose(1, 2).contiguous().view(b, s, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, d, heads, layers, seq, vocab):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, d), nn.Parameter(torch.randn(seq, d) * 0.02)
        self.blocks, self.ln = nn.ModuleList(Block(d, heads) for _ in range(layers)), nn.LayerNorm(d)
        self.register_buffer("mask", torch.triu(torch.ones(seq, seq, dtype=torch.bool), 1))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return F.linear(self.ln(x), self.tokens.weight)


def main():
    d, heads, layers, seq, batch, steps = map(int, sys.argv[1:7])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = GPT(d, heads, layers, seq, 128)
    adam = torch.optim.Adam(model.parameters(), lr=3e-4)
    loss = torch.zeros(())
    for _ in range(steps):
        ids = torch.randint(128, (batch, seq + 1))
        loss = F.cross_entropy(model(ids[:, :-1]).reshape(-1, 128), ids[:, 1:].reshape(-1))
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
    print("%.4f" % loss.item())


main()
