"""A script for Hugging Face's Trainer as trainer.sh runs it: a small Llama learns rows that repeat."""
import json

import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

(args,) = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses()
set_seed(0)
model = LlamaForCausalLM(LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                     num_key_value_heads=2, vocab_size=64))
starts = torch.randint(0, 64, (64,), generator=torch.Generator().manual_seed(1))
rows = [{"input_ids": row, "labels": row} for row in ((start + torch.arange(64)) % 64 for start in starts)]
trainer = Trainer(model=model, args=args, train_dataset=rows)
trainer.train()
if args.process_index == 0:
    print("\n" + json.dumps({"ranks": args.world_size, "model": type(trainer.model_wrapped).__name__,
                             "checkpointed": model.is_gradient_checkpointing, "samples": args.per_device_train_batch_size,
                             "losses": [h["loss"] for h in trainer.state.log_history if "loss" in h]}))
