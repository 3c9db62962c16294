#!/bin/sh
# devices.sh ROOT TOPT - the order of the shipped clusters in default questions, as anybody who trained on them would
# expect it: each line of a chain takes longer than the one before it.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
llama=$root/deploy/quickstart/llama-3.1-8b.json small=$root/deploy/quickstart/gpt-small.json

# Nanoseconds of a step on a cluster; nothing where there is no plan.
step() # HW MODEL OPTIONS...
{
    hw=$1 model=$2
    shift 2
    "$topt" plan "$model" --hw "$hw" --batch 64 "$@" --json 2>err | awk '/^ "time_ns"/ { gsub(/[^0-9]/, "", $2); print $2; exit }'
}

# Does each take longer than the one before?
rises() # OPTIONS -- HW...
{
    options='' last=0
    while [ "$1" != -- ]; do options="$options $1" && shift; done
    shift
    for hw in "$@"; do
        # shellcheck disable=SC2086 # options are words
        now=$(step "$hw" $options)
        [ -n "$now" ] && [ "$now" -gt "$last" ] || { echo "# $hw: '$now' ns after $last ns: $(cat err)"; return 1; }
        last=$now
    done
}

# Is the step of the second from LOW to HIGH tenths of the first's?
ratio() # LOW HIGH FASTER SLOWER
{
    a=$(step "$3" "$llama" --seq 4096 --gpus 8) b=$(step "$4" "$llama" --seq 4096 --gpus 8)
    [ $((10 * b)) -ge $(($1 * a)) ] && [ $((10 * b)) -le $(($2 * a)) ] || { echo "# $3 $a ns, $4 $b ns"; return 1; }
}

rises "$llama" --seq 4096 --gpus 8 -- gb300-nvl72 gb200-nvl72 b200-hgx h200-dgx h100-80-dgx h100-94-nvl h100-80-pcie a100-80-dgx \
    a100-80-pcie h20-96-hgx a6000-1x8
check "an 8B model on 8 GPUs: from GB300 to A6000"
rises "$llama" --seq 4096 --gpus 8 -- b300-hgx b200-hgx mi325x mi300x a100-80-dgx rtx6000-ada-1x8 a6000-1x8
check "and AMD's among them"
rises "$llama" --seq 4096 --gpus 8 -- h100-80-dgx h800-80-hgx a100-80-dgx l40s-1x8 a6000-1x8
check "less NVLink, and none"
rises "$llama" --seq 4096 --gpus 64 -- gb300-nvl72 gb200-nvl72 b200-hgx h100-80-dgx h800-80-hgx a100-80-dgx h20-96-hgx
check "64 GPUs: one rack, and 8 nodes"
rises "$llama" --seq 4096 --gpus 32 -- b200-hgx b200-p6 h100-80-dgx h100-80-a3mega a100-80-dgx a100-80-p4de
check "a slower network is never faster"
rises "$llama" --seq 4096 --gpus 8 --train lora -- rtx5090-1x8 l40s-1x8 rtx4090-p2p-1x8 rtx4090-1x8 a10g-g5 l4-1x8
check "cards of 24 to 48 GB, which hold it with LoRA"
rises "$small" --gpus 4 --precision f32 -- h100-80-dgx v100-dgx1-2x8 v100-pcie-1x8 t4-g4dn
check "f32 on those without bf16"
echo '{"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": true}' >one.json
rises one.json --seq 512 --gpus 4 --precision fp16-mixed -- a100-80-dgx v100-dgx1-2x8 t4-g4dn
check "and fp16"
of() { step "$1" one.json --seq 512 --gpus 4 --precision "$2"; } # HW PRECISION
[ $(($(of v100-dgx1-2x8 f32) / $(of v100-dgx1-2x8 fp16-mixed))) -ge 2 ] && [ $((50 * $(of a100-80-dgx fp16-mixed) / $(of a100-80-dgx bf16-mixed))) -eq 50 ]
check "by more than twice the speed of f32; where there is bf16 as fast as that, but for the scale of the loss"
"$topt" plan one.json --hw t4-g4dn --seq 512 --gpus 4 >out 2>err && grep -q 'precision fp16-mixed: a T4-16GB has no bf16' out &&
    "$topt" plan one.json --hw t4-g4dn --seq 512 --gpus 4 --framework torchtitan --json 2>err | jq -e '.job.precision == "f32"' >/dev/null &&
    "$topt" plan one.json --hw t4-g4dn --seq 512 --gpus 4 --framework topt --json 2>err | jq -e '.job.precision == "f32"' >/dev/null
check "which is the default without bf16, where the framework scales the loss: $(grep -o 'precision fp16[^,]*' out)"
"$topt" plan one.json --hw a100-80-dgx --seq 512 --gpus 4 --framework torchtitan --precision fp16-mixed >out 2>err
[ $? -eq 2 ] && grep -q "'torchtitan' does not train in fp16-mixed; use --precision bf16-mixed, bf16, f32 or f64" err
check "$(cat err)"
for p in bf16 fp16; do # ZeRO-1 of one GPU: parameters, gradients and states as they are
    "$topt" plan one.json --hw a100-80-dgx --seq 512 --gpus 1 --framework megatron --precision $p-mixed --json 2>err | jq .memory_parts >$p.parts
done
[ $((20 * $(jq .gradients bf16.parts) / $(jq .gradients fp16.parts))) -eq 40 ] && [ "$(jq .optimizer bf16.parts)" = "$(jq .optimizer fp16.parts)" ]
check "Megatron-LM adds up gradients in f32 under bf16 alone"
# Products in few bits, on one GPU and two samples a step, so that plans differ by nothing else.
low() # HW FRAMEWORK PRECISION...
{
    hw=$1 framework=$2
    shift 2
    "$topt" plan one.json --hw "$hw" --seq 4096 --batch 8 --gpus 1 --micro-batches 2 --factors none --framework "$framework" --precision "$@" --json 2>err
}
for p in bf16-mixed fp8-delayed fp8-tensorwise fp8-blockwise; do low h100-80-dgx megatron $p >$p.out || cat err; done
rising() { jq -es 'map(.time_ns) | . == sort and (.[-1] / .[0] > 1.15) and (.[-1] / .[0] < 1.7)' "$@" >/dev/null; }
rising fp8-delayed.out fp8-tensorwise.out fp8-blockwise.out bf16-mixed.out
check "Hopper: scales of past steps are fastest, then one for a tensor, then blocks, then bf16"
jq -es '.[0].memory_parts as $a | .[1].memory_parts as $b | .[0].plan.model as $m |
    (1 - $b.activations / $a.activations) as $less | $less > 0.03 and $less < 0.3 and
    $b.parameters > $a.parameters and $b.gradients == $a.gradients and $b.optimizer == $a.optimizer and $b.loss == $a.loss' \
    bf16-mixed.out fp8-delayed.out >/dev/null
check "inputs are kept in a byte, weights lie beside their casts, all else is as with bf16"
low h100-80-dgx megatron fp8-delayed --fp8-params >stored.out && jq -es '.[0].memory_parts.parameters == .[1].memory_parts.parameters' \
    bf16-mixed.out stored.out >/dev/null
check "weights in FP8 alone, both ways round, take what they take in bf16"
for p in bf16-mixed fp8-tensorwise fp8-rowwise; do low h100-80-dgx torchtitan $p --software 2025 --eager none >$p.out || cat err; done
jq -es 'map(.memory_parts.activations) | unique | length == 1' bf16-mixed.out fp8-tensorwise.out fp8-rowwise.out >/dev/null
check "torchao keeps inputs as they are"
low h100-80-dgx torchtitan fp8-rowwise --software 2026 --eager none >later.out
jq -es '.[1].time_ns > 1.03 * .[0].time_ns and .[0].memory_parts == .[1].memory_parts and .[1].plan.settings.low_strided and
    (.[0].plan.settings | has("low_strided") | not)' later.out fp8-rowwise.out >/dev/null
check "casts of rowwise by PyTorch of 2025 take longer: $(jq -s 'map(.time_ns)' later.out fp8-rowwise.out | tr -d ' \n')"
low h100-80-dgx torchtitan bf16-mixed >apart.out && low h100-80-dgx torchtitan fp8-rowwise -o rows.json >rows.out &&
    jq -es '.[0].plan.settings.eager == "operators-but-norms" and (.[1].plan.settings | has("eager") | not)' apart.out rows.out >/dev/null
check "torchtitan compiles models whose products are in few bits"
"$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --batch 16 --seq 4096 --framework torchtitan --precision fp8-rowwise -o rows.json >out 2>err && "$topt" launch rows.json | grep -q 'config.compile.enable = True'
check "and topt launch says so"
sharded() { "$topt" plan "$llama" --hw h100-80-a3mega --seq 4096 --batch 64 --gpus 64 --pipeline 1 --memory 15GiB --framework torchtitan --software 2025 --precision "$@" \
    --json 2>err; }
sharded fp8-tensorwise >whole.out && sharded fp8-tensorwise --fp8-params >bytes.out && jq -es 'all(.uniform.zero == 3) and
    .[1].network_ns < 0.9 * .[0].network_ns and .[1].time_ns < .[0].time_ns' whole.out bytes.out >/dev/null
check "FSDP gathers weights of a byte faster"
for p in bf16-mixed fp8-delayed mxfp8 nvfp4; do low b200-hgx megatron $p >$p.out || cat err; done
rising nvfp4.out fp8-delayed.out bf16-mixed.out && rising nvfp4.out mxfp8.out bf16-mixed.out
check "Blackwell: NVFP4 before FP8"
graphs() { "$topt" plan "$small" --hw h100-80-dgx --gpus 8 --batch 8 --pipeline 1 --framework "$@" --json -o g.json 2>err; }
graphs megatron >host.out && graphs megatron --cuda-graphs >graphs.out && jq -es '.[1].time_ns < 0.97 * .[0].time_ns' host.out graphs.out >/dev/null &&
    "$topt" launch g.json | grep -q -- '--cuda-graph-impl full_iteration'
check "CUDA graphs: a small model does not wait for the host"
graphs torchtitan --cuda-graphs >out && ! graphs deepspeed --cuda-graphs >out && grep -q "cuda-graphs: deepspeed has none" err
check "$(cat err)"
no() # TEXT HW FRAMEWORK PRECISION...: is the question refused with the text?
{
    text=$1
    shift
    low "$@" >out
    [ $? -eq 2 ] && grep -q -- "$text" err
    check "$(cat err)"
}
no "'a100-80-dgx' (A100-SXM4-80GB) has no products in fp8; use --precision bf16-mixed, bf16, fp16-mixed, f32 or f64" a100-80-dgx megatron fp8-delayed
no "'t4-g4dn' (T4-16GB) has no products in nvfp4; use --precision fp16-mixed" t4-g4dn megatron nvfp4
no "unknown precision 'fp8'; did you mean fp8-delayed, fp8-tensorwise, fp8-rowwise, fp8-blockwise or mxfp8?" a100-80-dgx megatron fp8
no "unknown precision 'fp4'; did you mean nvfp4?" a100-80-dgx megatron fp4
no "'h100-80-dgx' (H100-SXM5-80GB) has no products in mxfp8; use .*fp8-blockwise" h100-80-dgx megatron mxfp8
no "'deepspeed' does not train in fp8-tensorwise; use --precision bf16-mixed" h100-80-dgx deepspeed fp8-tensorwise
no "'topt' does not train in fp8-tensorwise" h100-80-dgx topt fp8-tensorwise
no "'torchtitan' does not train in fp8-tensorwise; use --precision bf16-mixed, bf16, fp8-rowwise, f32 or f64" h100-80-dgx torchtitan fp8-tensorwise
no "fp8-params: torchtitan has no weights in the bits of --precision" h100-80-dgx torchtitan fp8-rowwise --fp8-params
no "fp8-attention: torchtitan has none here; megatron does" h100-80-dgx torchtitan fp8-rowwise --fp8-attention
no "fp8-attention: megatron has none here" h100-80-dgx megatron fp8-blockwise --fp8-attention
# On the H200, cuDNN's attention in 8 bits was measured to be half as fast again forward, and not faster backward.
low h100-80-dgx megatron fp8-tensorwise >sixteen.out && low h100-80-dgx megatron fp8-tensorwise --fp8-attention >eight.out &&
    jq -es '.[1].time_ns < 1.01 * .[0].time_ns and .[1].memory_parts.activations < 0.97 * .[0].memory_parts.activations' sixteen.out eight.out >/dev/null
check "attention in 8 bits keeps fewer activations, in about the same time"
# Muon: one momentum for matrices of layers, whose products follow from their shapes.
muon() { "$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --batch 32 --seq 2048 --json --framework "$@" 2>err; }
degrees=tp=1,pp=1,zero=1,recompute=1,mbs=1
muon megatron --degrees $degrees --optimizer adamw >adamw.out && muon megatron --degrees $degrees --optimizer muon -o muon.json >muon.out &&
    jq -es '(.[1].memory_parts.optimizer / .[0].memory_parts.optimizer) as $part | (.[1].time_ns - .[0].time_ns) as $more |
        $part > 0.66 and $part < 0.75 and $more > 0.01e9 and $more < 0.4e9' adamw.out muon.out >/dev/null &&
    "$topt" launch muon.json | tr '\n' ' ' | grep -q -- '--use-distributed-optimizer .*--optimizer muon'
check "Muon keeps a third less, and takes its products' time: $(jq -s 'map(.time_ns)' adamw.out muon.out | tr -d ' \n')"
muon deepspeed --optimizer muon --degrees tp=1,zero=2 >deep.out && jq -e '.plan.settings.muon == 1 and .uniform.zero == 2' deep.out >/dev/null
check "DeepSpeed has it beside ZeRO-2, in the Gram form"
! muon torchtitan --optimizer muon >out && grep -q "optimizer muon: torchtitan does not have it; megatron" err
check "$(cat err)"
! muon megatron --optimizer muon --offload optimizer >out && grep -q "states of --optimizer muon stay on the GPUs" err
check "$(cat err)"
# Communication of tensor parallelism beside its products.
beside() { "$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --batch 16 --seq 4096 --framework "$@" 2>err; }
for f in megatron torchtitan; do
    beside $f --degrees tp=8,pp=1,mbs=1 --eager none --json >apart.out && beside $f --degrees tp=8,pp=1,mbs=1 --eager none --tensor-overlap --json -o beside.json >beside.out &&
        jq -es '.[0].compute_ns == .[1].compute_ns and .[1].network_ns < 0.8 * .[0].network_ns and .[1].network_ns > 0.2 * .[0].network_ns' apart.out beside.out >/dev/null
    check "$f moves beside products, and waits for less: $(jq -s 'map(.network_ns)' apart.out beside.out | tr -d ' \n')"
    "$topt" launch beside.json >out && grep -Eq -- '--tp-comm-overlap|enable_async_tensor_parallel = True' out &&
        "$topt" simulate beside.json --json >simulated.out && jq -es '(.[0].time_ns / .[1].time_ns - 1) | . < 0.005 and . > -0.005' simulated.out beside.out >/dev/null
    check "$f is told so, and the simulated step has it, too"
done
# The type in which gradients are added up, and what launch says of it.
"$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --batch 16 --seq 4096 --framework megatron --degrees tp=2,pp=1,mbs=1 --json >wide.out 2>err &&
    "$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --batch 16 --seq 4096 --framework megatron --degrees tp=2,pp=1,mbs=1 --gradients bf16 --json -o narrow.json >narrow.out 2>err &&
    jq -es '.[0].memory_parts.gradients == 2 * .[1].memory_parts.gradients' wide.out narrow.out >/dev/null && "$topt" launch narrow.json | grep -q -- '--grad-reduce-in-bf16'
check "megatron adds gradients up in bf16 where it is asked: $(jq -s 'map(.memory_parts.gradients)' wide.out narrow.out | tr -d ' \n')"
"$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --batch 16 --seq 4096 --framework deepspeed --gradients f32 -o wide.json >out 2>err && "$topt" launch wide.json | grep -q '"grad_accum_dtype": "fp32"'
check "deepspeed in f32"
! "$topt" plan "$llama" --hw h100-80-dgx --gpus 8 --framework torchtitan --gradients bf16 >out 2>err && grep -q "gradients bf16: torchtitan accumulates them in f32" err
check "$(cat err)"
userbuffers() { # userbuffers BYTES DEGREES OPTIONS...: so much more than without; buffers of a micro-batch's positions by features
    bytes=$1 degrees=$2 && shift 2
    beside megatron --degrees "$degrees" "$@" --json >apart.out && beside megatron --degrees "$degrees" "$@" --tensor-overlap --json >beside.out &&
        jq -es "map(.memory_parts.buffers) | .[1] - .[0] == $bytes" apart.out beside.out >/dev/null
    check "userbuffers of $degrees $*: $bytes bytes"
}
userbuffers $((24 * 4096 * 4096)) tp=8,pp=1,mbs=1
userbuffers $((24 * 2 * 4096 * 4096)) tp=4,pp=2,vp=1,mbs=2
userbuffers $((24 * 4096 / 2 * 4096)) tp=4,cp=2,pp=1,mbs=1
userbuffers $((16 * 4096 * 4096)) tp=8,pp=1,mbs=1 --precision fp8-tensorwise
userbuffers 0 tp=1,pp=1,mbs=1
! beside megatron --sequence-parallel off --tensor-overlap >out && grep -q "tensor-overlap: megatron does not have it; .* beside --sequence-parallel on" err
check "$(cat err)"
if "$topt" run --help >out 2>err; then # a build without MPI has no runtime
    unrun() { # unrun WORDS HW OPTIONS...: planned for two GPUs, refused by one process for what it can't run
        words=$1 hw=$2 && shift 2
        "$topt" plan "$small" --hw "$hw" --batch 8 --gpus 2 "$@" -o unrun.json >out 2>err && ! "$topt" run unrun.json --data synthetic --steps 1 >out 2>err &&
            [ "$(wc -l <err)" = 1 ] && grep -q "topt run $words" err
        check "$(cat err)"
    }
    unrun "cannot train in fp16.*; plan with --precision bf16-mixed" v100-pcie-1x8 --framework topt --precision fp16-mixed
    unrun "has no kernels for products in fewer bits (fp8-rowwise).*topt launch" h100-80-dgx --precision fp8-rowwise
    unrun "has no kernels for products in fewer bits (mxfp8)" b200-hgx --precision mxfp8
    unrun "has no kernels for products in fewer bits (nvfp4)" b200-hgx --framework megatron --precision nvfp4
    unrun "keeps weights and optimizer states in f32" h100-80-dgx --precision bf16
    unrun "has no optimizer adam8; plan with --optimizer adamw" h100-80-dgx --framework topt --optimizer adam8
    unrun "has no optimizer muon" h100-80-dgx --framework megatron --optimizer muon
    unrun "keeps everything on its devices" h100-80-dgx --offload parameters
fi
"$topt" plan "$small" --hw v100-dgx1-2x8 --gpus 4 --precision bf16 >out 2>err
[ $? -eq 2 ] && grep -q "'v100-dgx1-2x8' (V100-SXM2-16GB) has no products in bf16; use --precision fp16-mixed, f32 or f64" err
check "$(cat err)"
ratio 18 28 b200-hgx h100-80-dgx && ratio 20 32 h100-80-dgx a100-80-dgx && ratio 8 13 h100-80-dgx mi300x
check "by plausible factors: B200 2.3 times an H100, that 2.6 times an A100, and as fast as an MI300X"
"$topt" plan "$llama" --hw gb200-nvl72 --batch 64 --seq 4096 >out 2>err && grep -qE "^(cheapest|knee|fastest).* 64 \(1 node\)" out
check "64 GPUs of a rack of 72 are tried"
"$topt" hw list >out 2>err && [ "$(grep -c '^NVIDIA, ' out)" -gt 8 ] && grep -q '^AMD, 2025' out &&
    grep -A9 '^NVIDIA, 2018' out | grep -q 't4-g4dn .*bf16' && grep -q 'a100-80-dgx .* f32 f64 bf16 f16 ' out && [ "$(awk '/^  /' out | wc -l)" -ge 39 ]
check "hw list has them by vendor and year, and what they lack"
for hw in $(awk '/^  / { print $1 }' out); do
    case $hw in h100-80-dgx | h100-80-a3mega | h100-96-500w) continue ;; esac # curves of a busy machine
    "$topt" hw check "$hw" >checked 2>err && grep -q "nothing implausible" checked || { echo "# $hw"; sed -n '/^implausible/,$p' checked; break; }
done
grep -q "nothing implausible" checked
check "and hw check finds nothing implausible"
"$topt" hw check t4-g4dn >out 2>err && grep -q '^  device.flops.f32 .* +[0-9.]* %.*does not fit' out &&
    grep -q '^  device.memory_bytes .*what fits' out && ! "$topt" hw check h200-dgx | grep -q '^  device.flops' &&
    "$topt" hw list | grep -q '^  t4-g4dn .*data sheet' && ! "$topt" hw list | grep -q '^  h200-dgx .*data sheet'
check "assumed figures are listed with what they move"
"$topt" hw check mi355x --json >out 2>err &&
    jq -e '.assumed | (.models | length == 5) and (.figures[] | select(.figure == "device.flops.bf16") | .moves | length == 5 and all(. > 0 and . < 0.2))' out >jq
check "in JSON, too: a peak a tenth lower makes every step longer"
finish
