"""stock.py [MODELS [WAYS]] - stock models of transformers, trained as topt_apply.py says.

Each model is built small from its configuration and trained for some steps by one rank, and then
by two over gloo on the CPU in each way that topt_apply.py knows: DDP, ZeRO-1, FSDP2 that keeps
and that frees what it gathered, tensor parallelism, each with and without checkpointed blocks.
The losses of all must be those of one rank.  MODELS and WAYS are patterns of names; without them
the models of TESTED are trained.  It runs where PyTorch 2 and transformers are installed
(tests/launch/stock.sh), and prints TAP.
"""
import importlib
import json
import os
import re
import sys
import traceback

import torch
import torch.distributed as dist
import transformers

STEPS, BATCH, SEQ, VOCABULARY = 4, 8, 16, 96
TOLERANCE = {"f32": 2e-5, "bf16": 2e-2}
# With so large an eps the scale of gradients matters, too.
ADAMW = {"lr": 1e-2, "eps": 1e-3}

WIDTH = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
DECODER = WIDTH | {"num_key_value_heads": 2, "head_dim": 8, "vocab_size": VOCABULARY, "max_position_embeddings": 64,
                   "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
ENCODER = WIDTH | {"vocab_size": VOCABULARY, "max_position_embeddings": 64, "pad_token_id": 0}
IMAGE = WIDTH | {"image_size": 16, "patch_size": 4, "num_labels": 8}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

# Name: class, its configuration, which input it takes, whether its blocks can be split, and what is configured.
MODELS = {
    "llama": ("LlamaForCausalLM", "text", True, DECODER),
    "mixtral": ("MixtralForCausalLM", "text", False, DECODER | EXPERTS),
    "gpt2": ("GPT2LMHeadModel", "text", False, {"n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY,
                                                "bos_token_id": 1, "eos_token_id": 2}),
    "gemma3": ("Gemma3ForCausalLM", "text", True, DECODER | {"num_hidden_layers": 6, "sliding_window": 8, "query_pre_attn_scalar": 8}),
    "bert": ("BertForMaskedLM", "text", False, ENCODER),
    "vit": ("ViTForImageClassification", "image", False, IMAGE),
    "qwen3_next": ("Qwen3NextForCausalLM", "text", False, DECODER | EXPERTS | {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "shared_expert_intermediate_size": 32}),
    "t5": ("T5ForConditionalGeneration", "pairs", False, {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_heads": 4, "vocab_size": VOCABULARY,
                                                          "decoder_start_token_id": 0}),
    "qwen3": ("Qwen3ForCausalLM", "text", True, DECODER),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "text", False, DECODER | EXPERTS),
    "qwen2": ("Qwen2ForCausalLM", "text", True, DECODER),
    "mistral": ("MistralForCausalLM", "text", True, DECODER),
    "gemma2": ("Gemma2ForCausalLM", "text", True, DECODER),
    "olmo2": ("Olmo2ForCausalLM", "text", False, DECODER),
    "phi": ("PhiForCausalLM", "text", True, DECODER),
    "phi3": ("Phi3ForCausalLM", "text", False, DECODER),
    "gpt_neox": ("GPTNeoXForCausalLM", "text", True, WIDTH | {"vocab_size": VOCABULARY, "max_position_embeddings": 64}),
    "gptj": ("GPTJForCausalLM", "text", True, {"n_embd": 32, "n_layer": 4, "n_head": 4, "rotary_dim": 4, "n_positions": 64, "vocab_size": VOCABULARY}),
    "opt": ("OPTForCausalLM", "text", True, WIDTH | {"ffn_dim": 64, "word_embed_proj_dim": 32, "vocab_size": VOCABULARY, "max_position_embeddings": 64}),
    "bloom": ("BloomForCausalLM", "text", False, {"hidden_size": 32, "n_layer": 4, "n_head": 4, "vocab_size": VOCABULARY}),
    "falcon": ("FalconForCausalLM", "text", False, WIDTH | {"vocab_size": VOCABULARY}),
    "starcoder2": ("Starcoder2ForCausalLM", "text", False, DECODER),
    "cohere": ("CohereForCausalLM", "text", True, DECODER),
    "granite": ("GraniteForCausalLM", "text", True, DECODER),
    "smollm3": ("SmolLM3ForCausalLM", "text", True, DECODER),
    "nemotron": ("NemotronForCausalLM", "text", True, DECODER),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "text", False, {**DECODER, **EXPERTS, "num_key_value_heads": 4, "head_dim": 8, "n_routed_experts": 4, "n_group": 2, "topk_group": 1,
                                                             "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
                                                             "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1}),
    "gpt_oss": ("GptOssForCausalLM", "text", False, DECODER | EXPERTS),
    "llama4": ("Llama4ForCausalLM", "text", False, DECODER | EXPERTS | {"intermediate_size_mlp": 64, "interleave_moe_layer_step": 2}),
    "mamba": ("MambaForCausalLM", "text", False, {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 4, "vocab_size": VOCABULARY}),
    "mamba2": ("Mamba2ForCausalLM", "text", False, {"hidden_size": 32, "state_size": 8, "num_hidden_layers": 4, "vocab_size": VOCABULARY,
                                                    "num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 8}),
    "jamba": ("JambaForCausalLM", "text", False, DECODER | EXPERTS | {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1,
                                                                      "mamba_d_state": 8, "use_mamba_kernels": False}),
    "zamba2": ("Zamba2ForCausalLM", "text", False, DECODER | {"num_key_value_heads": 4, "mamba_d_state": 8, "n_mamba_heads": 8, "mamba_headdim": 8,
                                                              "attention_head_dim": 16, "attention_hidden_size": 64, "chunk_size": 8, "num_mem_blocks": 1,
                                                              "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]}),
    "bamba": ("BambaForCausalLM", "text", False, DECODER | {"attn_layer_indices": [1, 3], "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8,
                                                            "mamba_n_groups": 2, "mamba_chunk_size": 8}),
    "lfm2": ("Lfm2ForCausalLM", "text", False, DECODER | {"full_attn_idxs": [1, 3]}),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", "text", False, DECODER | {"lru_width": 32, "attention_window_size": 16, "num_hidden_layers": 6}),
    "rwkv": ("RwkvForCausalLM", "text", False, {"hidden_size": 32, "num_hidden_layers": 4, "vocab_size": VOCABULARY, "context_length": 64}),
    "bart": ("BartForConditionalGeneration", "pairs", False, {"d_model": 32, "encoder_layers": 3, "decoder_layers": 3, "encoder_attention_heads": 4,
             "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": VOCABULARY, "max_position_embeddings": 64}),
    "whisper": ("WhisperForConditionalGeneration", "sound", False, {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": VOCABULARY, "num_mel_bins": 8,
                "max_source_positions": 16, "max_target_positions": 64, "decoder_start_token_id": 1, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}),
    "roberta": ("RobertaForMaskedLM", "text", False, ENCODER),
    "distilbert": ("DistilBertForMaskedLM", "text", False, {"dim": 32, "hidden_dim": 64, "n_layers": 4, "n_heads": 4, "vocab_size": VOCABULARY, "max_position_embeddings": 64}),
    "electra": ("ElectraForMaskedLM", "text", False, ENCODER | {"embedding_size": 32}),
    "albert": ("AlbertForMaskedLM", "text", False, ENCODER | {"embedding_size": 16}),
    "deberta_v2": ("DebertaV2ForMaskedLM", "text", False, ENCODER | {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}),
    "modernbert": ("ModernBertForMaskedLM", "text", False, ENCODER | {"local_attention": 8, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}),
    "dinov2": ("Dinov2ForImageClassification", "image", False, IMAGE),
    "beit": ("BeitForImageClassification", "image", False, IMAGE),
    "swin": ("SwinForImageClassification", "image", False, {"image_size": 16, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4],
                                                            "window_size": 4, "num_labels": 8}),
    "convnext": ("ConvNextForImageClassification", "image", False, {"hidden_sizes": [8, 16, 32, 32], "depths": [1, 1, 2, 1], "num_labels": 8}),
    "siglip": ("SiglipForImageClassification", "image", False, {"vision_config": IMAGE, "num_labels": 8}),
    "clip": ("CLIPModel", "both", False, {"text_config": ENCODER | {"bos_token_id": 1, "eos_token_id": 2}, "vision_config": IMAGE, "projection_dim": 32}),
}
TESTED = ("llama", "qwen3_moe", "gpt2", "gemma3", "bert", "vit", "qwen3_next", "t5")

# Name: ranks over the batch, over features, level of sharding, checkpointed blocks, micro-batches.
WAYS = {"one": (1, 1, 0, 0, 1), "one checkpointed": (1, 1, 0, 1, 1)}
for again, text in ((0, ""), (1, " checkpointed")):
    WAYS |= {"ddp" + text: (2, 1, 0, again, 2), "zero1" + text: (2, 1, 1, again, 1), "fsdp2 kept" + text: (2, 1, 2, again, 2),
             "fsdp2" + text: (2, 1, 3, again, 2), "tensor" + text: (1, 2, 0, again, 1)}
WAYS["fsdp2 tensor"] = (2, 2, 3, 1, 2)
WAYS["adapters"] = (1, 1, 0, 0, 1)
WAYS |= {"adapters, " + way: WAYS[way] for way in ("ddp", "zero1", "fsdp2 checkpointed")}
WAYS["bf16-mixed"] = (1, 1, 0, 1, 2)
WAYS["ddp bf16-mixed"] = (2, 1, 0, 0, 2)  # gloo does not gather bf16, which FSDP2 would need


def build(name):
    """The model, the same in each process; without dropout, which would differ."""
    kind, _, _, words = MODELS[name]
    of_class = getattr(transformers, kind)
    made = of_class.config_class(**words)
    for config in [made] + [getattr(made, part) for part in made.sub_configs if hasattr(made, part)]:
        for key, value in list(vars(config).items()):
            if isinstance(value, float) and re.search("drop|jitter", key):
                setattr(config, key, 0.0)
    torch.manual_seed(1)
    return of_class(made)


def samples(name, step):
    """The global batch of a step, as keywords of the model."""
    g = torch.Generator().manual_seed(7 + step % 2)
    ids = torch.randint(3, VOCABULARY, (BATCH, SEQ), generator=g)
    image = torch.randn(BATCH, 3, 32 if name == "convnext" else 16, 32 if name == "convnext" else 16, generator=g)
    return {"text": {"input_ids": ids, "labels": ids}, "pairs": {"input_ids": ids, "labels": ids.flip(1)},
            "image": {"pixel_values": image, "labels": ids[:, 0] % 8},
            "sound": {"input_features": torch.randn(BATCH, 8, 32, generator=g), "labels": ids},
            "both": {"input_ids": ids, "pixel_values": image}}[MODELS[name][1]]


def loss_of(out):
    """What the model says, or how well pairs of a text and an image fit: CLIP's own loss is none of single samples."""
    return out.loss if "loss" in out else -out.logits_per_image.diagonal().mean()


def train(name, model):
    """The losses of the steps, each the mean over the global batch."""
    import topt_apply
    device = topt_apply.start()
    model = topt_apply.apply(model, device)
    model.train()
    optimizer = topt_apply.optimizer(model, torch.optim.AdamW, **ADAMW)
    losses = []
    for step in range(STEPS):
        batch, total = samples(name, step), torch.zeros(())
        for i, context in enumerate(topt_apply.micro_batches(model)):
            with context:
                rows = {k: v[topt_apply.rows(i)] if torch.is_tensor(v) else v for k, v in batch.items()}
                loss = loss_of(model(**rows)) / topt_apply.ACCUMULATION
                loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
    return losses


def rank_of(name, model, way, rank, port, path):
    """A process of its own: one rank; its losses or what went wrong lie in the file."""
    dp, tp, zero, again, steps = WAYS[way]
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(dp * tp), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port), TOPT_DP=str(dp), TOPT_TP=str(tp), TOPT_FSDP=str(zero),
                      TOPT_RECOMPUTE=str(again), TOPT_MICRO_BATCH=str(BATCH // dp // steps),
                      TOPT_ACCUMULATION=str(steps), TOPT_TRAIN="lora:4" if "adapters" in way else "all",
                      TOPT_PRECISION="bf16-mixed" if "bf16" in way else "f32")
    try:
        said = train(name, model)
    except BaseException:  # SystemExit too
        said = traceback.format_exc()
    with open(f"{path}.{rank}", "w", encoding="utf-8") as f:
        json.dump(said, f)
    os._exit(not isinstance(said, list))


port = 20000 + os.getpid() % 20000


def losses_of(name, model, way):
    """Of each rank: the losses, or the text of an error."""
    global port
    port += 1
    path = f"/tmp/stock.{os.getpid()}"
    ranks = WAYS[way][0] * WAYS[way][1]
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            rank_of(name, model, way, rank, port, path)
        children.append(child)
    status = 0
    while children:
        child, ended = os.wait()
        children.remove(child)
        if ended and not status:  # the others would wait for it
            status = ended
            for other in children:
                os.kill(other, 15)
    said = []
    for rank in range(ranks):
        try:
            with open(f"{path}.{rank}", encoding="utf-8") as f:
                said.append(json.load(f))
            os.unlink(f"{path}.{rank}")
        except OSError:
            said.append("it ended")
    return said


def adapters_as_planned():
    """The plan beside this file is for adapters of Llama-3.1-8B: does that model get as many parameters as it counts?"""
    child = os.fork()
    if not child:
        import topt_apply
        with torch.device("meta"):
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
                hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                num_key_value_heads=8, vocab_size=128256))
        topt_apply.trainable(model)
        trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        types = {p.dtype for p in model.parameters() if not p.requires_grad}
        os._exit(not (sum(p.numel() for p in trained.values()) == topt_apply.PLAN["trained"] == 3407872 and
                      all("lora_" in n and p.dtype == torch.float32 for n, p in trained.items()) and types == {torch.bfloat16}))
    return os.waitpid(child, 0)[1] == 0


def far(one, said):
    """How far the losses are from one rank's, or what went wrong."""
    errors = [s for s in said if isinstance(s, str) and s != "it ended"] or [s for s in said if isinstance(s, str)]
    if errors:
        return errors[0]
    return max(abs(a - b) / abs(a) for losses in said for a, b in zip(one, losses))


def main():
    models, ways = (sys.argv[1:] + ["", "."])[:2]
    torch.set_num_threads(1)
    names = [n for n in MODELS if re.fullmatch(models, n)] if models else TESTED
    count = failed = 0
    if not sys.argv[1:]:
        good = adapters_as_planned()
        count, failed = 1, int(not good)
        print(f"{'ok' if good else 'not ok'} 1 - adapters of Llama-3.1-8B are those that the plan counts", flush=True)
    for name in names:
        model = build(name)
        one = losses_of(name, model, "one")
        if isinstance(one[0], str):
            print(f"not ok {count + 1} - {name}: one rank\n# " + one[0].replace("\n", "\n# "))
            count, failed = count + 1, failed + 1
            continue
        frozen = one
        if any("adapters" in way and re.search(ways, way) for way in WAYS):
            frozen = losses_of(name, model, "adapters")
        for way in WAYS:
            if way == "one" or not re.search(ways, way) or (WAYS[way][1] > 1 and not MODELS[name][2]):
                continue
            begun = one[0] if "adapters" not in way else frozen[0]
            apart = far(begun, losses_of(name, model, way))
            good = isinstance(apart, float) and apart < TOLERANCE["bf16" if "bf16" in way else "f32"] and abs(begun[-1] - begun[0]) > 1e-3
            count, failed = count + 1, failed + (not good)
            shown = f"losses {begun[0]:.4f} to {begun[-1]:.4f}, {apart:.1e} apart" if isinstance(apart, float) else "failed"
            print(f"{'ok' if good else 'not ok'} {count} - {name}: {way}: {shown}", flush=True)
            if isinstance(apart, str):
                print("# " + "\n# ".join(apart.splitlines()[-12:]), flush=True)
    print(f"1..{count}\n# {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
