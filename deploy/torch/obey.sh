#!/bin/bash
# obey.sh - does PyTorch, as the files of `topt launch` set it up, train what the plan says?
#
#   deploy/torch/obey.sh TOPT CHROOT [CASES]
#
#   TOPT     the program topt, which makes the plans and writes the files
#   CHROOT   a folder with a Debian that has python3-torch 2.14 or so, python3-transformers and
#            python3-accelerate (deploy/torch/memory.py tells how to make one); root is needed
#   CASES    a pattern of grep -E: only those whose names at the end of this file match, and 'one'
#
# A small Llama is trained for some steps by 1, 2 and 4 processes on the CPU over gloo: FSDP2 with and without
# resharding, DDP with accumulation, ZeRO-1, tensor parallelism by DTensor, both together, blocks made again in
# backward; the same by accelerate's configuration, and there HSDP too, which is the plan's file with two
# replicas written in.  Each must have the losses of one process within 1e-4, and the mesh, shares of parameters and
# moments, FSDP units, forward passes and samples that the plan says.  Plans are the planner's, with the
# strategy of each case written into them.  Nothing of it runs in CI: it is a check of what others'
# releases do, some minutes long; its result stands in docs/TORCH.md.
#
# Ranks are started by their environment, not by torchrun: Debian's build lacks what its rendezvous
# needs.  For accelerate the environment is what `accelerate launch` itself makes of the file, and
# train.py lets it take the CPU for an accelerator, which it asks for before it shards.
set -uo pipefail

case ${1-} in
    '' | --help | -h)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
        exit $((${#} == 0 ? 2 : 0))
        ;;
esac
topt=$(realpath "$1") chroot=$(realpath "${2:?obey.sh: which chroot?}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
only=${3:-.} python=/usr/bin/python3 steps=5 batch=16
failed=0 count=0

# shellcheck source=deploy/torch/chroot.sh
. "$here/chroot.sh"
use_chroot "$chroot" obey
dir=$work
cp "$here/train.py" "$dir/"
seq -f 'Row %g of a text that has letters, digits and %%-signs.' 5000 >"$dir/text"
cat >"$dir/config.json" <<'JSON'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128, "intermediate_size": 352,
 "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16, "vocab_size": 128,
 "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
 "initializer_range": 0.02, "hidden_act": "silu", "attention_bias": false}
JSON
cat >"$dir/accelerate_env.py" <<'PYTHON'
# What `accelerate launch` puts into the environment of its ranks.
import os, sys
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env
args = launch_command_parser().parse_args(["--config_file", sys.argv[1], "--main_process_port", "0", "train.py"])
args, _, _ = _validate_launch_command(args)
args.main_process_port = 29500
before = dict(os.environ)
for name, value in prepare_multi_gpu_env(args).items():
    if before.get(name) != value:
        print(f"{name}={value}")
PYTHON

plan() # NAME GPUS DP TP ZERO RECOMPUTE STEPS: the planner's plan with this strategy, and its files
{
    "$topt" plan "$dir/config.json" --hw lab-cpu --gpus "$2" --batch $batch --seq 64 --mode mini-time \
        --precision f32 --optimizer adamw --quiet -o "$dir/plan.json" >/dev/null || return 1
    $python - "$dir/plan.json" "$dir/$1.json" $batch "${@:3}" <<'PYTHON' || return 1
import json, sys
plan = json.load(open(sys.argv[1]))
batch, dp, tp, zero, recompute, steps = map(int, sys.argv[3:])
plan["uniform"].update(dp=dp, tp=tp, zero=zero, recompute=bool(recompute), micro_batch=batch // dp // steps)
plan["settings"]["micro_batches"] = steps
json.dump(plan, open(sys.argv[2], "w"))
PYTHON
    "$topt" launch "$dir/$1.json" --for "$target" -o "$dir/$1" >/dev/null
}

ranks() # TARGET NAME GPUS WORDS...: GPUS processes of train.py, with these words in their environment
{
    local kind=$1 name=$2 n=$3 rank pids=() status=0
    shift 3
    port=$((port + 1))
    for ((rank = 0; rank < n; rank++)); do
        env -i PATH=/usr/sbin:/usr/bin:/bin HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo USE_LIBUV=0 \
            PYTHONDONTWRITEBYTECODE=1 "$@" RANK=$rank LOCAL_RANK=$rank WORLD_SIZE="$n" LOCAL_WORLD_SIZE="$n" \
            MASTER_ADDR=127.0.0.1 MASTER_PORT=$port PYTHONPATH="$inside/$name" nice chroot "$chroot" python3 \
            "$inside/train.py" "$kind" $inside/config.json $inside/text $steps "$inside/$name.report" \
            >"$dir/$name.$rank.log" 2>&1 &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || status=1
    done
    [ $status = 0 ] || tail -qn 2 "$dir/$name".*.log | sed "s/^/#   /"
    return $status
}

judge() # NAME TEXT GPUS DP TP ZERO RECOMPUTE STEPS REPLICAS TARGET
{
    $python - "$dir" $batch "$@" <<'PYTHON'
import json, sys
where, batch, name, text, n, dp, tp, zero, recompute, steps, replicas, target = sys.argv[1:]
batch, n, dp, tp, zero, recompute, steps, replicas = map(int, (batch, n, dp, tp, zero, recompute, steps, replicas))
one = json.load(open(f"{where}/one.report.0"))
reports = [json.load(open(f"{where}/{name}.report.{rank}")) for rank in range(n)]
blocks, wrong = 4, []
total = sum(v[1] for v in one["layout"].values())

def want(what, seen, planned):
    if seen != planned:
        wrong.append(f"{what} {seen}, not {planned}")

apart = max(abs(a - b) for r in reports for a, b in zip(one["losses"], r["losses"]))
if not (apart < 1e-4 and one["losses"][-1] < one["losses"][0] - 0.3):
    wrong.append(f"losses {apart:.1e} apart, {one['losses']} and {reports[0]['losses']}")
held = [sum(v[2] for v in r["layout"].values()) for r in reports]
sharded = zero >= 2 and dp > 1
for r, h in list(zip(reports, held))[:1 if len({json.dumps(r["layout"]) for r in reports}) == 1 else n]:
    want("ranks", r["ranks"], n)
    want("forward passes a step", r["forwards"], steps)
    want("samples in each", r["samples"], batch // dp // steps)
    want("checkpointed blocks", r["checkpointed"], blocks * recompute)
    want("parameters", sum(v[1] for v in r["layout"].values()), total)
    want("DDP", r["wrapper"] == "DistributedDataParallel", dp > 1 and not sharded)
    if sharded:  # topt_apply: each block, embedding, head, the rest; accelerate: blocks, embedding, norm with head, which it keeps
        want("units", r["units"], blocks + (3 if target == "torchrun" else 2))
        want("units that reshard", r["reshard"], (r["units"] - (target != "torchrun")) * (zero == 3))
    if zero != 1:
        want("moments", r["moments"], 2 * h)
# norms are not split by tensor parallelism, all else is; FSDP's shards add up to everything once for each replica.
small = sum(v[1] for k, v in one["layout"].items()) if tp == 1 else None
if sharded and tp == 1:
    want("shares", sum(held), total * replicas)
    if max(held) > 1.1 * total * replicas / n:
        wrong.append(f"largest share {max(held)} of {total}")
    shape = f"({replicas}, {n // replicas})" if replicas > 1 else f"({n},)"
    meshes = {k for r in reports for k in r["layout"]}
    if not all(shape in k and "Shard(dim=0)" in k and ("Replicate()" in k) == (replicas > 1) for k in meshes):
        wrong.append(f"meshes {sorted(meshes)}, not {shape}")
elif tp > 1:
    split = sum(v[1] for k, v in reports[0]["layout"].items() if k.count("Shard(") == (2 if sharded else 1) or (not sharded and "Shard(" in k))
    if split < 0.98 * total:
        wrong.append(f"{split} of {total} parameters split: {reports[0]['layout']}")
    if not 0.98 < sum(held) / total / (1 if sharded else dp) < 1.05:
        wrong.append(f"shares {held} of {total}")
else:
    want("shares", sum(held), total * n)
    if zero == 1:
        want("moments in all", sum(r["moments"] for r in reports), 2 * total)
print(f"#   {n} ranks, {reports[0]['wrapper']}, {reports[0]['units']} units ({reports[0]['reshard']} reshard), "
      f"{'/'.join(map(str, held))} of {total} parameters, {reports[0]['forwards']:g} x {reports[0]['samples']:g} samples, "
      f"losses {reports[0]['losses'][0]:.4f} to {reports[0]['losses'][-1]:.4f}, {apart:.1e} apart")
for line in wrong:
    print("#   " + line)
sys.exit(bool(wrong))
PYTHON
}

check() # STATUS TEXT
{
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failed=$((failed + 1))
    fi
}

obeys() # NAME TEXT GPUS DP TP ZERO RECOMPUTE STEPS
{
    [ "$1" = one ] || grep -qE "$only" <<<"$1" || return
    plan "$1" "${@:3}" && ranks torchrun "$1" "$3" && judge "$@" 1 torchrun
    check $? "torchrun: $2"
}

configured() # NAME TEXT GPUS DP TP ZERO RECOMPUTE STEPS REPLICAS: by accelerate's file
{
    local words=()
    grep -qE "$only" <<<"$1" || return
    plan "$1" "${@:3:6}" && {
        if [ "$9" -gt 1 ]; then
            printf 'parallelism_config:\n  parallelism_config_%s: %d\n' dp_replicate_size "$9" >>"$dir/$1/accelerate.yaml"
            printf '  parallelism_config_%s: %d\n' dp_shard_size $(($4 / $9)) tp_size 1 cp_size 1 >>"$dir/$1/accelerate.yaml"
        fi
        chroot "$chroot" python3 "$inside/accelerate_env.py" "$inside/$1/accelerate.yaml" >"$dir/words" 2>"$dir/$1.0.log"
    } && mapfile -t words <"$dir/words" &&
        ranks accelerate "$1" "$3" "${words[@]}" OBEY_DP="$4" OBEY_MICRO_BATCH=$((batch / $4 / $8)) OBEY_ACCUMULATION="$8" OBEY_RECOMPUTE="$7" &&
        judge "$@" accelerate
    check $? "accelerate: $2"
}

port=$((20000 + $$ % 20000))
chroot "$chroot" python3 -c 'import accelerate, torch, transformers
print("# torch", torch.__version__, "transformers", transformers.__version__, "accelerate", accelerate.__version__)' || exit 1
target=torchrun
#     name      what                                                   GPUs DP TP ZeRO recompute steps
obeys one      "one process"                                              1  1  1  0  0  1
obeys full     "FSDP2, parameters resharded after forward"                2  2  1  3  0  1
obeys full4    "FSDP2 of four, blocks made again, two micro-batches"      4  4  1  3  1  2
obeys kept     "FSDP2 without resharding, two micro-batches"              2  2  1  2  0  2
obeys ddp      "DDP with four micro-batches"                              2  2  1  0  0  4
obeys ddp4     "DDP of four, blocks made again"                           4  4  1  0  1  1
obeys zero1    "DDP with ZeroRedundancyOptimizer"                         2  2  1  1  0  2
obeys tensor   "tensor parallelism by DTensor"                            2  1  2  0  0  1
obeys tensor4  "tensor parallelism of four, two micro-batches"            4  1  4  0  0  2
obeys both     "FSDP2 of two by tensor parallelism of two"                4  2  2  3  1  2
target=accelerate
configured a_full "FSDP2, parameters resharded after forward"             2  2  1  3  0  1  1
configured a_again "FSDP2 of four, blocks made again, two micro-batches"  4  4  1  3  1  2  1
configured a_kept "FSDP2 without resharding"                              2  2  1  2  0  2  1
configured a_ddp  "DDP with four micro-batches"                           2  2  1  0  0  4  1
configured a_hsdp "HSDP: two replicas of two shards"                      4  4  1  3  0  1  2
echo "1..$count"
echo "# $((count - failed)) of $count as planned"
[ $failed = 0 ]
