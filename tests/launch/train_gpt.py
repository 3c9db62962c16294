"""train_gpt.py CONFIG TEXT STEPS LOSSES - a small GPT trained as topt_apply.py says.

CONFIG is a Hugging Face config.json of GPT-2, whose shape the model takes; TEXT is taken byte by
byte.  The model and the samples do not depend on the number of ranks.  Rank 0 writes the loss of
each step, the mean over the global batch.
"""
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

import topt_apply


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.head = width // heads
        self.norm1 = nn.LayerNorm(width)
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.o_proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, _ = x.shape
        h = self.norm1(x)
        q, k, v = (p(h).view(b, s, -1, self.head).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.transpose(-1, -2) * self.head ** -0.5
        mask = torch.ones(s, s, dtype=torch.bool).triu(1)
        y = scores.masked_fill(mask, -torch.inf).softmax(-1) @ v
        x = x + self.o_proj(y.transpose(1, 2).reshape(b, s, -1))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["n_embd"]
        self.tokens = nn.Embedding(c["vocab_size"], width)
        self.positions = nn.Embedding(c["n_positions"], width)
        self.blocks = nn.ModuleList(Block(width, c["n_head"]) for _ in range(c["n_layer"]))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, c["vocab_size"], bias=False)
        nn.init.normal_(self.tokens.weight, std=c["initializer_range"])
        nn.init.normal_(self.head.weight, std=c["initializer_range"])
        if c["tie_word_embeddings"]:
            self.head.weight = self.tokens.weight
        nn.init.normal_(self.positions.weight, std=c["initializer_range"])

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def samples(text, vocabulary, batch, seq, step):
    """The global batch of a step: inputs, and what comes next."""
    first = step * batch * seq
    part = text[first:first + batch * seq + 1]
    part = torch.tensor(list(part)) % vocabulary
    return part[:-1].view(batch, seq), part[1:].view(batch, seq)


def main():
    config, text, steps, losses = sys.argv[1:]
    with open(config, encoding="utf-8") as f:
        shape = json.load(f)
    with open(text, "rb") as f:
        letters = f.read()
    device = topt_apply.start()
    torch.manual_seed(1)
    model = topt_apply.apply(Gpt(shape), device)
    optimizer = topt_apply.optimizer(model, torch.optim.AdamW, lr=1e-3)
    batch = topt_apply.DP * topt_apply.MICRO_BATCH * topt_apply.ACCUMULATION
    seen = []
    for step in range(int(steps)):
        x, y = samples(letters, shape["vocab_size"], batch, 64, step)
        total = torch.zeros(())
        for i, context in enumerate(topt_apply.micro_batches(model)):
            with context:
                rows = topt_apply.rows(i)
                logits = model(x[rows].to(device))
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), y[rows].to(device).flatten())
                (loss / topt_apply.ACCUMULATION).backward()
            total += loss.detach() / topt_apply.ACCUMULATION
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(total)  # ranks of one tensor parallel group have the same
        seen.append(total.item() / dist.get_world_size())
    if dist.get_rank() == 0:
        state = len(optimizer.optim.state if hasattr(optimizer, "optim") else optimizer.state)
        kept = {"losses": seen, "ranks": dist.get_world_size(), "dp": topt_apply.DP,
                "accumulation": topt_apply.ACCUMULATION, "optimizer": type(optimizer).__name__,
                "model": type(model).__name__, "states": state,
                "parameter": type(next(model.parameters())).__name__,
                "checkpointed": sum(type(m).__name__ == "CheckpointWrapper" for m in model.modules())}
        with open(losses, "w", encoding="utf-8") as f:
            json.dump(kept, f)
    dist.barrier()
    os._exit(0)  # taking down PyTorch 1.13 with its threads may abort


main()
