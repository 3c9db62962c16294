#!/usr/bin/env python3
"""Fill in the parameters of tests/model/oracle/counts.json: how many the models of configs have, and their layers.

    python3 make_counts.py counts.json

A row has a name, a class of Hugging Face transformers and a config.json; the class makes the model on the
meta device, without weights.  Counted is what a checkpoint holds as numbers that training changes: every
parameter once, and the corrections by which experts are chosen, which transformers keeps as buffers.
Layers are the children of outermost ModuleLists of two or more, lists of lists aside: their number, and the parameters of the
largest and of all.
A row whose class fails keeps what it has and is told of."""
import json
import sys

import torch
import transformers


def parameters_of(model):
    """Parameters, each once, and the corrections by which experts are chosen."""
    kept = set(model.state_dict())
    corrections = [b for n, b in model.named_buffers() if n in kept and n.endswith(("correction_bias", "expert_bias"))]
    return sum(p.numel() for p in model.parameters()) + sum(b.numel() for b in corrections)


def layers_of(module):
    for child in module.children():
        lists = torch.nn.ModuleList, torch.nn.ModuleDict
        if isinstance(child, lists[0]) and len(child) > 1 and not any(isinstance(c, lists) for c in child):
            yield from child
        else:
            yield from layers_of(child)


def count(name, config):
    config = dict(config)
    cls = getattr(transformers, name)
    made = transformers.AutoConfig.for_model(**config)
    with torch.device("meta"):
        model = cls.from_config(made) if name.startswith("Auto") else cls(made)
    layers = [parameters_of(layer) for layer in layers_of(model)]
    return parameters_of(model), [len(layers), max(layers, default=0), sum(layers)]


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["models"]
    for row in rows:
        try:
            row["parameters"], row["layers"] = count(row["class"], row["config"])
        except Exception as error:  # the others are still wanted
            print(f"{row['name']}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    with open(path, "w", encoding="utf-8") as out:
        out.write('{"from": "transformers %s", "models": [\n%s]}\n' % (transformers.__version__, text))


if __name__ == "__main__":
    main()
