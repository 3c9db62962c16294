#!/usr/bin/env python3
"""Write small models of transformers as ONNX, each with its config.json beside it.

    python3 make_exports.py FOLDER

Into FOLDER go NAME.onnx and NAME.json; `topt inspect` of both must tell the same number of parameters.  The
exporter is PyTorch's TorchScript one, which needs no package beside torch."""
import json
import os
import sys

import torch
import torch.onnx._internal.torchscript_exporter.onnx_proto_utils as proto_utils
import transformers as t

proto_utils._add_onnxscript_fn = lambda model, functions: model  # for functions of one's own, of which there are none

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TOKENS = {"vocab_size": 100, "max_position_embeddings": 64}
TEXT = ["input_ids", "attention_mask"]

MODELS = {
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64), TEXT),
    "bert": (t.BertForMaskedLM, t.BertConfig(**SIZES, **TOKENS), TEXT[:1]),
    "classes": (t.BertForSequenceClassification, t.BertConfig(**SIZES, **TOKENS), [*TEXT, "token_type_ids"]),
    "distilbert": (t.DistilBertForMaskedLM,
                   t.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, **TOKENS), TEXT[:1]),
    "llama": (t.LlamaForCausalLM, t.LlamaConfig(**SIZES, vocab_size=100, num_key_value_heads=2), TEXT),
    "opt": (t.OPTForCausalLM, t.OPTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64,
                                          word_embed_proj_dim=32, **TOKENS), TEXT[:1]),
    "vit": (t.ViTForImageClassification, t.ViTConfig(**SIZES, image_size=32, patch_size=8), ["pixel_values"]),
}


class First(torch.nn.Module):
    """The first output alone, of inputs by position."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)), return_dict=False)[0]


def sample(name):
    if name == "pixel_values":
        return torch.zeros(2, 3, 32, 32)
    return torch.full((2, 16), int(name == "attention_mask"), dtype=torch.long)


def main():
    folder = sys.argv[1]
    for name, (cls, config, inputs) in MODELS.items():
        config.use_cache = False
        model = cls(config)
        path = os.path.join(folder, name)
        with open(path + ".json", "w", encoding="utf-8") as out:
            json.dump({**config.to_dict(), "architectures": [cls.__name__]}, out, default=str)
        torch.onnx.export(First(model, inputs), tuple(sample(n) for n in inputs), path + ".onnx", input_names=inputs,
                          dynamo=False, opset_version=17)
        print(name, sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
