#!/bin/bash
# chroot.sh TOPT FOLDER [PATTERN] - what Debian 12's PyTorch lacks: the launched topt_apply.py with
# FSDP2 and DTensor tensor parallelism, in a newer Debian, on the CPU over gloo (which does not
# gather bf16).  With a PATTERN, only ways of training whose names match it, and one rank's.
#
# FOLDER is a chroot with python3-torch 2.6 or newer; made, where it is not there, by
#   mmdebstrap --variant=minbase --include=python3-torch forky FOLDER
# Needs root.  Not part of the tests: it takes minutes and 1 GB.  Each line is a way of training,
# how far its losses are from those of one rank, and which kinds its parameters are of.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
topt=$(realpath "$1") chroot=$(realpath -m "$2") pattern=${3:-.}
[ -d "$chroot/usr" ] || mmdebstrap --variant=minbase --include=python3-torch forky "$chroot" || exit 1
work=$(mktemp -d)
mkdir -p "$chroot/plan"
mount --bind /proc "$chroot/proc" && mount --bind /dev "$chroot/dev" || exit 1
trap 'umount "$chroot/proc" "$chroot/dev"; rm -rf "$work" "$chroot/plan"' EXIT

model=$root/deploy/quickstart/gpt-small.json
"$topt" plan "$model" --hw lab-cpu --batch 32 --seq 64 --mode mini-time --gpus 1 --space uniform \
    --micro-batches 1 --optimizer adamw --quiet -o "$work/plan.json" >/dev/null &&
    "$topt" launch "$work/plan.json" --for torchrun -o "$chroot/plan" >/dev/null || exit 1
cp "$root/tests/launch/train_gpt.py" "$model" "$chroot/plan"
cp /usr/share/common-licenses/GPL-3 "$chroot/plan/text"
sed 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' "$model" >"$chroot/plan/untied.json"
chroot "$chroot" python3 -c 'import torch; print("PyTorch", torch.__version__)'
port=$((20000 + $$ % 20000))

train() # NAME CONFIG DP TP ZERO RECOMPUTE MICRO ACCUMULATION [PRECISION]
{
    local rank pids=() ranks=$(($3 * $4)) status=0
    port=$((port + 1))
    for ((rank = 0; rank < ranks; rank++)); do
        chroot "$chroot" env -C /plan RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 \
            MASTER_PORT=$port USE_LIBUV=0 GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 TOPT_DP="$3" TOPT_TP="$4" \
            TOPT_FSDP="$5" TOPT_RECOMPUTE="$6" TOPT_MICRO_BATCH="$7" TOPT_ACCUMULATION="$8" \
            TOPT_PRECISION="${9:-f32}" python3 train_gpt.py "$2" text 6 "$1.out" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || status=1
    done
    return $status
}

report() # NAME REFERENCE TOLERANCE: prints how far, and fails where that is too far
{
    chroot "$chroot" python3 - "$@" <<'PYTHON'
import json, sys
one = json.load(open(f"/plan/{sys.argv[2]}.out"))["losses"]
run = json.load(open(f"/plan/{sys.argv[1]}.out"))
apart = max(abs(a - b) / abs(a) for a, b in zip(one, run["losses"]))
print(f"{'ok  ' if apart < float(sys.argv[3]) else 'FAR '} {sys.argv[1]:<28} {apart:.1e}  {run['model']}, {run['optimizer']}, {run['parameter']}")
sys.exit(apart >= float(sys.argv[3]))
PYTHON
}

failed=0
way() # NAME REFERENCE TOLERANCE CONFIG ...
{
    local name=$1 reference=$2 tolerance=$3
    shift 3
    [[ $name == one* || $name =~ $pattern ]] || return 0
    train "$name" "$@" 2>"$work/err" && report "$name" "$reference" "$tolerance" || {
        echo "failed $name"
        tail -n 5 "$work/err"
        failed=1
    }
}
way one one 1e-5 gpt-small.json 1 1 0 0 32 1
way one-untied one-untied 1e-5 untied.json 1 1 0 0 32 1
way ddp one 1e-5 gpt-small.json 2 1 0 0 8 2
way zero1 one 1e-5 gpt-small.json 2 1 1 1 8 2
way fsdp2-zero2 one 1e-5 gpt-small.json 2 1 2 0 8 2
way fsdp2-zero3 one 1e-5 gpt-small.json 2 1 3 0 8 2
way fsdp2-zero3-checkpointed one-untied 1e-5 untied.json 2 1 3 1 8 2
way tensor one 1e-5 gpt-small.json 1 2 0 0 16 2
way tensor-untied one-untied 1e-5 untied.json 1 2 0 1 16 2
way fsdp2-zero3-tensor one-untied 1e-5 untied.json 2 2 3 1 8 2
way fsdp2-zero2-tensor one-untied 1e-5 untied.json 2 2 2 0 8 2
way bf16-mixed one-untied 2e-2 untied.json 1 1 0 0 32 1 bf16-mixed
way ddp-bf16-mixed one-untied 2e-2 untied.json 2 1 0 0 8 2 bf16-mixed
exit $failed
