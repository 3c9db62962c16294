#!/usr/bin/env python3
"""Write how many operations the models of counts.json take forward, into flops.json.

    python3 make_flops.py counts.json flops.json

Rows that flops.json has already are kept.
A row has a name, the positions that went through the model, and the operations of one sample: "matmul" of all
products with parameters, as PyTorch's own counter sees them while the model runs on the meta device, experts those
that tokens go to; "attention" of scores and weighted sums, half of all pairs under a causal mask: what the model asks
scaled_dot_product_attention for, or, where it multiplies by hand, its products of batches.  What a class can't do
without real numbers, or with text alone, is told of and left out."""
import contextlib
import json
import math
import sys

import torch
import transformers
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

SEQ = 32
SIDES = {"segformer": 512, "pixtral": 448}  # of images, where a config does not say
UNLIKE = {"llama4": "it sends every token through every expert", "llama4_text": "it sends every token through every expert",
          "longt5": "it pads a text to whole blocks", "vit_mae": "it leaves most patches out", "mllama": "without an image it leaves layers out"}


def positions(config):
    """As many that experts can have equally many of them."""
    text = config.get_text_config()
    experts = next((getattr(text, k) for k in ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
                    if isinstance(getattr(text, k, None), int)), 0)
    chosen = next((getattr(text, k) for k in ("num_experts_per_tok", "top_k_experts", "moe_topk", "moe_k")
                   if isinstance(getattr(text, k, None), int)), 1)
    step = experts // math.gcd(experts, chosen) if experts else 1
    return -(-SEQ // step) * step


class Attention:
    """Stands in for scaled_dot_product_attention: adds up pairs of queries and keys, hands back the shape."""

    def __init__(self, causal):
        self.causal, self.flops = causal, 0

    def __call__(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, **_):
        s, t = q.shape[-2], k.shape[-2]
        pairs = q.shape[:-2].numel() * s * t
        half = is_causal or (self.causal and attn_mask is not None and s == t)
        self.flops += 2 * pairs * (q.shape[-1] + v.shape[-1]) * (0.5 if half else 1)
        return q.new_empty(*q.shape[:-1], v.shape[-1])


class Conditions(TorchFunctionMode):
    """A condition on numbers that are not there is true, which is what whole masks answer."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in ("__bool__", "item") and args[0].is_meta:
            return True
        return func(*args, **(kwargs or {}))


def inputs(model, config, seq):
    name = model.main_input_name
    ids = torch.zeros(1, seq, dtype=torch.long, device="meta")
    if name == "pixel_values":
        config = getattr(config, "vision_config", config)
        side = SIDES.get(config.model_type) or getattr(config, "image_size", 224)
        side = side if isinstance(side, int) else side[0]
        return {name: torch.empty(1, getattr(config, "num_channels", 3), side, side, device="meta")}
    if name == "input_values":
        return {name: torch.empty(1, 160000, device="meta")}
    if name == "input_features":
        return {name: torch.empty(1, config.num_mel_bins, 2 * config.max_source_positions, device="meta"),
                "decoder_input_ids": ids}
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    return {"input_ids": ids, **more}


def flops(row):
    config = dict(row["config"])
    if config["model_type"] in UNLIKE:
        raise RuntimeError(UNLIKE[config["model_type"]])
    cls = getattr(transformers, row["class"])
    made = transformers.AutoConfig.for_model(**config)
    made.use_cache = False
    seq = positions(made)
    for part in (made, made.get_text_config()):
        with contextlib.suppress(Exception):
            part._experts_implementation = "batched_mm"
    with torch.device("meta"):
        model = (cls.from_config if row["class"].startswith("Auto") else cls)(made)
    with contextlib.suppress(Exception):
        model.set_experts_implementation("batched_mm")
    model.eval()
    causal = not model.config.is_encoder_decoder and ("Causal" in type(model).__name__ or "LMHead" in type(model).__name__)
    sight = getattr(made, "vision_config", None)
    if model.main_input_name == "pixel_values" and sight and sight.image_size < 8 * sight.patch_size:
        raise RuntimeError("an image of so few patches that the token of its class is many")
    attention = Attention(causal and not getattr(made.get_text_config(), "is_encoder", False))
    held = torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = attention
    try:
        counter = FlopCounterMode(display=False)
        with torch.no_grad(), Conditions(), counter:
            model(**inputs(model, made, seq))
    finally:
        torch.nn.functional.scaled_dot_product_attention = held
    counted = counter.get_flop_counts()["Global"]
    by_hand = sum(n for op, n in counted.items() if "bmm" in str(op))
    total = counter.get_total_flops()
    if attention.flops:
        return seq, total, int(attention.flops)
    experts = any(p.dim() == 3 and "expert" in n for n, p in model.named_parameters())
    if experts:
        raise RuntimeError("attention by hand beside experts, which are products of batches too")
    return seq, total - by_hand, by_hand // (2 if attention.causal else 1)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)["models"]
    found = {}
    with contextlib.suppress(FileNotFoundError), open(sys.argv[2], encoding="utf-8") as file:
        found = {row["name"]: row for row in json.load(file)["models"]}
    for row in rows:
        if row["name"] in found:
            continue
        try:
            seq, matmul, attention = flops(row)
            found[row["name"]] = {"name": row["name"], "seq": seq, "matmul": matmul, "attention": attention}
        except Exception as error:  # the others are still wanted
            print(f"{row['name']}: {type(error).__name__}: {str(error)[:150]}", file=sys.stderr, flush=True)
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in found.values())
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write('{"from": "transformers %s, torch %s", "models": [\n%s]}\n'
                  % (transformers.__version__, torch.__version__, text))


if __name__ == "__main__":
    main()
