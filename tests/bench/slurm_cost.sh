#!/bin/bash
# slurm_cost.sh BUILD [PAIRS] - what topt adds to an sbatch (slurm_cost.py), on a private Slurm with a warm toptd.  As root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1") pairs=${2:-200}
source=$here/../..
folder=$(mktemp -d /tmp/topt-cost.XXXXXX)
"$build/bin/toptd" --socket "$folder/toptd.sock" --state "$folder/state" --hw a100-80-dgx >"$folder/log" 2>&1 &
planner=$!
end()
{
    kill "$planner" && wait "$planner" || true
    rm -rf "$folder"
}
trap end EXIT
left=200
while ! curl -s --unix-socket "$folder/toptd.sock" http://localhost/readyz >/dev/null && [ $left -gt 0 ]; do
    left=$((left - 1))
    sleep 0.05
done
cat >"$folder/model.json" <<M
{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192}
M
"$source/deploy/cluster.sh" run "$folder/c" --force --url "unix:$folder/toptd.sock" --plugin "$build/lib/spank_topt.so" \
    --plugin-args timeout_ms=60000 -- python3 "$here/slurm_cost.py" "$pairs" "$folder/c/plugstack.conf" --topt-mode=mini-parallelism \
    "--topt-model=$folder/model.json" --topt-batch=64 --topt-seq=4096 --topt-max-gpus=4
