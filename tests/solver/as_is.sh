#!/bin/sh
# as_is.sh ROOT TOPT - a run that exists, from its script or its configuration: what it will take is what the same
# question with its degrees takes, the plan beside it is no slower, and what can't be read is refused in one line.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }
cp "$root/deploy/quickstart/pretrain_gpt3.sh" run.sh
cp "$root/deploy/quickstart/llama-3.1-8b.json" config.json

as_is() { # as_is OPTIONS...: the answer as JSON in out
    "$topt" plan "$@" --json >whole 2>err && jq 'del(.plan)' whole >out
}
holds() { # holds EXPRESSION: of the answer
    jq -e "$1" out >/dev/null
}
not_so() { # not_so WORDS OPTIONS...
    words=$1 && shift
    ! "$topt" plan "$@" >out 2>err && grep -q -- "$words" err && [ "$(wc -l <err)" = 1 ]
    check "refused: $(cat err)"
}

# Megatron-LM's arguments.
as_is run.sh --as-is --hw a100-80-dgx && holds '.as_is.degrees == "tp=8,pp=16,cp=1,ep=1,mbs=1,vp=3,zero=1,recompute=0,even=1"
    and .as_is.gpus == 1024 and .gpus == 1024 and .job.batch == 1536 and .job.seq == 2048 and .job.framework == "megatron"
    and .as_is.uniform.layers == [range(48) | 2] and .as_is.uniform.sequence_parallel'
check "the script says its degrees, batch, positions and number of GPUs: $(jq -r .as_is.degrees out)"
holds '.time_ns <= .as_is.time_ns and (.as_is.stages | length) == 16 and ([.as_is.stages[].memory_bytes] | max) == .as_is.memory_bytes'
check "the plan beside it is no slower; each of its stages has its memory"
jq -c '.as_is | [.time_ns, .memory_bytes]' out >run
"$topt" plan run.sh --hw a100-80-dgx --gpus 1024 --framework megatron --degrees "$(jq -r .as_is.degrees out)" --json 2>err |
    jq -c '[.time_ns, .memory_bytes]' >asked
diff run asked >err
check "what it takes is what the same question with its degrees takes: $(cat run)"
# Of each chunk's two layers none, the first or both recomputed: less memory and more time each.
cp out none
for method in block uniform; do
    sed "s/--overlap-grad-reduce/--recompute-granularity full --recompute-method $method --recompute-num-layers 1/" run.sh >$method.sh
    as_is $method.sh --as-is --hw a100-80-dgx && cp out $method
done
jq -e '(.as_is.degrees | test("recompute=block:1,even=1$")) and .as_is.uniform.recompute_layers == 1 and (.as_is.strategy | test("checkpointing of 1 layer per chunk"))' block >out &&
    jq -se 'map(.as_is) | (.[0].memory_bytes > .[1].memory_bytes and .[1].memory_bytes > .[2].memory_bytes and .[0].compute_ns < .[1].compute_ns and .[1].compute_ns < .[2].compute_ns)' \
        none block uniform >out
check "the first layer of each chunk is recomputed as the script says: $(jq -c '.as_is | [.time_ns, .memory_bytes]' block uniform | tr '\n' ' ')"
"$topt" plan --as-is run.sh --hw a100-80-dgx >text 2>err && grep -q '^yours .*16 pipeline stages of 3 chunks' text && grep -q "^topt's  *1024 (128 nodes)" text &&
    grep -q "^compared  topt's plan is 1[.0-9]* times as fast" text && grep -q '^yours is  --degrees tp=8,pp=16,' text
check "both stand beside each other: $(grep '^compared' text)"
"$topt" plan run.sh --as-is --hw a100-80-dgx --lines plan >lines 2>err && grep -q '^TOPT_WHY=.*; the run as it is takes 1[.0-9]* times as long' lines
check "sbatch's line says it, too: $(grep TOPT_WHY lines)"
sed 's/--pipeline-model-parallel-size 16/--pipeline-model-parallel-size 2/; /virtual-pipeline/d; s/NODES=128/NODES=16/' run.sh >heavy.sh
as_is heavy.sh --as-is --hw a100-80-dgx && holds '.as_is.verdict == "does not fit" and .as_is.memory_bytes > .memory_limit and .verdict != "does not fit"' &&
    "$topt" plan heavy.sh --as-is --hw a100-80-dgx >text 2>err && grep -q '^yours .*, does not fit' text
check "a run that does not fit is costed all the same: $(jq -c '.as_is.memory_bytes' out)"
# Single arguments stand in a smaller run, which is searched in a fifth of the time.
sed 's/NODES=128/NODES=2/; s/--pipeline-model-parallel-size 16/--pipeline-model-parallel-size 2/; s/--num-layers 96/--num-layers 12/' run.sh >small.sh
sed 's/--num-layers-per-virtual-pipeline-stage 2/--num-virtual-stages-per-pipeline-rank 3/; s/--bf16/--fp16/; s/--overlap-grad-reduce/--recompute-granularity full/' small.sh >other.sh
as_is other.sh --as-is --hw a100-80-dgx && holds '.as_is.degrees == "tp=8,pp=2,cp=1,ep=1,mbs=1,vp=3,zero=1,recompute=1,even=1" and .job.precision == "fp16-mixed"
    and .as_is.uniform.recompute'
check "virtual stages by their number, another precision, recomputation"
sed 's/--overlap-grad-reduce/--recompute-granularity selective --recompute-modules core_attn mlp/' small.sh >modules.sh
as_is modules.sh --as-is --hw a100-80-dgx && holds '.as_is.degrees == "tp=8,pp=2,cp=1,ep=1,mbs=1,vp=3,zero=1,recompute=core_attn+mlp,even=1"
    and .as_is.uniform.recompute_modules == "core_attn+mlp" and (.as_is.strategy | test("checkpointing of core_attn"))'
check "modules that are recomputed: $(jq -r .as_is.strategy out)"
sed 's/--bf16/--bf16 --fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather/' small.sh >eight.sh
as_is eight.sh --as-is --hw h100-80-dgx && holds '.job.precision == "fp8-tensorwise" and (.as_is.notes | map(select(test("fp8"))) | length) == 0' &&
    test "$(jq -r .plan.settings.low_params whole)" = true
check "products in FP8 by their recipe, and weights"
not_so "has no products in fp8" eight.sh --as-is --hw a100-80-dgx

# Experts: states are shared out over all data parallel ranks, and passes run as one, only where the script says so.
experts='--disable-bias-linear --num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4 --moe-grouped-gemm --mtp-num-layers 0'
sed "s/NODES=2/NODES=8/; s/tensor-model-parallel-size 8/tensor-model-parallel-size 2/; s/--bf16/--bf16 $experts/" small.sh >experts.sh
as_is experts.sh --as-is --hw h100-80-dgx && holds '.as_is.uniform.schedule == "interleaved-1f1b" and .as_is.uniform.dp == 16 and .as_is.uniform.shard == null
    and .as_is.options == "--shard-ranks 16 --schedule interleaved-1f1b"' && "$topt" plan --as-is experts.sh --hw h100-80-dgx >text 2>err &&
    grep -q '^yours is  --degrees tp=2,pp=2,.* --shard-ranks 16 --schedule interleaved-1f1b$' text
check "experts' schedule is the script's: $(grep '^yours is' text)"
sed 's/--bf16/--bf16 --overlap-moe-expert-parallel-comm --num-distributed-optimizer-instances 2/' experts.sh >paired.sh
as_is paired.sh --as-is --hw h100-80-dgx && holds '.as_is.uniform.schedule == "combined-1f1b" and .as_is.uniform.shard == 8'
check "... or passes that run as one, and replicas of shards"

# Arguments of types, offloading, overlap and CUDA graphs: each says a field of the question, or is named.
says() { # says ARGUMENTS HW FILTER: the settings of the plan beside it hold the filter, and nothing is noted
    sed "s/--bf16/--bf16 $1/" small.sh >said.sh && as_is said.sh --as-is --hw "$2" && jq -e ".plan.settings | $3" whole >filtered && holds '.as_is.notes == []'
    check "taken: $1"
}
notes() { # notes ARGUMENTS WORDS
    sed "s/--bf16/--bf16 $1/" small.sh >said.sh && as_is said.sh --as-is --hw h100-80-dgx && holds ".as_is.notes | map(select(test(\"$2\"))) | length == 1"
    check "named: $(jq -rc .as_is.notes out)"
}
says "--tp-comm-overlap" a100-80-dgx .tensor_overlap
says "--fp8-format e4m3 --fp8-recipe mxfp8 --fp8-param-gather" b200-hgx '.low == "mxfp8" and .low_params'
says "--fp4-format e2m1" b200-hgx '.low == "nvfp4"'
says "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --use-precision-aware-optimizer" a100-80-dgx '.offload_permille == 500'
says "--fine-grained-activation-offloading --offload-modules core_attn attn_proj" h100-80-dgx '.offload > 0'
says "--cuda-graph-impl full_iteration" h100-80-dgx .cuda_graphs
says "--external-cuda-graph" h100-80-dgx .cuda_graphs
says "--grad-reduce-in-bf16" h100-80-dgx '.gradient_f32 | not'
says "--cuda-graph-impl none" h100-80-dgx '.cuda_graphs | not'
says "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16" h100-80-dgx '.optimizer == "adamw_bf16"'
notes "--cuda-graph-impl local --cuda-graph-modules attn mlp" "CUDA graphs of some modules"
notes "--fp8-format hybrid --fp8-recipe custom" "fp8-recipe.*as in bf16"
notes "--fp8-format hybrid --first-last-layers-bf16" "first-last-layers-bf16: all layers"
notes "--exp-avg-sq-dtype fp8" "both moments are taken in f32"
sed 's/--bf16/--bf16 --fine-grained-activation-offloading --offload-modules gdp_qkv/' run.sh >said.sh
not_so "--offload-modules gdp_qkv has no counterpart" said.sh --as-is --hw h100-80-dgx
sed 's/--bf16/--bf16 --cpu-offloading-num-layers 95/' run.sh >said.sh
not_so "beside pipeline stages only the optimizer" said.sh --as-is --hw h100-80-dgx
sed 's/--bf16/--bf16 --optimizer-cpu-offload --optimizer-offload-fraction half/' run.sh >said.sh
not_so "--optimizer-offload-fraction is no number" said.sh --as-is --hw h100-80-dgx
sed "s/--num-layers-per-virtual-pipeline-stage 2/--pipeline-model-parallel-layout 'Et*3|(tt|)*46tL'/" run.sh >layout.sh
as_is layout.sh --as-is --hw a100-80-dgx && holds '.as_is.uniform.vp == 3 and (.as_is.notes | map(select(test("cut by topt"))) | length) == 1'
check "chunks of a layout are counted, and it is said that layers are cut otherwise"
# shellcheck disable=SC2016
sed '1a #SBATCH --nodes=16\n#SBATCH --gres=gpu:a100:8' run.sh | sed 's/NODES=128/NODES=$1/; s/--nproc_per_node "$GPUS_PER_NODE"/--nproc_per_node gpu/' >booked.sh
as_is booked.sh --as-is --hw a100-80-dgx && holds '.gpus == 128 and .as_is.uniform.dp == 1'
check "the number of GPUs that Slurm is asked for"
sed 's/--use-distributed-optimizer/--use-megatron-fsdp/' run.sh >fsdp.sh
not_so "--use-megatron-fsdp has no counterpart here" fsdp.sh --as-is --hw a100-80-dgx
# shellcheck disable=SC2016
sed 's/--tensor-model-parallel-size 8/--tensor-model-parallel-size $TP/' run.sh >unset.sh
# shellcheck disable=SC2016
not_so 'the file does not set $TP' unset.sh --as-is --hw a100-80-dgx
sed 's/NODES=2/NODES=16/; s/--context/--c/; s/--sequence-parallel/--context-parallel-size 2/' small.sh >context.sh
as_is context.sh --as-is --hw a100-80-dgx && holds '.as_is.uniform.cp == 2 and .as_is.uniform.dp == 4'
check "context parallelism of a script"
not_so "tp=8 x pp=16 = 128 does not divide 100 GPUs" run.sh --as-is --hw a100-80-dgx --gpus 100
not_so "leave out --mode" run.sh --as-is --hw a100-80-dgx --mode profiling
not_so "it is no ds_config.json" config.json --as-is --hw a100-80-dgx
not_so "is no run" config.json --as-is "$root/tests/tap.sh" --hw a100-80-dgx

# DeepSpeed's configuration, with the model beside it.
cat >ds_config.json <<'END'
{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 8, "train_batch_size": "auto",
 "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW"}}
END
as_is config.json --as-is ds_config.json --hw a100-80-dgx --gpus 8 --seq 4096 && holds '.as_is.degrees == "tp=1,pp=1,zero=3,mbs=1" and
    .job.batch == 64 and .job.framework == "deepspeed" and .as_is.uniform.zero == 3 and .as_is.micro_batches == 8 and .time_ns <= .as_is.time_ns'
check "DeepSpeed's level, micro-batch and accumulation: $(jq -r .as_is.strategy out)"
as_is config.json --as-is ds_config.json --hw a100-80-dgx --gpus 8 --seq 4096 --degrees recompute=1 && holds '.as_is.uniform.recompute'
check "what the file does not say can be said beside it"
not_so "how many GPUs" config.json --as-is ds_config.json --hw a100-80-dgx
away() { # away ZERO FILTER: the settings of the plan beside it
    sed "s/\"stage\": 3/$1/" ds_config.json >offload.json && as_is config.json --as-is offload.json --hw a100-80-dgx --gpus 8 --seq 4096 &&
        jq -e ".plan.settings | $2" whole >/dev/null
    check "taken: $1"
}
stays() { # stays ZERO WORDS: refused
    sed "s/\"stage\": 3/$1/" ds_config.json >offload.json
    not_so "$2" config.json --as-is offload.json --hw a100-80-dgx --gpus 8
}
away '"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3}' '.offload > 0 and .offload_permille == 300'
away '"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.3}' '.offload_permille == 1000'
away '"stage": 2, "cpu_offload": true' '.offload_permille == 1000'
away '"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}' '.offload >= 7'
away '"stage": 3, "offload_optimizer": {"device": "none"}' '.offload == null'
stays '"stage": 3, "offload_param": {"device": "cpu"}' "offload_param without offload_optimizer has no counterpart"
stays '"stage": 3, "offload_optimizer": {"device": "nvme"}' "offload_optimizer: device nvme has no counterpart.*; cpu has"
stays '"stage": 1, "offload_optimizer": {"device": "cpu"}' "offload_optimizer with stage 1 has no counterpart.*stages 2 and 3 have"
sed 's/"AdamW"/"Muon"/' ds_config.json >muon.json
not_so "Muon with stage 3 has no counterpart here.*stages 1 and 2 have" config.json --as-is muon.json --hw a100-80-dgx --gpus 8
sed -i 's/"stage": 3/"stage": 1/' muon.json
as_is config.json --as-is muon.json --hw a100-80-dgx --gpus 8 --seq 4096 && holds '.job.optimizer == "muon"'
check "Muon of a configuration"
sed 's/"bf16": {"enabled": true}/"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}/' ds_config.json >pure.json
as_is config.json --as-is pure.json --hw a100-80-dgx --gpus 8 --seq 4096 && holds '.job.precision == "bf16"'
check "master weights, gradients and states in bf16"

# torchtitan's: TOML, its function in Python as topt writes it, and a command line.
cat >titan.toml <<'END'
[training]
local_batch_size = 8
seq_len = 4096   # tokens
[parallelism]
data_parallel_shard_degree = -1
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
[activation_checkpoint]
mode = "full"
END
as_is config.json --as-is titan.toml --hw a100-80-dgx --gpus 16 && holds '.as_is.uniform.pp == 2 and .as_is.uniform.vp == 2 and .as_is.uniform.zero == 2 and
    .as_is.uniform.dp == 8 and .as_is.uniform.micro_batch == 1 and .as_is.uniform.recompute and .job.batch == 64 and .job.seq == 4096'
check "torchtitan's TOML; with stages its default keeps parameters gathered: $(jq -r .as_is.strategy out)"
for row in "ZBVZeroBubble zbv" "DualPipeV dualpipev" "InterleavedZeroBubble interleaved-zb" "1F1B 1f1b" "GPipe gpipe"; do
    sed "s/Interleaved1F1B/${row% *}/; s/\"full\"/\"none\"/" titan.toml >schedule.toml
    as_is config.json --as-is schedule.toml --hw a100-80-dgx --gpus 16 && holds ".as_is.uniform.schedule == \"${row#* }\" and (.as_is.notes | length) == 1"
    check "its schedule ${row% *}"
done
sed 's/shard_degree = -1/&\ndata_parallel_replicate_degree = 2/' titan.toml >replicas.toml
as_is config.json --as-is replicas.toml --hw a100-80-dgx --gpus 16 && holds '.as_is.uniform.dp == 8 and .as_is.uniform.shard == 4'
check "its replicas of shards: $(jq -r .as_is.strategy out)"
sed 's/"full"/"selective"/' titan.toml >selective.toml
as_is config.json --as-is selective.toml --hw a100-80-dgx --gpus 16 && holds '.as_is.uniform.recompute_modules == "op" and .as_is.time_ns > 0'
check "its selective checkpointing: $(jq -r .as_is.strategy out)"
as_is config.json --as-is titan.toml --hw a100-80-dgx --gpus 16
jq .plan whole >plan.json && "$topt" launch plan.json --for torchtitan -o titan >/dev/null 2>err &&
    cp out before && as_is config.json --as-is titan/topt_torchtitan.py --hw a100-80-dgx --gpus 16 && jq -c '.uniform | [.dp, .tp, .pp, .zero, .micro_batch, .recompute]' before >a &&
    jq -c '.as_is.uniform | [.dp, .tp, .pp, .zero, .micro_batch, .recompute]' out >b && diff a b >err
check "what topt launch writes is read back as the plan: $(cat a)"
printf '#!/bin/sh\ntorchrun --nproc_per_node=8 -m torchtitan.train --parallelism.tensor_parallel_degree 2 --training.local_batch_size=2 --training.seq_len 4096\n' >titan.sh
as_is config.json --as-is titan.sh --hw a100-80-dgx && holds '.gpus == 8 and .as_is.uniform.tp == 2 and .as_is.uniform.dp == 4 and .as_is.uniform.zero == 3 and .job.batch == 8'
check "a command line: $(jq -r .as_is.strategy out)"

# Types of few bits, offloading and overlap: keys of files and options of releases before 2026, and of now.
printf '#!/bin/sh\ntorchrun --nproc_per_node=8 -m torchtitan.train --parallelism.pipeline_parallel_degree 2 --parallelism.num_pp_microbatches 4 --training.num_tokens_per_microbatch_per_dp_rank 4096 --training.max_context_length 4096\n' >passes.sh
as_is config.json --as-is passes.sh --hw h100-80-dgx && holds '.job.batch == 16 and .as_is.uniform.micro_batch == 1 and ([.as_is.notes[] | select(test("num_pp"))] == [])' &&
    sed 's/--training.max/--training.num_tokens_per_train_step 131072 &/' passes.sh >more.sh && as_is config.json --as-is more.sh --hw h100-80-dgx &&
    holds '.job.batch == 32 and ([.as_is.notes[] | select(test("steps of 4 micro-batches .num_pp_microbatches. are taken as one pass"))] | length == 1)'
check "its micro-batches of a pipeline pass are a step, unless the step says more: $(jq -c .as_is.notes out)"
cat titan.toml >eight.toml
cat >>eight.toml <<'END'
[model]
converters = ["quantize.linear.float8"]
[quantize.linear.float8]
enable_fsdp_float8_all_gather = true
END
as_is config.json --as-is eight.toml --hw h100-80-dgx --gpus 16 && holds '.job.precision == "fp8-tensorwise"' && jq -e '.plan.settings.low_params' whole >/dev/null
check "FP8 with a scale for each tensor, and weights gathered in it"
sed 's/enable_fsdp.*/recipe_name = "rowwise"/' eight.toml >rows.toml
as_is config.json --as-is rows.toml --hw h100-80-dgx --gpus 16 && holds '.job.precision == "fp8-rowwise"'
check "its scales by row"
sed 's/float8/mx/; /enable_fsdp/d' eight.toml >mx.toml
as_is config.json --as-is mx.toml --hw b200-hgx --gpus 16 && holds '.job.precision == "mxfp8"'
check "MXFP8"
option() { # option OPTIONS FILTER: of a command line of tensor parallelism, beside the settings of the plan
    sed "s/--training.seq_len 4096/& $1/" titan.sh >option.sh && as_is config.json --as-is option.sh --hw h100-80-dgx && jq -e ".plan.settings | $2" whole >/dev/null
    check "taken: $1"
}
option "--model.converters float8 --float8.enable_fsdp_float8_all_gather --compile.enable" '.low == "tensorwise" and .low_params'
option "--parallelism.enable_async_tensor_parallel --compile.enable=True" .tensor_overlap
option "--training.enable_cpu_offload" '.offload >= 7'
option "--training.disable_cuda_graphs False" .cuda_graphs
option "--training.dtype bfloat16" .state_bf16
as_is config.json --as-is titan.sh --hw h100-80-dgx && holds '.time_ns <= .as_is.time_ns'
check "beside a run with tensor parallelism the plan may have it: $(jq -r .strategy out)"

# What topt launch writes for the types, offloads and overlaps of a plan is read back as the same question.
back() { # back FRAMEWORK FILE HW OPTIONS...
    framework=$1 file=$2 hw=$3 && shift 3
    "$topt" plan config.json --hw "$hw" --gpus 8 --framework "$framework" --batch 64 --seq 4096 "$@" -o plan.json >/dev/null 2>err &&
        "$topt" launch plan.json -o back >/dev/null 2>err && as_is config.json --as-is "back/$file" --hw "$hw" --gpus 8 --batch 64 --seq 4096
    jq '.predicted | [.time_ns, .memory_bytes]' plan.json >a && jq '.as_is | [.time_ns, .memory_bytes]' out >b && diff a b >err
    check "launched and read back: $framework $*"
}
for options in "--precision fp8-delayed --fp8-params" "--precision fp8-blockwise" "--tensor-overlap --degrees tp=4" "--cuda-graphs" \
    "--optimizer muon" "--optimizer adamw_bf16" "--offload activations" "--offload core_attn,attn_proj" "--offload optimizer --offload-fraction 0.5"; do
    # shellcheck disable=SC2086
    back megatron launch.sh h100-80-dgx $options
done
back megatron launch.sh b200-hgx --precision nvfp4
back megatron launch.sh h100-80-dgx --degrees pp=2,vp=2,tp=2
for options in "--degrees pp=2,vp=2,tp=2" "--degrees pp=2 --schedule zbv" "--degrees pp=4 --schedule zb-h1" "--degrees pp=2,vp=2,recompute=block:3" "--degrees recompute=core_attn+mlp" \
    "--precision fp8-delayed --fp8-params" "--precision fp16-mixed" "--optimizer adamw_bf16" "--offload optimizer --offload-fraction 0.5" "--loss-kernel fused"; do
    # shellcheck disable=SC2086
    back primus primus.yaml mi300x $options
done
# An experiment says less than a plan: presets say the rest, and what has no counterpart is refused.
cat >exp.yaml <<'YAML'
modules:
  pre_trainer:
    framework: megatron
    overrides:
      # parallel
      tensor_model_parallel_size: ${PRIMUS_TP:2} # of a node
      pipeline_model_parallel_size: 2
      global_batch_size: 64
      recompute_granularity: "selective"
      recompute_modules: [core_attn, mlp]
      sequence_parallel: false
      mock_dataset:
        micro_batch_size: 7
      patch_primus_pipeline: false
      pp_algorithm: v-half
  other:
    overrides:
      micro_batch_size: 9
YAML
as_is config.json --as-is exp.yaml --hw mi300x --gpus 8 && holds '.as_is.degrees == "tp=2,pp=2,cp=1,ep=1,mbs=2,vp=1,zero=1,recompute=core_attn+mlp,even=1" and .job.batch == 64 and
    .job.seq == 1024 and .job.framework == "primus" and .job.precision == "bf16-mixed" and (.as_is.uniform.sequence_parallel | not)'
check "an experiment of Primus, with what its presets say: $(jq -r .as_is.degrees out)"
sed -i 's/pipeline: false/pipeline: true/' exp.yaml
not_so "pp_algorithm v-half has no counterpart here" config.json --as-is exp.yaml --hw mi300x --gpus 8
back torchtitan topt_torchtitan.py h100-80-dgx --degrees pp=2,vp=4 --schedule interleaved-1f1b
back torchtitan topt_torchtitan.py h100-80-dgx --degrees pp=2 --schedule zbv
back torchtitan topt_torchtitan.py h100-80-dgx --shard-ranks 4
back torchtitan topt_torchtitan.py h100-80-dgx --precision fp8-rowwise
back torchtitan topt_torchtitan.py h100-80-dgx --tensor-overlap --degrees tp=4
back torchtitan topt_torchtitan.py h100-80-dgx --offload parameters
back torchtitan topt_torchtitan.py b200-hgx --precision mxfp8
back megatron launch.sh h100-80-dgx --gradients bf16
back deepspeed ds_config.json h100-80-dgx --gradients f32
back deepspeed ds_config.json h100-80-dgx --offload parameters
back deepspeed ds_config.json h100-80-dgx --offload optimizer --offload-fraction 0.3
finish
