#!/bin/bash
# torch_ddp.sh ROOT TOPT - plans for PyTorch train by PyTorch: for 1 and 2 ranks a plan is made and
# launched, ranks are started as its environment says, and all losses are those of one rank.
#
# It is Debian's PyTorch 1.13, on the CPU over gloo: DDP with accumulation, ZeroRedundancyOptimizer
# and checkpointing.  Ranks are started by srun in a private Slurm where that can be had, else as
# processes that are told their rank.
set -u
root=$1 topt=$2
here=$root/tests/launch
python=/usr/bin/python3
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
if ! $python -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null; then
    echo "1..0 # skipped: python3-torch is not installed"
    exit 77
fi
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo PYTHONDONTWRITEBYTECODE=1
model=$root/deploy/quickstart/gpt-small.json
text=/usr/share/common-licenses/GPL-3
steps=6
ask=(--hw lab-cpu --batch 32 --seq 64 --mode mini-time --space uniform --optimizer adamw --quiet)

launch() # NAME OPTIONS...: a plan, and its files in the folder NAME
{
    local name=$1
    shift
    "$topt" plan "$model" "${ask[@]}" "$@" -o "$name.json" >out 2>err &&
        "$topt" launch "$name.json" --for torchrun -o "$name" >>out 2>>err &&
        "$topt" launch "$name.json" --env >"$name/env" 2>>err
}

by_hand() # NAME RANKS: ranks as processes
{
    local rank pids=() status=0
    for ((rank = 0; rank < $2; rank++)); do
        # shellcheck disable=SC2046 # words on purpose
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port PYTHONPATH=$1 \
            $(cat "$1/env") $python "$here/train_gpt.py" "$model" "$text" $steps "$1/losses.json" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || status=1
    done
    return $status
}

by_slurm() # NAME RANKS: ranks as tasks
{
    # shellcheck disable=SC2046 # words on purpose
    MASTER_ADDR=127.0.0.1 PYTHONPATH=$1 srun --nodes=1 --ntasks="$2" --overcommit \
        $(cat "$1/env") $python "$here/train_gpt.py" "$model" "$text" $steps "$1/losses.json"
}

same() # NAME: its losses are one rank's, and they fall
{
    $python - "$1" <<'PYTHON'
import json, sys
one = json.load(open("one/losses.json"))["losses"]
run = json.load(open(sys.argv[1] + "/losses.json"))
apart = max(abs(a - b) / abs(a) for a, b in zip(one, run["losses"]))
print(f"# {sys.argv[1]}: {run['ranks']} ranks, {run['model']}, {run['optimizer']}, accumulation {run['accumulation']}: "
      f"losses {run['losses'][0]:.4f} to {run['losses'][-1]:.4f}, {apart:.1e} apart")
assert len(one) == len(run["losses"]) and one[-1] < one[0] - 0.3 and apart < 1e-5
PYTHON
}

trained() # NAME FIELD VALUE
{
    $python -c 'import json, sys
run = json.load(open(sys.argv[1] + "/losses.json"))
assert str(run[sys.argv[2]]) == sys.argv[3], run' "$@" 2>err
}

start=by_hand port=$((20000 + $$ % 20000))
if [ "$(id -u)" = 0 ] && PATH=$PATH:/usr/sbin command -v slurmctld slurmd srun munged >/dev/null; then
    cluster=$root/deploy/cluster.sh
    if "$cluster" start "$dir/cluster" --owner $$ >cluster.log 2>&1; then
        trap '"$cluster" stop "$dir/cluster" >/dev/null 2>&1; rm -rf "$dir"' EXIT
        eval "$("$cluster" env "$dir/cluster")"
        start=by_slurm
    fi
fi
echo "# ranks are started $start"

launch one --gpus 1 --micro-batches 1 && $start one 1 >out 2>err
check "one rank trains"
launch ddp --gpus 2 --micro-batches 2 --factors none && $start ddp 2 >out 2>err && same ddp
check "two ranks with accumulation have its losses"
trained ddp model DistributedDataParallel && trained ddp accumulation 2
check "they are DDP's, two micro-batches each"
launch zero --gpus 2 --micro-batches 2 --factors zero && sed -i 's/TOPT_RECOMPUTE=0/TOPT_RECOMPUTE=1/' zero/env &&
    $start zero 2 >out 2>err && same zero
check "so have those that share out the optimizer's state, with blocks made again in backward"
trained zero optimizer ZeroRedundancyOptimizer && [ "$(sed -n 's/.*"states": \([0-9]*\).*/\1/p' zero/losses.json)" -lt 70 ] &&
    trained zero checkpointed 4 && trained ddp checkpointed 0
check "by ZeroRedundancyOptimizer: a rank has the state of a part of the parameters"
sed -i 's/TOPT_DP=1/TOPT_DP=3/' one/env
$start one 1 >out 2>err
[ $? -ne 0 ] && grep -q "the plan is for 3 ranks, there are 1" err
check "another number of ranks than the plan's is refused"
finish
