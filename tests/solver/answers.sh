#!/bin/sh
# answers.sh ROOT TOPT - the answer that a person acts on: numbers of GPUs that people book, the choices beside each
# other, what was assumed, what was left out, and batches.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
model=$root/deploy/quickstart/llama-3.1-8b.json
command -v jq >/dev/null || { echo "1..0 # skipped: jq is not installed" && exit 77; }

ask() { # ask OPTIONS...: the default question with these, as JSON in out
    "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --json "$@" >whole 2>err
    status=$?
    jq .plan whole >plan.json && jq 'del(.plan)' whole >out
    return $status
}
holds() { # holds EXPRESSION: of the answer
    jq -e "$1" out >/dev/null
}

ask && holds '.feasible and .job.framework == "pytorch" and .space == "uniform" and .exact'
check "a question without more is asked for PyTorch in the uniform space"
holds '[.assumed[].what] | index("framework") and index("precision") and index("optimizer") and (index("batch") | not)'
check "what was not said is named, and what was said is not"
holds '.alternatives | (map(.names[]) - ["knee"] | sort) == ["cheapest", "fastest", "fewest", "one node"]'
check "the fewest, the knee and the fastest stand beside each other"
holds '.gpus == .alternatives[0].gpus and .uniform.tp == 1
    and (.uniform.dp * .uniform.micro_batch * .micro_batches) == 64'
check "the fewest is the answer; the batch is ranks x micro-batch x accumulation"
holds '[.alternatives[] | (.gpus as $n | [1, 2, 4, 8, 16, 32, 64] | index($n)) and .memory_bytes > 0
    and .gpu_hours_per_million_samples > 0 and .why != "" and .band.memory.high_bytes >= .memory_bytes] | all'
check "each is a number that people book, with speed, GPU-hours, memory, its band and a reason"
# 6 FLOPs for each token and each parameter that multiplies it (a looked-up embedding does not), 12 x layers x heads x
# head dimension x positions a token for attention: PaLM, appendix B.
holds '(6 * 7504658432 * 4096 + 12 * 32 * 32 * 128 * 4096 * 4096) as $flops | .job.model_flops_per_sample == $flops and
    all(., .alternatives[]; (.mfu * .gpus * 312e12 * .time_ns / 1e9 / 64 / $flops - 1 | fabs) < 1e-9 and
        (.tokens_per_second_per_gpu * .gpus * .time_ns / 1e9 / 64 / 4096 - 1 | fabs) < 1e-9)'
check "MFU by its definition, and tokens a second of each GPU: $(jq -c '[.mfu, .tokens_per_second_per_gpu]' out)"
holds '(6 * 7504658432 * 4096 + 6 * 32 * 32 * 128 * 4096 * 4096) as $half | .job as $job |
    $job.masked_flops_per_sample == $half and all(., .alternatives[]; (.mfu_masked / .mfu - $half / $job.model_flops_per_sample | fabs) < 1e-9)' &&
    "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 8 >text 2>err && ! grep -q 'masked' text &&
    "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 16384 --gpus 8 -o masked.json >text 2>err && grep -q 'MFU [0-9.]* % ([0-9.]* % without the masked part of attention)' text &&
    "$topt" explain masked.json >text 2>err && grep -q 'without the masked part of attention' text
check "beside it, without what a causal mask leaves out, which is said where it is much: $(grep -o 'MFU.*' text)"
echo '{"model_type": "gpt2", "n_layer": 128, "n_embd": 25600, "n_head": 160, "n_positions": 2048, "vocab_size": 51200}' >large.json
"$topt" plan large.json --hw a100-80-dgx --batch 64 --seq 2048 --gpus 8 >text 2>err
grep -q '^large (1.01 T parameters)' text
check "parameters in three digits: $(head -1 text)"
"$topt" plan "$model" --hw h100-80-dgx --precision fp16-mixed --framework megatron --batch 64 --seq 4096 --gpus 8 --json >out 2>err &&
    holds '.job.peak_flops == 989e12 and .mfu > 0'
check "MFU in fp16, whose peak is that of bf16 where the profile has none: $(jq .mfu out)"
ask --train lora && holds '(.mfu or .job.model_flops_per_sample | not) and .tokens_per_second > 0'
check "no MFU where parameters are frozen"
echo '{"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": 256}' >moe.json
"$topt" plan moe.json --hw a100-80-dgx --batch 8 --seq 1024 --gpus 1 --json >out 2>err && holds '.job.model_flops_per_sample ==
    1024 * (6 * (2 * (4 * 1024 * 1024 + 8 * 1024 + 2 * 3 * 1024 * 2048) + 32000 * 1024) + 12 * 2 * 1024 * 256)'
check "of experts those that a token is sent to, of a window's attention its length: $(jq .job.model_flops_per_sample out)"
"$topt" plan paper:vgg16 --hw a100-80-dgx --batch 256 >out 2>err && grep -q ' step   images/s ' out && grep -q '[0-9] images/s, MFU ' out
check "images a second of a network of images: $(grep MFU out | tail -1)"
ask && holds '.with | map(select(.ask == "--train lora")) | length == 1 and .[0].gpus < 2'
check "that adapters would fit on fewer is said"

# The kernels of a year's release: which attention an answer takes for granted, and what that costs.
kernel() # OPTIONS...
{
    "$topt" plan "$model" --hw h100-80-dgx --batch 64 --seq 2048 --gpus 8 --json "$@" 2>err |
        jq -r '([.assumed[] | select(.what == "attention") | .value] + ["said"])[0] + " " + (.plan.settings.eager // "none")'
}
kernels=$(kernel && kernel --software 2023 && kernel --software 2022 && kernel --framework megatron && kernel --framework torchtitan &&
    kernel --framework torchtitan --software 2024 && kernel --software 2022 --attention flash-2)
[ "$kernels" = "flash-2 operators
flash-1 operators,optimizer
written out operators,scores,optimizer
cudnn none
flash-2 operators-but-norms
flash-2 operators,optimizer
said operators,optimizer" ]
check "kernels follow from the framework and the year of its release: $(echo "$kernels" | paste -sd ' ')"
"$topt" plan "$model" --hw h100-80-dgx --batch 64 --gpus 8 --software 98 >year 2>err
[ $? != 0 ] && grep -q software err
check "a year is one: $(cat err)"

holds '.assumed | map(select(.what == "loss kernel")) == [{"what": "loss kernel", "value": "written", "option": "--loss-kernel"}]'
check "the kernel of the loss that was taken is named"
holds '.memory | .allocated_bytes < .reserved_bytes and .reserved_bytes < .process_bytes' &&
    jq -e '.memory.reserved_bytes == .memory_bytes' out >/dev/null
check "memory as PyTorch and nvidia-smi show it: $(jq -c .memory out)"
ask --framework megatron && holds '.assumed | map(select(.what == "loss kernel").value) == ["in-place"]' &&
    ask --framework torchtitan && holds '.assumed | map(select(.what == "loss kernel").value) == ["chunked"]' &&
    ask --framework topt --gpus 4 && holds '.assumed | map(select(.what == "loss kernel")) == []'
check "each framework has its own, and topt run has one alone"
! ask --framework megatron --loss-kernel written && grep -q -- '--loss-kernel written: Megatron-LM .* (it has in-place or fused)' err &&
    [ "$(wc -l <err)" = 1 ]
check "a kernel that the framework lacks is refused, with those that it has"
long() { "$topt" plan "$model" --hw h100-80-dgx --batch 4 --seq 65536 --train lora --precision bf16 --gpus 1 --json "$@" >out 2>err; }
long
holds '(.feasible | not) and (.with | map(select(.ask == "--loss-kernel chunked" and .gpus == 1)) | length == 1)' &&
    long --loss-kernel chunked && holds .feasible
check "where nothing fits, the kernel with which it would is offered"
ask && fewest=$(jq .gpus out) best=$(jq '[.alternatives[].gpus] | max' out)
ask --min-efficiency 0.8 && holds ".gpus == $best and .gpus > $fewest"
check "an efficiency asks for the most GPUs that keep it"
ask --min-efficiency 1 && holds '.alternatives[0].efficiency < 1 and .gpus > .alternatives[0].gpus and
    (.gpus * .time_ns) as $cost | all(.alternatives[]; .gpus * .time_ns >= $cost)'
check "and all of the best speed can be asked for"
ask --counts nodes && holds '.gpus == 8 and .nodes == 1 and (.why | startswith("fits on 1 node")) and ([.alternatives[].gpus % 8] | all(. == 0))'
check "whole nodes alone, where nobody shares one"

for share in 80 80% "80 %"; do ask --min-efficiency "$share" && holds ".gpus == $best" || break; done
check "a share may be written as a percentage"
for share in 1.5 2 101 -1 nan; do
    ask --min-efficiency "$share"
    [ $? = 2 ] || break
done && ! ask --min-efficiency 1.5 && grep -q -- '--min-efficiency: 1.5 .*150 %.*1.5%' err
check "but not what could be either, and both readings are named: $(cat err)"

# One rule for the rows beside the fewest and for the curve, which has its best speed a GPU in the middle and its knee before
# the last number of GPUs.
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --framework megatron --json >whole 2>err && jq 'del(.plan)' whole >out &&
    "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --framework megatron --mode profiling --svg curve.svg --json >curve 2>err &&
    jq -e --slurpfile curve curve '$curve[0] as $c | (.alternatives[] | select(.names | index("knee"))) as $knee |
        $knee.gpus == $c.knee and ([$c.points[].efficiency // 0] | max) == 1 and
        all(.alternatives[]; . as $a | any($c.points[]; .gpus == $a.gpus and .efficiency == $a.efficiency)) and
        .alternatives[0].efficiency < 0.9' out >/dev/null
check "efficiency and knee are the same beside the fewest and in the curve: $(jq -c '[.alternatives[] | [.names, .gpus, .efficiency]]' out)"
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --framework megatron --mode profiling >text 2>err &&
    grep -q "^knee: $(jq .knee curve) GPUs;" text && ! grep -qE ' 1[0-9][1-9]%' text
check "in words, with no efficiency above that of the best: $(tail -1 text)"

ask --framework torchtitan && holds '.job.framework == "torchtitan"' && ask --framework megatron &&
    holds '.uniform.zero <= 1'
check "frameworks are asked for by name, and each has the levels that it has"
jq '.hidden_size = 5120 | .intermediate_size = 27648 | .num_attention_heads = 40 | .num_hidden_layers = 76' "$model" >38b.json
"$topt" plan 38b.json --hw h100-80-dgx --batch 256 --seq 4096 --framework torchtitan --json >whole 2>err && jq 'del(.plan)' whole >out &&
    holds '.gpus == 8 and .uniform.tp > 1 and .uniform.tp <= 8'
check "torchtitan's tensor parallelism is searched inside of a node, which holds what takes FSDP alone two: $(jq -r .strategy out)"
echo '{"model_type": "gpt2", "n_embd": 12288, "n_head": 96, "n_layer": 96, "n_positions": 2048, "vocab_size": 51200}' >175b.json
large="175b.json --hw a100-80-dgx --batch 1536 --seq 2048 --framework megatron --pipeline 1"
# shellcheck disable=SC2086
"$topt" plan $large --json >whole 2>err && jq 'del(.plan)' whole >out && holds '.uniform.tp > 8 and
    (.why | test("across nodes, because nothing else .* fits on any number .*context.*which Megatron-LM supports, was not"))'
check "tensor parallelism across nodes is said to be what is left, and what was not searched: $(jq -r .why out)"
# shellcheck disable=SC2086
"$topt" plan $large --tensor-parallel --json >whole 2>err && jq 'del(.plan)' whole >out && holds '.why | test("across nodes") | not'
check "where it was asked for, that needs no reason"
# Eighty heads for keys too, so that 16 GPUs can share them; 8 of a node do on more GPUs.
jq '.n_embd = 10240 | .n_head = 80 | .n_layer = 70' 175b.json >88b.json
gpt="88b.json --hw a100-80-dgx --batch 1536 --seq 2048 --framework megatron --pipeline 1"
# shellcheck disable=SC2086
"$topt" plan $gpt --json >whole 2>err && jq 'del(.plan)' whole >out && holds '.uniform.tp <= 8' && node=$(jq .gpus out) &&
    "$topt" plan $gpt --tensor-parallel --json >whole 2>err && jq 'del(.plan)' whole >out && holds ".uniform.tp > 8 and .gpus < $node"
check "Megatron-LM's tensor parallelism stays inside a node where that fits, and crosses nodes where it is asked for: $node, $(jq .gpus out)"
ask --gpus 8 --pipeline 2 && holds '.uniform.pp == 2 and .uniform.dp * .uniform.tp == 4'
check "stages that are asked for are there, faster or not: $(jq -r .strategy out)"
! "$topt" plan "$model" --hw a100-80-dgx --batch 64 --pipeline 3 --gpus 8 >out 2>err && grep -q '8 GPUs are not cut into 3 equal pipeline stages' err &&
    ! "$topt" plan "$model" --hw a100-80-dgx --batch 64 --pipeline 2 --max-gpus 1 >out 2>err && grep -q '1 GPU is not cut into 2 equal' err &&
    ! "$topt" plan "$model" --hw a100-80-dgx --batch 64 --pipeline 2 --micro-batches 1 >out 2>err && grep -q 'several micro-batches' err
check "devices that are not cut so: $(cat err)"
# Pipeline stages: where Megatron-LM takes them, the largest models need no tensor parallelism over nodes.
staged="175b.json --hw a100-80-dgx --batch 1536 --seq 2048 --framework megatron"
"$topt" plan $staged --json >whole 2>err && jq 'del(.plan)' whole >out &&
    holds '.uniform.tp <= 8 and .uniform.pp > 1 and .gpus == .uniform.dp * .uniform.tp * .uniform.pp and
    (.stages | length) == .uniform.pp and ([.stages[].memory_bytes] | max) == .memory_bytes and
    ([.uniform.layers[]] | add) == 96 and .idle_ns > 0'
check "pipeline stages of a model that no node holds: $(jq -r .strategy out)"
"$topt" plan $staged --gpus 1024 --pipeline 8 --virtual-stages 3 --json >out 2>err &&
    holds '.uniform.pp == 8 and .uniform.vp == 3 and .uniform.schedule == "interleaved-1f1b"' &&
    jq '.plan' out >staged.json && "$topt" explain staged.json | grep -q '^Pipeline: 8 stages of 3 chunks, schedule interleaved-1f1b' &&
    jq -e '.exact == false and .epsilon == null and .plan.exact == false' out >/dev/null &&
    "$topt" explain staged.json | grep -q '^Search: uniform space, without a proven bound'
check "stages and chunks that are asked for, and explained"
"$topt" explain staged.json --around >out 2>err && grep -A4 '^Other numbers of pipeline stages on 1024 GPUs' out >around && grep -q '1 stage: .* times as long' around &&
    grep -q '4 stages: ' around && grep -q '16 stages: ' around
check "why so many stages: $(tail -n +2 around | tr '\n' ';')"
# Its schedule, as the cost was found by it.
"$topt" simulate staged.json --json --trace trace.json --svg staged.svg >out 2>err &&
    holds '.time_ns == .predicted_ns and (.stages | length) == 8 and .time_ns as $t | [.stages[] | .busy_ns + .bubble_ns == $t] | all' &&
    [ "$(jq '[.stages[].memory_bytes]' out)" = "$(jq '[.predicted.stages[].memory_bytes]' staged.json)" ] && [ "$(grep -c 'class="lane"' staged.svg)" = 9 ]
check "the schedule of stages: their time and memory are the plan's"
jq '[.traceEvents[] | select(.ph == "X")] | group_by(.tid) | map(sort_by(.ts)) | {
    stages: length, whole: [.[] | [range(1; length) as $i | .[$i].ts - (.[$i - 1].ts + .[$i - 1].dur) | fabs < 0.01] | all] | all,
    passes: (map(map(select(.cat == "forward" or .cat == "backward")) | length) | unique),
    bubbles: ([.[][] | select(.cat == "bubble")] | length > 8),
    order: ([.[][] | select(.cat == "forward" or .cat == "backward")] | group_by([.args.chunk, .args.micro_batch]) |
        map(sort_by(.ts) | map(.cat) == ["forward", "backward"]) | all)}' trace.json >out 2>err &&
    holds '.stages == 8 and .whole and .bubbles and .order and (.passes | length) == 1'
check "as a trace: passes and bubbles fill each stage, each forward has its backward: $(jq -c . out)"
"$topt" simulate staged.json >out 2>err && grep -q '^schedule  interleaved-1f1b' out && ! "$topt" simulate staged.json --bucket 1MiB >out 2>err && grep -q 'without pipeline stages' err
check "what has no meaning for stages is refused: $(cat err)"
"$topt" plan "$root/deploy/quickstart/moe.json" --hw a100-80-dgx --framework megatron --batch 32 --seq 64 --gpus 8 --degrees pp=2,ep=2,vp=2 \
    --schedule combined-1f1b -o pairs.json >out 2>err && "$topt" simulate pairs.json --svg pairs.svg >out 2>err &&
    [ "$(grep 'class="[fb]"' pairs.svg | grep -c 'height="17.0"')" -ge 12 ] && ! grep -q 'class="[fb]".* height="34.0"' pairs.svg &&
    grep -q 'forward above and backward below' pairs.svg
check "passes that run as one share a lane"
# Schedules that make gradients of parameters apart are torchtitan's; shards may have replicas.
zero="38b.json --hw h100-80-dgx --batch 256 --seq 4096 --gpus 64"
"$topt" plan $zero --framework torchtitan --pipeline 4 --schedule zbv --json >out 2>err &&
    holds '.uniform.schedule == "zbv" and .uniform.vp == 2 and .uniform.recompute == false and (.strategy | test("schedule zbv"))' &&
    jq '.plan' out >zbv.json && "$topt" explain zbv.json >out 2>err && grep -q '4 stages of 2 chunks, schedule zbv' out &&
    ! "$topt" plan $zero --framework megatron --schedule zbv >out 2>err && grep -q 'megatron has no zbv; it has 1f1b, interleaved-1f1b, combined-1f1b or combined-dualpipev' err &&
    ! "$topt" plan $zero --framework torchtitan --schedule zbv --virtual-stages 3 >out 2>err && grep -q 'zbv has 2 chunks a stage' err
check "a schedule that is asked for: $(cat err)"
# The first layers of each chunk alone are recomputed, as many as are asked for.
for layers in full block:12 block:3; do
    "$topt" plan $zero --framework megatron --degrees pp=4,vp=1,tp=4,mbs=1,recompute=$layers --json 2>err | jq -c '[.memory_bytes, .compute_ns, .plan.uniform.recompute_layers]'
done >out
jq -se '.[0][0] < .[1][0] and .[1][0] < .[2][0] and .[0][1] > .[1][1] and .[1][1] > .[2][1] and map(.[2]) == [null, 12, 3]' out >kept &&
    "$topt" plan $zero --framework megatron --degrees pp=4,vp=1,tp=4,mbs=1,recompute=block:3 --memory 30GiB >few 2>err; grep -q 'need at least 3[0-9.]* GiB' few
check "the first layers of chunks alone, as asked: $(tr '\n' ' ' <out)"
refused 2 "recompute=block:2 needs pipeline stages (pp of 2 at least) of megatron or primus; else take recompute=full" "$topt" plan $zero --framework torchtitan --degrees recompute=block:2
# Primus has two of them, beside whose passes it reduces nothing and holds operands of products alone.
"$topt" plan $zero --framework primus --pipeline 4 --schedule zb-h1 --degrees tp=4,mbs=1 -o zb.json >out 2>err &&
    jq -e '.settings.overlap == null and .settings.operands_wait and .uniform.schedule == "zb-h1"' zb.json >out &&
    "$topt" simulate zb.json --json >out 2>err && jq 'del(.settings.operands_wait)' zb.json >kept.json && "$topt" simulate kept.json --json >kept 2>err &&
    [ "$(jq '.stages[3].memory_bytes' out)" -lt "$(jq '.stages[3].memory_bytes' kept)" ] && [ "$(jq .time_ns out)" -eq "$(jq .time_ns kept)" ] &&
    "$topt" plan $zero --framework primus --pipeline 4 --schedule 1f1b --degrees tp=4,mbs=1 --json >out 2>err && holds '.plan.settings.overlap == "ddp"' &&
    ! "$topt" plan $zero --framework primus --schedule dualpipev >out 2>err && grep -q 'primus has no dualpipev; it has 1f1b, interleaved-1f1b, zb-h1, zbv or combined-1f1b' err
check "what Primus does beside schedules of its own: $(cat err)"
"$topt" plan $zero --framework pytorch --json >all 2>err && "$topt" plan $zero --framework pytorch --shard-ranks 16 --json >out 2>err &&
    holds '.uniform.shard == 16 and .uniform.dp > 16 and (.strategy | test("over 16 GPUs x . replicas"))' &&
    [ "$(jq .time_ns out)" -gt "$(jq .time_ns all)" ]
check "shards with replicas that are asked for: $(jq -r .strategy out)"
! "$topt" plan $staged --pipeline 97 >out 2>err && grep -q 'pipeline' err &&
    ! "$topt" plan "$model" --hw a100-80-dgx --framework topt --pipeline 2 >out 2>err && grep -q 'topt has no pipeline stages' err
check "stages that there are not: $(cat err)"
# Experts: shared out where the framework does it.
cat >moe.json <<'EOF'
{"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
 "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
 "max_position_embeddings": 40960}
EOF
moe="moe.json --hw h100-80-dgx --batch 512 --seq 4096 --gpus 16 --pipeline 1"
"$topt" plan $moe --framework megatron --json >out 2>err && holds '.uniform.ep > 1 and (.strategy | test("expert parallel over"))' &&
    searched=$(jq .time_ns out) && "$topt" plan $moe --framework megatron --expert 8 --json >out 2>err &&
    holds ".uniform.ep == 8 and .time_ns >= $searched" && jq .plan out >moe-plan.json && "$topt" explain moe-plan.json >out 2>err &&
    "$topt" launch moe-plan.json >out 2>err && grep -q -e '--expert-model-parallel-size 8' out &&
    "$topt" plan $moe --framework torchtitan --expert 8 --json >out 2>err && holds '.uniform.ep == 8 and .uniform.etp == 1'
[ "$(jq .plan.settings.dispatch out)" = null ] && "$topt" plan $moe --framework megatron --expert 16 --json >out 2>err && all=$(jq .time_ns out) &&
    "$topt" plan $moe --framework megatron --expert 16 --dispatch deepep --json >out 2>err && holds ".time_ns < $all and .plan.settings.dispatch == \"deepep\"" &&
    jq .plan out >moe-plan.json && "$topt" launch moe-plan.json >launched 2>err && grep -q -e '--moe-flex-dispatcher-backend deepep' launched
check "tokens that go once to each node take less: $(jq .time_ns out)"
"$topt" plan $moe --framework torchtitan --expert 8 --json >out 2>err
check "experts are shared out over $(jq -r .uniform.ep out) GPUs: $(jq -r .strategy out)"
! "$topt" plan $moe --framework megatron --expert 48 >out 2>err && grep -q 'does not divide the 128 experts' err &&
    ! "$topt" plan "$model" --hw h100-80-dgx --framework megatron --expert 8 >out 2>err && grep -q 'the model has no experts' err &&
    ! "$topt" plan $moe --framework deepspeed --expert 8 >out 2>err && grep -q 'no expert parallelism of deepspeed' err &&
    ! "$topt" plan $moe --framework torchtitan --expert-tensor 2 >out 2>err && grep -q 'torchtitan does not split experts' err
check "experts that are not shared out so: $(cat err)"
# shellcheck disable=SC2086
! "$topt" plan $moe --framework megatron --degrees ep=8,etp=4,tp=2 >out 2>err && grep -q 'etp=4 is more than tp=2' err &&
    ! "$topt" plan moe.json --hw h100-80-dgx --batch 512 --seq 4096 --gpus 16 --framework megatron --degrees pp=4,ep=8 >out 2>err &&
    grep -q 'ep=8 x etp=1 does not divide the 4 GPUs of a pipeline stage' err
check "degrees of experts that there are not: $(cat err)"
# Modules that predict further tokens, which the last stage has.
"$topt" plan "$model" --framework megatron --hw h100-80-dgx --gpus 8 --batch 64 --degrees pp=4,recompute=0 --mtp 1 --json >out 2>err &&
    jq .plan out >mtp-plan.json && "$topt" launch mtp-plan.json >launched 2>err && grep -q -e "--mtp-num-layers 1" launched &&
    grep -q "mL'" launched && holds '.plan.model.plan_only | contains("multi-token")'
check "a further token is predicted beside the loss: $(grep -e layout launched)"
refused 2 "torchtitan has no modules that predict further tokens; megatron does" "$topt" plan "$model" --framework torchtitan --hw h100-80-dgx --gpus 8 --mtp 1
check "by no framework that has none"
# Degrees that are fixed.
"$topt" plan $staged --degrees tp=8,pp=16,vp=3,cp=1,ep=1,dp=8,mbs=1,zero=1,recompute=0 --json >whole 2>err && jq 'del(.plan)' whole >out &&
    holds '.gpus == 1024 and .uniform.tp == 8 and .uniform.pp == 16 and .uniform.vp == 3 and .uniform.dp == 8 and
    .uniform.micro_batch == 1 and .uniform.zero == 1 and .uniform.recompute == false and .micro_batches == 192'
check "degrees that are all fixed, on as many GPUs: $(jq -r .strategy out)"
t=$(jq .time_ns out)
"$topt" plan $staged --degrees tp=8,pp=16,vp=3,cp=1,ep=1,dp=8,mbs=1,zero=1,recompute=0,even=1 --json >whole 2>err && jq 'del(.plan)' whole >out &&
    holds ".uniform.layers == [range(48) | 2] and .time_ns >= $t"
check "chunks of as many layers each, which are no faster than those that are cut by time"
for what in 0 mlp 1; do
    "$topt" plan $staged --degrees tp=8,pp=16,vp=3,dp=8,mbs=1,zero=1,recompute=$what --json 2>err | jq -c '[.time_ns, .memory_bytes]'
done >levels
jq -se '.[0][0] < .[1][0] and .[1][0] < .[2][0] and .[0][1] > .[1][1] and .[1][1] > .[2][1]' levels >/dev/null
check "modules that are recomputed lie between nothing and whole layers: $(tr '\n' ' ' <levels)"
"$topt" plan $staged --json >whole 2>err && jq .plan whole >first-plan.json && "$topt" launch first-plan.json >launched 2>err &&
    n=$(jq .uniform.recompute_layers first-plan.json) && [ "$n" -ge 1 ] && grep -q -e "--recompute-method block" launched && grep -q -e "--recompute-num-layers $n " launched
check "the first layers of each stage that are recomputed are told to Megatron-LM: $(jq -r .strategy whole)"
"$topt" plan $staged --gpus 1024 --degrees tp=8,mbs=2 --json >whole 2>err && jq 'del(.plan)' whole >out &&
    holds '.uniform.tp == 8 and .uniform.micro_batch == 2 and .uniform.dp * .uniform.pp == 128' && t=$(jq .time_ns out) &&
    "$topt" plan $staged --gpus 1024 --json >whole 2>err && jq 'del(.plan)' whole >out && holds ".time_ns <= $t"
check "what they leave open is searched, and no better than all"
not_so() {
    # shellcheck disable=SC2086
    ! "$topt" plan $staged $1 >out 2>err && grep -q "$2" err && [ "$(wc -l <err)" = 1 ]
    check "$1: $(cat err)"
}
whole=$staged && staged="175b.json --hw a100-80-dgx --batch 1536 --seq 2048 --framework torchtitan"
not_so "--pipeline 4 --schedule zbv --degrees recompute=1" "schedule zbv makes gradients of parameters apart"
staged=$whole
not_so "--degrees recompute=moe" "the model has no such part"
not_so "--degrees recompute=op" "Megatron-LM recomputes no such part"
not_so "--degrees recompute=full+mlp" "full and op stand alone"
not_so "--degrees tp=8,xp=2" "'xp=2' is not one of tp=N, pp=N"
not_so "--degrees tp=8,tp=4" "tp is given twice"
not_so "--degrees tp" "tp has no value"
not_so "--gpus 1024 --degrees tp=8,pp=8 --pipeline 4" "pp=8 contradicts --pipeline 4"
not_so "--gpus 512 --degrees tp=8,pp=8,dp=16" "tp=8 x pp=8 x dp=16 is 1024 GPUs, not 512"
not_so "--gpus 1024 --degrees tp=24" "degrees: tp=24 does not divide 1024 GPUs; ask for another number of GPUs"
not_so "--gpus 1024 --degrees tp=8,pp=3,cp=1" "tp=8 x pp=3 = 24 does not divide 1024 GPUs"
not_so "--gpus 768 --degrees tp=64" "tp=64 does not divide the 96 heads of attention"
not_so "--gpus 896 --degrees tp=8,pp=1,cp=1,mbs=1" "896 GPUs / (tp=8) = 112 data parallel ranks with mbs=1 do not divide the batch of 1536; take a --batch that is a multiple of 112"
not_so "--gpus 1024 --batch 32 --degrees tp=8,pp=4,cp=1,mbs=1" "the batch of 32 is one micro-batch of mbs=1 for each of 32 data parallel ranks, and pipeline stages need several"
not_so "--gpus 1024 --batch 192 --degrees tp=8,pp=4,vp=2,cp=1,mbs=1" "no schedule takes 6 micro-batches a step with pp=4 and vp=2"
not_so "--degrees pp=5,even=1" "even=1 (equally many layers in each chunk, as in a script that lays out no stages): pp=5 is 5 chunks, which do not divide the model's 96 layers; take others"
not_so "--framework deepspeed --pipeline 5" "pp=5: stages of DeepSpeed (ZeRO) have equally many layers, and 5 does not divide the model's 96"
not_so "--gpus 1024 --degrees dp=8,mbs=5" "the batch of 1536 is no multiple of dp x mbs, 40"
not_so "--gpus 1024 --degrees dp=16,mbs=1 --micro-batches 4" "are 96 micro-batches of a batch of 1536, not 4"
not_so "--gpus 1024 --degrees zero=3" "Megatron-LM has no ZeRO-3"
not_so "--degrees pp=1,vp=2" "chunks are of pipeline stages"
not_so "--pipeline 1 --virtual-stages 2" "chunks are of pipeline stages; ask for --pipeline 2"
not_so "--pipeline 48 --virtual-stages 4" "vp=4 (--virtual-stages): 48 stages of 4 chunks are 192 chunks, more than the model's 96 layers"
not_so "--framework deepspeed --degrees tp=2,pp=4" "DeepSpeed (ZeRO) splits no layer of pipeline stages; leave out pp (--pipeline), or tp"
not_so "--framework deepspeed --tensor-parallel --pipeline 4" "DeepSpeed (ZeRO) splits no layer of pipeline stages; leave out --pipeline, or --tensor-parallel"
not_so "--gpus 96 --degrees tp=3" "tp=3 neither divides a node's 8 GPUs nor is it a multiple of them"
not_so "--degrees tp=64,pp=64,dp=64" "need 262144 GPUs, and there are 1024"
# Positions of long sequences.
long="70b.json --hw h100-80-dgx --batch 16 --seq 65536 --gpus 64"
jq '.max_position_embeddings = 131072 | .hidden_size = 8192 | .intermediate_size = 28672 | .num_attention_heads = 64 | .num_key_value_heads = 8 |
    .num_hidden_layers = 80' "$model" >70b.json
"$topt" plan $long --framework megatron --context 2 --json >out 2>err && holds '.uniform.cp == 2 and .uniform.cp_comm == "p2p" and
    .uniform.dp * .uniform.cp * .uniform.tp * (.uniform.pp // 1) == 64 and (.strategy | test("context parallel over 2"))' && jq .plan out >long-plan.json &&
    "$topt" launch long-plan.json >launched 2>err && grep -q -e '--context-parallel-size 2' launched && grep -q -e '--cp-comm-type p2p' launched &&
    "$topt" plan $long --framework megatron --degrees cp=2 --json >out 2>err && holds '.uniform.cp == 2 and .uniform.cp_comm == "p2p"' &&
    "$topt" plan $long --framework torchtitan --context 2 >out 2>err && grep -q 'context parallel over 2' out && ! grep -q '^not tried' out
check "positions are shared out where that is asked for: $(grep -o 'context parallel over 2' out)"
"$topt" plan $long --framework megatron --context 1 --json >out 2>err && holds '.uniform.cp == null and (.job.not_searched | test("--context N"))' &&
    one=$(jq .time_ns out) && "$topt" plan $long --framework megatron --json >out 2>err &&
    holds ".uniform.cp > 1 and .time_ns < $one and .job.not_searched == null" && jq .plan out >long-plan.json &&
    "$topt" evaluate 70b.json --hw h100-80-dgx --batch 16 --seq 65536 --plan long-plan.json --json >whole 2>err &&
    [ "$(jq .time_ns whole)" = "$(jq .time_ns out)" ] &&
    "$topt" plan $long --framework megatron --seq 8191 --json >out 2>err && holds '.uniform.cp == null and (.job.not_searched | test("--context N"))'
check "and of long samples unasked where that is faster: $(jq -r .strategy out)"
! "$topt" plan $long --framework pytorch --context 2 >out 2>err && grep -q 'no context parallelism of pytorch' err &&
    ! "$topt" plan $long --framework megatron --context 3 >out 2>err && grep -q 'is not cut into 6 equal parts' err
check "positions that are not shared out so: $(cat err)"
lacks='not tried context parallelism and pipeline stages (--pipeline N), which PyTorch'
for more in "" "--gpus 8" "--batch 64,128" "--batch auto" "--mode profiling --max-gpus 16"; do
    # shellcheck disable=SC2086
    "$topt" plan "$model" --hw a100-80-dgx --seq 4096 $more >out 2>err && grep -q "^$lacks" out || break
done && "$topt" frontier "$model" --hw a100-80-dgx --seq 4096 --batch 64 --gpus 8 >out 2>err && grep -q "^$lacks" out &&
    "$topt" plan "$model" --hw a100-80-dgx --seq 4096 --batch 64 --lines table >out 2>err &&
    grep -q "^TOPT_SHOWN=$lacks" out && grep -q '^TOPT_NOT_SEARCHED=context' out
check "what the framework has and was not searched belongs to every answer"
"$topt" plan "$model" --hw a100-80-dgx --batch 1 --seq 8192 --json >whole 2>err && jq 'del(.plan)' whole >out && holds '.uniform.tp > 1 and .needs'
check "tensor parallelism is a last resort, and what a script needs for it is said"
ask --tensor-parallel && holds '.feasible'
check "it can be asked for"

[ "$("$topt" plan "$model" --hw a100-80-dgx --batch 64 --gpus 24 2>err | grep -c 'use --batch 48 or 72')" -eq 1 ]
check "a number of GPUs that can't share the batch names the batches that it can"
ask --mode profiling --max-gpus 64 && holds '[.points[] | select(.gpus == 40 or .gpus == 48 or .gpus == 56)]
    | length == 3 and all(.feasible == false and (.batches | length) == 2)'
check "a curve hides none of them"

"$topt" plan "$model" --hw a100-80-dgx --batch 32,64 --seq 4096 --json >out 2>err &&
    holds '[.batches[].batch] == [32, 64] and all(.batches[]; .tokens_per_second > 0)'
check "batches are compared"
"$topt" plan "$model" --hw a100-80-dgx --batch auto --seq 4096 --gpus 8 --json >whole 2>err &&
    jq 'del(.plan)' whole >out && holds '.gpus == 8 and all(.tried[]; .feasible) and
        ([.tried[].samples_per_second] | max) as $m |
        .job.batch == ([.tried[] | select(.samples_per_second >= 0.97 * $m) | .batch] | min)'
check "the batch that fills a GPU is the smallest that keeps the speed: $(jq -c '[.job.batch, [.tried[].batch]]' out)"
"$topt" plan "$model" --hw a100-80-dgx --batch auto --seq 4096 --json >whole 2>err && jq 'del(.plan)' whole >out
"$topt" plan "$model" --hw a100-80-dgx --batch 1024 --seq 4096 --gpus "$(jq .gpus out)" --json 2>err | jq 'del(.plan)' >far
jq -e --slurpfile far far '.micro_batches > 1 and .job.batch < 1024 and
    .job.batch / .time_ns >= 0.96 * 1024 / $far[0].time_ns and
    ([.tried[] | .samples_per_second / .gpus] | max) as $m |
    .gpus == ([.tried[] | select(.samples_per_second / .gpus >= 0.97 * $m) | .gpus] | min)' out >/dev/null
check "and of GPUs the fewest that keep it: $(jq -r .why out)"
"$topt" plan "$model" --hw a100-80-dgx --batch auto --seq 4096 --min-efficiency 80 >out 2>err
[ $? = 2 ] && grep -q 'or takes --gpus' err
check "an efficiency is none of its business: $(cat err)"

jq '.vocab_size = 50257' "$model" >odd.json && jq '.vocab_size = 50304' "$model" >even.json
for vocab in odd even; do
    "$topt" plan $vocab.json --hw a100-80-dgx --batch 64 --seq 2048 --gpus 8 --framework megatron --json 2>err |
        jq '.memory_parts.buffers' >$vocab.bytes
done
[ "$(cat odd.bytes)" -gt "$(cat even.bytes)" ]
check "Megatron-LM pads a vocabulary that is no multiple of 128, and that is charged"

# OLMo-3-32B, whose layers attend to a window of 4096 positions or to all: up to there they are alike.
cat >olmo.json <<END
{"model_type":"olmo3","hidden_size":5120,"intermediate_size":27648,"num_hidden_layers":64,"num_attention_heads":40,
 "num_key_value_heads":8,"vocab_size":100278,"max_position_embeddings":65536,"sliding_window":4096}
END
for framework in pytorch torchtitan deepspeed; do # Megatron-LM has no norm over all heads of queries
    for seq in 4096 4160; do
        "$topt" plan olmo.json --hw a100-80-dgx --batch 64 --seq $seq --gpus 64 --framework $framework --json 2>err
    done | jq -es '(.[1].memory_bytes / .[0].memory_bytes) as $more | $more > 0.99 and $more < 1.02' >/dev/null
    check "$framework: layers that differ by a window take the memory of layers that are alike"
done
for seq in 4096 4160; do
    "$topt" plan olmo.json --hw a100-80-dgx --batch 64 --seq $seq --json 2>err
done | jq -es 'map(.gpus) == [8, 8]' >/dev/null
check "and fit on as many GPUs"

refused 2 "more than --max-gpus 4" "$topt" plan "$model" --hw a100-80-dgx --gpus 8 --max-gpus 4
check "more GPUs than at most are no question"
refused 2 "more than the 80.00 GiB" "$topt" plan "$model" --hw a100-80-dgx --memory 100GiB
check "no more memory than a device has"
refused 2 "did you mean pytorch" "$topt" plan "$model" --hw a100-80-dgx --framework pytroch
check "a slip in a name is understood"

# A number of GPUs that does not do: the smallest that does, and what makes it do; the verdicts; the moment of the peak.
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 1 --json >out 2>err
[ $? = 3 ] && holds '.verdict == "does not fit" and [.with[] | [.ask, .gpus]] == [["--gpus 2", 2], ["--train lora", 1], ["--offload parameters", 1]]
    and (.why | test("1 GPU needs at least 142.2 GiB, 87 % more$"))'
check "one GPU is refused with what would do"
ask && holds '.why | test("1 would need at least 142.2 GiB$")'
check "the same job is told with the same memory where it is not asked for"
holds '[.alternatives[] | [.names[0], .verdict]] | index([["fewest", "tight"]]) and index([["fastest", "fits"]])' &&
    holds '[.alternatives[] | select(.verdict == "tight") | .band.memory.high_bytes > 76 * 1024 * 1024 * 1024 and
        .memory_bytes <= 76 * 1024 * 1024 * 1024] | all' && holds '[.alternatives[].names[]] | index("knee") == null'
check "memory within the limit whose band is not is tight, and the end of the range is no knee"
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 >text 2>err && grep -q '^fewest .* GiB, tight ' text &&
    grep -q '^memory .* at the peak, of 76.00 GiB usable: tight$' text && grep -q 'logits and their gradient (loss)' text
check "in words"
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --mode profiling --svg end.svg >text 2>err &&
    ! grep -qi knee end.svg text && grep -q 'Knee: beyond it' curve.svg
check "nor is it drawn or told, and where there is one the picture says what it is"
"$topt" plan "$model" --hw a100-80-dgx --batch 2 --seq 512 --gpus 2 >text 2>err && ! grep -q 'at the loss' text
check "a loss that is small is not remarked on"

# Each thing by its name: what was assumed of LoRA, files to store, FLOPs, types that a device does not have.
ask --train lora --gpus 1 && holds '[.assumed[] | select(.what == "LoRA rank").value] == [16]' &&
    ask --train lora:8 --gpus 1 && holds '[.assumed[].what] | index("LoRA rank") == null'
check "the rank of LoRA is assumed where it was not said"
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 8 -o two.json >text 2>err && "$topt" launch two.json --for accelerate >text 2>err &&
    sed -n 2p text | grep -q "^# 2 files for one folder: launch.sh .*, accelerate.yaml .* '# ---- accelerate.yaml'" && head -1 text | grep -q '^#!' &&
    ! "$topt" launch two.json --sbatch | grep -q 'for one folder'
check "two files in one text say how to store them: $(sed -n 2p text)"
"$topt" explain two.json >text 2>err && head -1 text | grep -q '8 GPUs (1 node x 8 GPUs) of a100-80-dgx (A100-SXM4-80GB), batch 64, sequence length 4,096$'
check "topt explain begins with GPUs, batch and sequence length"
"$topt" inspect "$model" --json >out 2>err && holds '.model_flops_per_sample > .flops_per_sample' &&
    "$topt" inspect "$model" >text 2>err && grep -q 'GiB in bf16' text && grep -q 'FLOPs .*as MFU counts them' text
check "FLOPs say what they count, activations their type"
"$topt" hw list >text 2>err && grep -qE 't4-g4dn .* f32 f64 f16 +bf16 +T4-16GB ' text
check "a type that a device does not have is no missing figure"

# What README shows. shown COMMAND: its lines there, up to the next text
shown() {
    sed -n "/^    \$ $1/,/^[^ ]/{/^    \$ /d; /^[^ ]/d; s/^    //; p}" "$root/README.md" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}
cp "$model" llama-3.1-8b.json
"$topt" plan llama-3.1-8b.json --hw a100-80-dgx --batch 64 --seq 4096 >out 2>err && shown "topt plan llama-3.1-8b.json --hw a100-80-dgx --batch" >shown &&
    sed -i 's/p-[0-9a-f]\{32\}/p-/' shown out && diff shown out >differ
check "README's first answer is the one that is given: $(cat differ)"
sed -n '/^In `ours.json`:$/,/^    \$ /{/^    [{ ]/p}' "$root/README.md" >ours.json
"$topt" plan llama-3.1-8b.json --hw ours.json --batch 64 --seq 4096 --gpus 8 >out 2>err && [ "$(wc -l <ours.json)" -le 4 ] &&
    shown "topt plan llama-3.1-8b.json --hw ours.json" >shown && sed -i 's/p-[0-9a-f]\{32\}/p-/' shown out && diff shown out >differ
check "and that for a cluster of one's own, by the lines that it shows: $(cat err differ)"
"$topt" plan llama-3.1-8b.json --hw a100-80-dgx,h100-80-dgx,mi300x --batch 1024 --seq 4096 --gpus 64 --tokens 1T --price 1.9,3.2,2.6 >out 2>err &&
    shown "topt plan llama-3.1-8b.json --hw a100-80-dgx,h100" >shown && diff shown out >differ
check "and kinds of hardware side by side: $(cat err differ)"
hint=$("$topt" plan llama-3.1-8b.json --hw a100-80-dgx --batch 64 --seq 4096 --lines plan | sed -n 's/^TOPT_HINT=//p')
[ -n "$hint" ] && shown "sbatch --topt-mode" | grep -qF "sbatch: topt: $(echo "$hint" | sed 's/--min/--topt-min/')"
check "and what sbatch says beside it: $hint"
"$topt" plan llama-3.1-8b.json --hw a100-80-dgx --batch 256 --seq 4096 --counts pow2 --max-gpus 256 --mode profiling 2>err |
    sed 's/[^ -~]//g; s/  */ /g' >out
shown "topt client curve" | sed '/^  search/d; s/[^ -~]//g; s/  */ /g' | diff - out >differ
check "and the curve: $(cat differ)"

ask --gpus 8 && "$topt" simulate plan.json >out 2>err && "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 8 >text 2>err
said=$(sed -n 's/^time .*: \(.* compute\), .*/\1/p' text)
[ -n "$said" ] && grep -q "^[^ ]* s per step: $said, " out
check "a simulated step computes as long as the plan says: $said"

small="$model --hw a100-80-dgx --batch 8 --seq 4096 --gpus 8 --space canonical"
# shellcheck disable=SC2086
"$topt" compare $small --json >compare 2>err && like=$(jq -r '.question | match("topt plan (--framework [^,]*), ").captures[0].string' compare) &&
    "$topt" plan $small $like --json >whole 2>err &&
    jq -e --slurpfile plan whole '$plan[0] as $p | (.job | del(.mode)) == ($p.job | del(.not_searched, .mode)) and
        (.systems[] | select(.algorithm == "ft") | .time_ns == $p.time_ns and .memory_bytes == $p.memory_bytes)' compare >/dev/null
check "compare says which question of topt plan its own is: $like"
# shellcheck disable=SC2086
"$topt" compare $small --framework topt >out 2>err && head -2 out | grep -q '8 x 4,096 tokens per step, bf16-mixed, for topt run' &&
    grep -q '^question  the same as topt plan --framework topt --factors zero, and all else as here$' out
check "its head is the one of topt plan, with the question that is the same"

ask --gpus 8 && "$topt" explain plan.json --around >words 2>err &&
    grep -q '^  4 GPUs: .* fits too, and takes .* times as long' words && grep -q '^  16 GPUs: ' words && ! grep -q ' 7 GPUs' words
check "what fewer and more GPUs would do is asked of numbers that people book"
[ "$(sed -n '/^Largest doubts/,/^$/p' words | grep -cE '^ +[0-9]+ %  .*\(-[0-9]+ to \+[0-9]+ %\): topt profile')" = 3 ] &&
    sed -n '/^Largest doubts/,/^$/p' words | grep -q 'linear kernels, by '
check "the three largest doubts are named, with the measurement that narrows each"
grep -q "Precision bf16-mixed: computes in bf16" words && grep -q "Framework: PyTorch" words
check "a plan says for whom it is, and what its numbers are kept in"
# shellcheck disable=SC2086
"$topt" plan $model --hw a100-80-dgx --batch 64 --seq 4096 --gpus 8 --json >answer.json 2>err && "$topt" launch answer.json >out 2>err &&
    grep -q torchrun out && "$topt" simulate answer.json >out 2>err && "$topt" explain answer.json >out 2>err
check "an answer is launched, simulated and explained by the plan in it"
for command in launch simulate explain; do
    refused 1 'p-00000000000000000000000000000000 is not carried by this job; write it with topt client get-plan' \
        "$topt" $command p-00000000000000000000000000000000
    check "$command of an id outside of its job says how to get the plan"
done
cat >slow.json <<'EOT'
{"format": "topt-hw/1", "name": "slow", "like": "a100-80-dgx", "nodes": 2, "gpus_per_node": 8,
 "links": [{"level": "cluster", "bytes_per_second": 1e8, "latency_ns": 5000, "source": "a test"}]}
EOT
says='most of the step is communication: the plan fits, and wastes its GPUs'
"$topt" plan "$model" --hw slow.json --batch 64 --seq 4096 --gpus 16 >out 2>err && grep -q "$says" out &&
    "$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 16 >out 2>err && ! grep -q "$says" out
check "a plan that mostly waits for the network says so"

# A whole training: steps are samples over the batch, rounded up.
totals='(.training_hours / (.time_ns / 3600e9 * $steps) - 1 | fabs) < 1e-9 and (.training_gpu_hours / (.training_hours * .gpus) - 1 | fabs) < 1e-9 and
    (.training_cost / (.training_gpu_hours * 2.5) - 1 | fabs) < 1e-9'
ask --tokens 1T --price 2.5 && holds ".job.training == {tokens: 1000000000000, samples: 244140625.0, price: 2.5} and
    (3814698 as \$steps | all(., .alternatives[]; $totals))"
check "days, GPU-hours and cost of 1T tokens, of the answer and of each row"
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --tokens 1T --price 2.5 >text 2>err && grep -q ' MFU     days  GPU-hours        cost ' text &&
    grep -qE '^training  1T tokens: [0-9,]+ days, [0-9,]+ GPU-hours, cost [0-9,]+ at 2.5 a GPU-hour$' text
check "and in words: $(grep ^training text)"
"$topt" plan paper:vgg16 --hw a100-80-dgx --batch 256 --gpus 8 --samples 100M >text 2>err && grep -qE '^training  100M images: [0-9.]+ hours, [0-9.]+ GPU-hours$' text
check "of images, in hours: $(grep ^training text)"
"$topt" frontier "$model" --hw a100-80-dgx --batch 64 --seq 4096 --gpus 8 --tokens 1T --price 2.5 --json >out 2>err &&
    holds "3814698 as \$steps | .gpus as \$n | all(.points[]; .gpus = \$n | $totals)"
check "a frontier's points have them"
"$topt" plan "$model" --hw a100-80-dgx --batch 64 --seq 4096 --tokens 1T --price 2.5 --mode profiling --json >out 2>err &&
    holds "3814698 as \$steps | [.points[] | select(.feasible)] | length > 3 and all(.[]; $totals)"
check "and a curve's"

"$topt" plan "$model" --hw a100-80-dgx --batch 64,1024 --seq 4096 --gpus 8 --tokens 1T >text 2>err && grep -qE '^64  +8 \(1 node\) ' text && grep -qE '^1,024  +8 \(1 node\) ' text
check "rows of batches say which they are of: $(grep -c '(1 node)' text)"

# Several kinds of hardware.
"$topt" plan "$model" --hw a100-80-dgx,h100-80-dgx --batch 64 --seq 4096 --tokens 1T --price 1.9,3.2 --json >out 2>err && holds '
    ([.hardware[].hw] | unique) == ["a100-80-dgx", "h100-80-dgx"] and (.hardware | map(.training_cost) | min) == .cheapest.training_cost and
    (.hardware | map(.training_hours) | min) == .soonest.training_hours and
    all(.hardware[]; (.training_cost / .training_gpu_hours - ({"a100-80-dgx": 1.9, "h100-80-dgx": 3.2}[.hw]) | fabs) < 1e-9)'
check "several --hw side by side, each with its price: $(jq -c '[.cheapest, .soonest] | map([.hw, .gpus])' out)"
jq -c '[.hardware[] | select(.hw == "h100-80-dgx") | [.gpus, .time_ns, .strategy]]' out >several
ask --hw h100-80-dgx && jq -c '[.alternatives[] | [.gpus, .time_ns, .strategy]]' out | diff - several >differ
check "with the rows that each has by itself: $(cat differ)"
"$topt" plan "$model" --hw a100-80-dgx,h100-80-dgx --batch 64 --seq 4096 --gpus 8 >text 2>err && [ "$(grep -c '^[ah]100-80-dgx  *8 (1 node)' text)" = 2 ] &&
    grep -q '^best      fewest GPU-hours and soonest: h100-80-dgx on 8 GPUs (' text
check "one row each with --gpus, and one line of the best: $(grep ^best text)"
"$topt" plan "$model" --hw v100-dgx1-2x8,a100-80-dgx --batch 64 --seq 4096 --gpus 16 --json >out 2>err
holds '[.hardware[] | [.hw, .feasible]] == [["v100-dgx1-2x8", false], ["a100-80-dgx", true]] and (.hardware[0].why | length) > 0 and .soonest.hw == "a100-80-dgx"'
check "a kind that does not hold the job is a row with its reason"
if ! grep -q '__[at]san_init' "$(dirname "$topt")/../libexec/topt/topt-solver"; then
    ask && cp out before && (ulimit -v 400000 && ask) && cmp -s before out
    check "less address space than the heap would have (400 MB) makes no difference"
fi
finish
