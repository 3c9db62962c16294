#!/bin/bash
# pretrain_gpt3.sh - an example for `topt plan pretrain_gpt3.sh --as-is`: GPT-3 of 175 B parameters trained by
# Megatron-LM on 128 nodes of 8 GPUs, in the degrees that people copy from each other.
set -eu
GPUS_PER_NODE=8
NODES=128
DISTRIBUTED=(
    --nproc_per_node "$GPUS_PER_NODE"
    --nnodes "$NODES"
    --node_rank "$SLURM_NODEID"
    --master_addr "$MASTER_ADDR"
    --master_port 6000
)
MODEL=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --vocab-size 50257
    --hidden-dropout 0
    --attention-dropout 0
)
TRAINING=(
    --micro-batch-size 1
    --global-batch-size 1536
    --train-iters 100000
    --lr 6.0e-5
    --bf16
)
PARALLEL=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
    --num-layers-per-virtual-pipeline-stage 2
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
)
torchrun "${DISTRIBUTED[@]}" pretrain_gpt.py "${MODEL[@]}" "${TRAINING[@]}" "${PARALLEL[@]}" "$@"
