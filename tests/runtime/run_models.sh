#!/bin/sh
# run_models.sh - from a native model to a trained one on the command line: a plan for two
# devices, two ranks that run it, the losses of one device, in the memory that was planned.
# usage: run_models.sh TOPT MPIEXEC MODELS_DIR MAKE_ONNX
topt=$1 mpiexec=$2 models=$3 make_onnx=$4
fashion=/usr/share/datasets/fashion-mnist
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
numbers() { # numbers NAME FILE: those of that name in a report, measured and then predicted
    sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$2"
}
losses() { # losses FILE: one a line
    sed -n '/"losses": \[/,/\]/p' "$1" | tr -d ' ,' | grep '^[0-9]'
}
try_model() { # try_model MODEL STEPS LR DATA...: on one device and on two
    model=$1 steps=$2 lr=$3
    shift 3
    for gpus in 1 2; do
        case $model in *.onnx) file=$model ;; *) file=$models/$model.json ;; esac
        "$topt" plan "$file" --mode mini-time --gpus $gpus --hw lab-cpu \
            -o plan$gpus >out 2>err
        check "$model: a plan for $gpus"
    done
    "$topt" run plan1 "$@" --steps "$steps" --lr "$lr" --report one --quiet >out 2>err &&
        "$mpiexec" -n 2 "$topt" run plan2 "$@" --steps "$steps" --lr "$lr" --report two --quiet >out 2>err
    check "$model: one rank and two train${2:+ on $2}"
    losses one >one.losses && losses two >two.losses && [ "$(wc -l <one.losses)" -eq "$steps" ] &&
        paste one.losses two.losses | awk '{ d = $1 - $2; if (d * d > 1e-6 * $1 * $1) bad = 1 } END { exit bad }'
    check "... to the same losses"
    head -1 two.losses >out && tail -1 two.losses >>out && awk 'NR == 1 { first = $1 } END { exit !($1 < 0.9 * first) }' out
    check "... that fall"
    numbers peak_bytes two | paste -s | awk '{ exit !($1 > 0.98 * $2 && $1 <= $2) }'
    check "... within 2 % of the planned memory"
    echo "# buffers of $(numbers peak_bytes two | head -1) bytes at once;" \
        "the process grew by $(numbers process_growth_bytes two)"
}

try_model lstm 40 0.01 --data synthetic
try_model moe 20 0.003 --data synthetic
try_model cnn 12 0.002
if "$make_onnx" digits >digits.onnx; then
    try_model digits.onnx 40 0.05 --data synthetic
else
    echo "# this topt reads no ONNX"
fi
if [ -d $fashion ]; then
    try_model cnn 20 0.002 --data $fashion
else
    echo "# no Fashion-MNIST on this machine"
fi
finish
