#!/usr/bin/env python3
"""make.py FOLDER [NAME...] - small random models of transformers, and how they train.

Each becomes FOLDER/NAME: config.json, model.safetensors, tokens.bin (seq + 1 tokens of 16 bits, so that
every sample is the same window), and expected.txt: the losses of four steps of SGD with rate 0.1, and
the norm of the gradients in each.  T5 has records.jsonl and tokenizer.json instead, each word of which is a token;
ViT an image and its class in files of idx.  Some have adapters in FOLDER/NAME/adapter, as PEFT's files have them
(https://huggingface.co/docs/peft, "Checkpoint format"), and how these train.  Written by transformers 5.12.1 and torch 2.14.1 of Debian, in f32 on a CPU.
"""

import json
import os
import struct
import sys

import safetensors.torch
import torch
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, GemmaConfig, GemmaForCausalLM, GPT2Config, GPT2LMHeadModel, GPTJConfig, GPTJForCausalLM,
                          GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig,
                          MistralForCausalLM, OPTConfig, OPTForCausalLM, Phi3Config, Phi3ForCausalLM, PhiConfig,
                          PhiForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM,
                          Starcoder2Config, Starcoder2ForCausalLM, T5Config, T5ForConditionalGeneration, ViTConfig,
                          ViTForImageClassification)

SEQ, BATCH, VOCAB = 8, 4, 32

LLAMA = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=16, tie_word_embeddings=False)
MODELS = {
    "gpt2": (GPT2LMHeadModel, GPT2Config(vocab_size=VOCAB, n_positions=16, n_embd=16, n_layer=2, n_head=4,
                                         resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
    "llama": (LlamaForCausalLM, LlamaConfig(**LLAMA)),
    "mistral": (MistralForCausalLM, MistralConfig(sliding_window=None, **LLAMA)),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**dict(LLAMA, tie_word_embeddings=True))),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(head_dim=4, **LLAMA)),
    "phi": (PhiForCausalLM, PhiConfig(**dict(LLAMA, num_key_value_heads=4), resid_pdrop=0, embd_pdrop=0,
                                      attention_dropout=0)),
    "starcoder2": (Starcoder2ForCausalLM, Starcoder2Config(sliding_window=None, residual_dropout=0,
                                                           embedding_dropout=0, attention_dropout=0, **LLAMA)),
    "opt": (OPTForCausalLM, OPTConfig(vocab_size=VOCAB, hidden_size=16, ffn_dim=24, num_hidden_layers=2,
                                      num_attention_heads=4, max_position_embeddings=16, word_embed_proj_dim=16,
                                      dropout=0, attention_dropout=0)),
    "gemma": (GemmaForCausalLM, GemmaConfig(head_dim=4, **dict(LLAMA, tie_word_embeddings=True))),
    "gptj": (GPTJForCausalLM, GPTJConfig(vocab_size=VOCAB, n_positions=16, n_embd=16, n_layer=2, n_head=2, rotary_dim=4,
                                         resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
    "phi3": (Phi3ForCausalLM, Phi3Config(pad_token_id=0, resid_pdrop=0, embd_pdrop=0, attention_dropout=0,
                                         original_max_position_embeddings=16, **LLAMA)),
    "gpt_neox": (GPTNeoXForCausalLM, GPTNeoXConfig(vocab_size=VOCAB, hidden_size=16, intermediate_size=24,
                                                   num_hidden_layers=2, num_attention_heads=4,
                                                   max_position_embeddings=16, rotary_pct=0.5,
                                                   attention_dropout=0, hidden_dropout=0)),
    "t5": (T5ForConditionalGeneration, T5Config(vocab_size=VOCAB, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4,
                                                relative_attention_num_buckets=8, dropout_rate=0.0)),
    "vit": (ViTForImageClassification, ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                                                 intermediate_size=24, image_size=8, patch_size=4, num_channels=1,
                                                 num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
}

# Scores by distance; layers without attention, among layers with it or alone; experts in some of them.
MAMBA2 = dict(mamba_d_head=8, mamba_n_heads=4, mamba_n_groups=2, mamba_d_state=4, mamba_d_conv=4, mamba_expand=2,
              mamba_chunk_size=4)
DELTA = dict(linear_conv_kernel_dim=4, linear_key_head_dim=4, linear_value_head_dim=6, linear_num_key_heads=2,
             linear_num_value_heads=4, head_dim=8, layer_types=["linear_attention", "full_attention"])
MIXERS = {
    "bloom": dict(vocab_size=VOCAB, hidden_size=16, n_layer=2, n_head=4, hidden_dropout=0.0, attention_dropout=0.0),
    "mpt": dict(vocab_size=VOCAB, d_model=24, n_heads=3, n_layers=2, max_seq_len=16),
    "modernbert": dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=3,
                       num_attention_heads=4, max_position_embeddings=16, local_attention=4, pad_token_id=0),
    "mamba": dict(vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=3, expand=2),
    "falcon_mamba": dict(vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, state_size=4, time_step_rank=3),
    "mamba2": dict(vocab_size=VOCAB, hidden_size=16, num_hidden_layers=2, state_size=4, head_dim=8, num_heads=4,
                   n_groups=2, chunk_size=4, expand=2, tie_word_embeddings=False),
    "bamba": dict(LLAMA, **MAMBA2, attn_layer_indices=[1]),
    "granitemoehybrid": dict(LLAMA, **MAMBA2, layer_types=["mamba", "attention"], num_local_experts=4,
                             num_experts_per_tok=2, shared_intermediate_size=8, embedding_multiplier=2.0,
                             residual_multiplier=0.5, logits_scaling=2.0),
    "nemotron_h": dict(LLAMA, layers_block_type=["mamba", "attention", "mlp", "moe"], head_dim=4, mamba_head_dim=8,
                       mamba_num_heads=4, n_groups=2, ssm_state_size=4, conv_kernel=4, chunk_size=4, expand=2,
                       time_step_min=1e-9, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
                       moe_shared_expert_intermediate_size=8, n_group=1, topk_group=1),
    "jamba": dict(LLAMA, mamba_d_state=4, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=3, attn_layer_period=2,
                  attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, num_experts=4,
                  num_experts_per_tok=2, use_mamba_kernels=False),
    "qwen3_next": dict(LLAMA, **DELTA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
                       shared_expert_intermediate_size=8, norm_topk_prob=True),
    "qwen3_5_text": dict(LLAMA, **DELTA),
    "qwen3_5_moe_text": dict(LLAMA, **DELTA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
                             shared_expert_intermediate_size=8),
    "mixtral": dict(LLAMA, num_local_experts=4, num_experts_per_tok=2, sliding_window=None),
    "qwen3_moe": dict(LLAMA, head_dim=4, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8,
                      norm_topk_prob=True),
    "deepseek_v2": dict(dict(LLAMA, num_key_value_heads=4), kv_lora_rank=8, q_lora_rank=12, qk_nope_head_dim=4,
                        qk_rope_head_dim=4, v_head_dim=4, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1,
                        moe_intermediate_size=8, first_k_dense_replace=1, topk_method="greedy", n_group=1, topk_group=1),
    "bert": dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                 max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    "distilbert": dict(vocab_size=VOCAB, dim=16, hidden_dim=24, n_layers=2, n_heads=4, max_position_embeddings=16,
                       dropout=0.0, attention_dropout=0.0),
    "lfm2": dict(LLAMA, layer_types=["conv", "full_attention"], conv_L_cache=3, block_auto_adjust_ff_dim=False),
    "lfm2_moe": dict(LLAMA, layer_types=["conv", "full_attention"], conv_L_cache=3, num_dense_layers=1, num_experts=4,
                     num_experts_per_tok=2, moe_intermediate_size=8),
}


# Models that have adapters, and beside which modules.
ADAPTED = {"llama": ["q_proj", "v_proj", "gate_proj", "down_proj"], "gpt2": ["c_attn", "c_fc"],
           "gptj": ["q_proj", "k_proj", "fc_in"]}
RANK = 3


class Adapted(torch.nn.Module):
    """A frozen module and two maps that add to what it makes, times SCALE."""

    scale = 1.0

    def __init__(self, module):
        super().__init__()
        inputs, outputs = module.weight.shape if type(module).__name__ == "Conv1D" else reversed(module.weight.shape)
        self.base = module
        self.lora_A = torch.nn.Linear(inputs, RANK, bias=False)
        self.lora_B = torch.nn.Linear(RANK, outputs, bias=False)

    def forward(self, x):
        return self.base(x) + Adapted.scale * self.lora_B(self.lora_A(x))


def adapt(model, targets):
    for parameter in model.parameters():
        parameter.requires_grad = False
    for name, module in list(model.named_modules()):
        if name.split(".")[-1] in targets:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, Adapted(module))


def write_adapters(path, model, targets, batch, answers):
    adapt(model, targets)
    folder = os.path.join(path, "adapter")
    os.makedirs(folder, exist_ok=True)
    safetensors.torch.save_file({"base_model.model." + name: value.detach().clone()
                                 for name, value in model.named_parameters() if "lora_" in name},
                                os.path.join(folder, "adapter_model.safetensors"))
    with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as out:
        json.dump({"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "bias": "none", "target_modules": targets,
                   "base_model_name_or_path": ".."}, out, indent=2)
        out.write("\n")
    with open(os.path.join(folder, "twice.txt"), "w", encoding="utf-8") as out:  # lora_alpha is 2 r
        Adapted.scale = 2.0
        out.write("%.9g\n" % loss_of(model, batch, answers).item())
        Adapted.scale = 1.0
    train(model, batch, answers, os.path.join(folder, "expected.txt"))


def loss_of(model, batch, answers):
    inputs = batch if isinstance(batch, dict) else {"input_ids": batch}
    logits = model(**inputs).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), answers.reshape(-1))


def train(model, batch, answers, path):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1)
    model.train()
    with open(path, "w", encoding="utf-8") as out:
        for _ in range(4):
            loss = loss_of(model, batch, answers)
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(trained, 1e9)
            optimizer.step()
            out.write("%.9g %.9g\n" % (loss.item(), norm.item()))


def records_of(path):
    """A source and a target of T5, and the same as its model takes them."""
    words = ["<pad>", "</s>"] + ["w%d" % i for i in range(2, VOCAB)]
    with open(os.path.join(path, "tokenizer.json"), "w", encoding="utf-8") as out:
        json.dump({"version": "1.0", "added_tokens": [{"id": i, "content": words[i], "special": True} for i in range(2)],
                   "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
                   "model": {"type": "WordPiece", "unk_token": "<pad>", "continuing_subword_prefix": "##",
                             "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(words)}}}, out)
        out.write("\n")
    source, target = torch.randint(2, VOCAB, (SEQ - 1,)).tolist(), torch.randint(2, VOCAB, (SEQ - 3,)).tolist()
    with open(os.path.join(path, "records.jsonl"), "w", encoding="utf-8") as out:
        json.dump({"source": " ".join(words[i] for i in source), "target": " ".join(words[i] for i in target)}, out)
        out.write("\n")
    said = target + [1]
    fill = SEQ - len(said)
    return ({"input_ids": torch.tensor([source + [1]] * BATCH),
             "decoder_input_ids": torch.tensor([([0] + said + [0] * fill)[:SEQ]] * BATCH)},
            torch.tensor([said + [-100] * fill] * BATCH))


def image_of(path, config):
    """An image and its class in files of idx, and the same as a model of images takes them."""
    size, label = config.image_size, 1
    pixels = torch.randint(0, 256, (size, size))
    with open(os.path.join(path, "train-images-idx3-ubyte"), "wb") as out:
        out.write(struct.pack(">IIII", 0x803, 1, size, size) + bytes(pixels.reshape(-1).tolist()))
    with open(os.path.join(path, "train-labels-idx1-ubyte"), "wb") as out:
        out.write(struct.pack(">II", 0x801, 1) + bytes([label]))
    return ({"pixel_values": (pixels / 127.5 - 1).reshape(1, 1, size, size).repeat(BATCH, 1, 1, 1)},
            torch.tensor([label] * BATCH))


def write(folder, name, kind, config):
    torch.manual_seed(len(name))
    config.use_cache = False
    config.pad_token_id = 0 if name == "t5" else None  # or its row would have no gradient
    model = kind(config)
    model.config.architectures = [kind.__name__]
    with torch.no_grad():
        for parameter in model.parameters():  # norms and biases, too: what is 1 or 0 shows no mistake
            parameter.add_(0.1 * torch.randn_like(parameter))
    path = os.path.join(folder, name)
    model.save_pretrained(path)
    if name in ("t5", "vit"):
        batch, answers = records_of(path) if name == "t5" else image_of(path, config)
        train(model, batch, answers, os.path.join(path, "expected.txt"))
        return
    tokens = torch.randint(0, VOCAB, (SEQ + 1,))
    with open(os.path.join(path, "tokens.bin"), "wb") as out:
        out.write(struct.pack("<%dH" % (SEQ + 1), *tokens.tolist()))
    batch = tokens[:-1].repeat(BATCH, 1)
    answers = tokens[1:].repeat(BATCH, 1)
    if name in ADAPTED:
        adapted = kind(config)
        adapted.load_state_dict(model.state_dict())
        write_adapters(path, adapted, ADAPTED[name], batch, answers)
    train(model, batch, answers, os.path.join(path, "expected.txt"))


if __name__ == "__main__":
    for mixer, values in MIXERS.items():
        mixer_config = AutoConfig.for_model(mixer, **values)
        if mixer == "bamba":  # this release turns whole heads whatever the config says, which is a half
            mixer_config.partial_rotary_factor = mixer_config.rope_parameters["partial_rotary_factor"] = 1.0
        auto = AutoModelForMaskedLM if mixer in ("modernbert", "bert", "distilbert") else AutoModelForCausalLM
        MODELS[mixer] = (type(auto.from_config(mixer_config)), mixer_config)
    for model_name, (model_kind, model_config) in MODELS.items():
        if len(sys.argv) < 3 or model_name in sys.argv[2:]:
            write(sys.argv[1], model_name, model_kind, model_config)
