/* specimens.h - the models whose kernels a profile measures. */
#ifndef TOPT_SPECIMENS_H
#define TOPT_SPECIMENS_H

/* clang-format off */
/* Configurations of one layer.  '@' and a digit stand for so many times the width, '@q' for a quarter of it, '@e' for half of it; '@h'
 * is how many heads it has, '@k' half and '@m' twice as many, '@d' numbers of a head, '@r' rows of a picture; quotes are
 * written as apostrophes. */
static const struct {
    const char *name, *config;
} topt_specimen[] = {
    {"GPT", "{'architectures': ['GPT2LMHeadModel'], 'model_type': 'gpt2', 'n_embd': @1, 'n_head': @h, 'n_layer': 1, 'n_positions': 512, "
            "'vocab_size': @4}"},
    {"Llama", "{'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_size': @1, 'intermediate_size': @3, "
              "'num_attention_heads': @h, 'num_key_value_heads': @k, 'num_hidden_layers': 1, 'vocab_size': @2}"},
    {"BERT", "{'architectures': ['BertForMaskedLM'], 'model_type': 'bert', 'hidden_size': @1, 'intermediate_size': @4, 'num_attention_heads': "
             "@h, 'num_hidden_layers': 1, 'max_position_embeddings': 512, 'type_vocab_size': 2, 'vocab_size': @1}"},
    {"T5", "{'architectures': ['T5ForConditionalGeneration'], 'model_type': 't5', 'd_model': @1, 'd_kv': @d, 'num_heads': @h, 'num_layers': 1, "
           "'d_ff': @2, 'vocab_size': @2}"},
    {"Mamba", "{'architectures': ['MambaForCausalLM'], 'model_type': 'mamba', 'hidden_size': @1, 'state_size': 16, 'conv_kernel': 4, 'expand': 2, "
              "'time_step_rank': 8, 'num_hidden_layers': 1, 'vocab_size': @1}"},
    {"Mamba-2", "{'architectures': ['Mamba2ForCausalLM'], 'model_type': 'mamba2', 'hidden_size': @1, 'num_heads': @m, 'head_dim': @d, "
                "'state_size': @d, 'n_groups': 1, 'chunk_size': 64, 'conv_kernel': 4, 'expand': 2, 'num_hidden_layers': 1, 'vocab_size': @1}"},
    {"Mixtral", "{'architectures': ['MixtralForCausalLM'], 'model_type': 'mixtral', 'hidden_size': @1, 'intermediate_size': @2, "
                "'num_attention_heads': @h, 'num_key_value_heads': @k, 'num_hidden_layers': 1, 'num_local_experts': 4, 'num_experts_per_tok': 2, "
                "'vocab_size': @1}"},
    {"DeepSeek-V2", "{'architectures': ['DeepseekV2ForCausalLM'], 'model_type': 'deepseek_v2', 'hidden_size': @1, 'num_hidden_layers': 1, "
                    "'num_attention_heads': @h, 'intermediate_size': @2, 'moe_intermediate_size': @q, 'kv_lora_rank': @q, 'q_lora_rank': null, "
                    "'qk_nope_head_dim': @d, 'qk_rope_head_dim': 16, 'v_head_dim': @d, 'n_routed_experts': 16, 'n_shared_experts': 1, "
                    "'num_experts_per_tok': 4, 'first_k_dense_replace': 0, 'topk_method': 'greedy', 'max_position_embeddings': 512, "
                    "'vocab_size': @1}"},
    {"Qwen3-Next", "{'architectures': ['Qwen3NextForCausalLM'], 'model_type': 'qwen3_next', 'hidden_size': @1, 'head_dim': @d, "
                   "'intermediate_size': @2, 'layer_types': ['linear_attention'], 'linear_conv_kernel_dim': 4, 'linear_key_head_dim': @d, "
                   "'linear_num_key_heads': @k, 'linear_num_value_heads': @h, 'linear_value_head_dim': @d, 'max_position_embeddings': 512, "
                   "'moe_intermediate_size': @q, 'norm_topk_prob': true, 'num_attention_heads': @h, 'num_experts': 8, 'num_experts_per_tok': 2, "
                   "'num_hidden_layers': 1, 'num_key_value_heads': @k, 'shared_expert_intermediate_size': @q, 'vocab_size': @1}"},
    {"ViT", "{'architectures': ['ViTForImageClassification'], 'model_type': 'vit', 'hidden_size': @1, 'intermediate_size': @4, 'image_size': "
            "@r, 'patch_size': 4, 'num_channels': 1, 'num_attention_heads': @h, 'num_hidden_layers': 1, 'num_labels': 10}"},
    {"ResNet", "{'architectures': ['ResNetForImageClassification'], 'model_type': 'resnet', 'embedding_size': @q, 'hidden_sizes': [@q, @e], "
               "'depths': [1, 1], 'layer_type': 'basic', 'num_channels': 1, 'image_size': @r, 'num_labels': 10}"},
    {"ResNet of bottlenecks",
     "{'architectures': ['ResNetForImageClassification'], 'model_type': 'resnet', 'embedding_size': @q, 'hidden_sizes': [@1, @2], 'depths': [1, 1], "
     "'layer_type': 'bottleneck', 'num_channels': 1, 'image_size': @r, 'num_labels': 10}"},
};
/* clang-format on */
enum { TOPT_SPECIMENS = sizeof topt_specimen / sizeof *topt_specimen };

#endif
