#!/bin/bash
# trainer.sh ROOT TOPT - Hugging Face's Trainer trains by the launch.sh of --for hf: two ranks with accumulation and checkpointed
# blocks have the losses of one.  On the CPU over gloo, by DDP: FSDP of accelerate needs a GPU.
#
# TOPT_CHROOT names a chroot with transformers and accelerate (stock.sh says how one is made).  Needs root.
set -u
root=$1 topt=$2 chroot=${TOPT_CHROOT:-}
if [ -z "$chroot" ] || [ ! -x "$chroot/usr/bin/python3" ] || [ "$(id -u)" != 0 ]; then
    echo "1..0 # skipped: root and a chroot with transformers are needed, which TOPT_CHROOT names"
    exit 77
fi
# shellcheck source=deploy/torch/chroot.sh
. "$root/deploy/torch/chroot.sh"
use_chroot "$chroot" trainer

# Debian's PyTorch lacks what torchrun's rendezvous needs: ranks get the environment that it makes.
cat >"$work/torchrun" <<'SCRIPT'
#!/bin/bash
ranks=$(printf '%s\n' "$@" | sed -n 's/--nproc-per-node=//p') pids=()
while [ "$1" != train.py ]; do shift; done
for ((i = 0; i < ranks; i++)); do
    RANK=$i LOCAL_RANK=$i WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=$port python3 -W ignore "$@" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || exit 1; done
SCRIPT
chmod 755 "$work/torchrun"
cp "$root/tests/launch/trainer.py" "$work/train.py"
train() # NAME OPTIONS OF TOPT PLAN...
{
    local name=$1
    shift
    "$topt" plan "$root/deploy/quickstart/gpt-small.json" --hw lab-cpu --batch 8 --seq 64 --mode mini-time --space uniform --optimizer adamw \
        --factors none --quiet "$@" -o "$work/plan.json" >/dev/null && "$topt" launch "$work/plan.json" --for hf -o "$work/$name" >/dev/null || exit 1
    [ "$name" = one ] || sed -i 's/--gradient_checkpointing False/--gradient_checkpointing True/' "$work/$name/launch.sh"
    chroot "$chroot" env -C "$inside" PATH="$inside:/usr/bin:/bin" port=$((20000 + $$ % 10000)) HOME="$inside" OMP_NUM_THREADS=1 USE_LIBUV=0 \
        GLOO_SOCKET_IFNAME=lo HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1 sh "$name/launch.sh" --output_dir "$inside/saved" --use_cpu True \
        --ddp_backend gloo --max_steps 4 --logging_steps 1 --report_to none --save_strategy no --lr_scheduler_type constant \
        --learning_rate 1e-2 >"$work/$name.out" 2>"$work/err" || { tail -n 20 "$work/err" && exit 1; }
    grep '^{"ranks"' "$work/$name.out" >"$work/$name.json"
}
train one --gpus 1 --micro-batches 4
train two --gpus 2 --micro-batches 2
python3 - "$work" <<'PYTHON'
import json, sys
one, two = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("one", "two"))
print("#", one, two)
apart = max(abs(a - b) / abs(a) for a, b in zip(one["losses"], two["losses"]))
good = (two["ranks"], two["model"], two["checkpointed"], two["samples"]) == (2, "DistributedDataParallel", True, 2) and \
    one["losses"][-1] < one["losses"][0] - 0.05 and len(two["losses"]) == 4 and apart < 1e-5
print(f"{'ok' if good else 'not ok'} 1 - two ranks by Trainer have the losses of one: {apart:.1e} apart\n1..1")
sys.exit(not good)
PYTHON
