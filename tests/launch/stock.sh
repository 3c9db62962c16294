#!/bin/bash
# stock.sh ROOT TOPT [MODELS [WAYS]] - stock models of transformers train under a launched plan.
#
# The folder that TOPT_CHROOT names is a chroot with PyTorch 2 and transformers, which Debian 12 lacks; it is made, in some
# minutes and 1.7 GB, by
#   mmdebstrap --variant=minbase --include=python3-torch,python3-transformers,python3-accelerate forky FOLDER
# Needs root.  tests/launch/stock.py says what is trained; MODELS and WAYS are patterns of its names.
set -u
root=$(realpath "$1") topt=$(realpath "$2") chroot=${TOPT_CHROOT:-}
if [ -z "$chroot" ] || [ ! -x "$chroot/usr/bin/python3" ] || [ "$(id -u)" != 0 ]; then
    echo "1..0 # skipped: root and a chroot with PyTorch 2 are needed, which TOPT_CHROOT names"
    exit 77
fi
# shellcheck source=deploy/torch/chroot.sh
. "$root/deploy/torch/chroot.sh"
use_chroot "$chroot" stock
"$topt" plan "$root/deploy/quickstart/llama-3.1-8b.json" --hw a100-80-dgx --batch 8 --seq 1024 --gpus 2 --mode mini-time \
    --train lora:8:q_proj,v_proj --quiet -o "$work/plan.json" >/dev/null &&
    "$topt" launch "$work/plan.json" --for torchrun -o "$work" >/dev/null &&
    cp "$root/tests/launch/stock.py" "$work" || exit 1
chroot "$chroot" env -C "$inside" OMP_NUM_THREADS=1 USE_LIBUV=0 GLOO_SOCKET_IFNAME=lo HF_HUB_OFFLINE=1 \
    TRANSFORMERS_VERBOSITY=error PYTHONDONTWRITEBYTECODE=1 python3 -W ignore stock.py "${@:3}" 2>"$work/err" || {
    grep -v gloo/transport "$work/err" | tail -n 20
    exit 1
}
