#!/bin/sh
# run_tables.sh - recommenders from a model to a trained one: a DLRM and a language model of words,
# their tables under each choice, on 1, 2 and 4 ranks; the densities that are measured.
# usage: run_tables.sh TOPT MPIEXEC
topt=$1 mpiexec=$2
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
losses() { # losses FILE: one a line
    sed -n '/"losses": \[/,/\]/p' "$1" | tr -d ' ,' | grep '^[0-9]'
}
same_losses() { # same_losses A B: of two reports
    losses "$1" >a.losses && losses "$2" >b.losses && [ "$(wc -l <a.losses)" -eq "$steps" ] && [ "$(wc -l <b.losses)" -eq "$steps" ] &&
        paste a.losses b.losses | awk '{ d = $1 - $2; if (d * d > 1e-20 * $1 * $1) bad = 1 } END { exit bad }'
}
try() { # try MODEL GPUS NAME PIN: plan with that pin, train, compare with one rank
    "$topt" plan "$1.json" --gpus "$2" --hw lab-cpu --framework topt --precision f64 --optimizer $optimizer \
        --pin "$4" -o plan >out 2>err &&
        "$mpiexec" -n "$2" "$topt" run plan --data synthetic --steps $steps --lr $lr --report other >out 2>err
    check "$1 on $2 ranks, $3: trains"
    same_losses one other
    check "... to the losses of one rank"
}
steps=12 lr=0.05 optimizer=row_wise_adagrad
cat >dlrm.json <<'EOF'
{"format": "topt-model/1", "name": "dlrm", "batch": 32, "seq": 1, "ops": [
 {"name": "numbers", "kind": "input", "features": 5},
 {"name": "bottom", "kind": "linear", "inputs": ["numbers"], "features": 8},
 {"name": "bottom.bias", "kind": "bias", "inputs": ["bottom"]},
 {"name": "bottom.out", "kind": "unary", "inputs": ["bottom.bias"], "activation": "relu"},
 {"name": "people", "kind": "embedding_bag", "tables": [3000, 2, 700, 45, 300], "lookups": 1, "features": 8, "sparse": true},
 {"name": "things", "kind": "embedding_bag", "tables": [2000], "features": 8, "lookups": 4, "sparse": true},
 {"name": "products", "kind": "interact", "inputs": ["people", "things", "bottom.out"]},
 {"name": "all", "kind": "concat_counts", "inputs": ["bottom.out", "products"]},
 {"name": "top", "kind": "linear", "inputs": ["all"], "features": 1},
 {"name": "top.bias", "kind": "bias", "inputs": ["top"]},
 {"name": "loss", "kind": "logistic", "inputs": ["top.bias"]}]}
EOF
cat >words.json <<'EOF'
{"format": "topt-model/1", "name": "words", "batch": 8, "seq": 6, "ops": [
 {"name": "people", "kind": "embedding", "vocab": 500, "features": 8, "sparse": true},
 {"name": "gates", "kind": "linear", "inputs": ["people"], "features": 6, "features_unit": 4},
 {"name": "gates.bias", "kind": "bias", "inputs": ["gates"]},
 {"name": "lstm", "kind": "lstm", "inputs": ["gates.bias"]},
 {"name": "logits", "kind": "linear", "inputs": ["lstm"], "features": 500},
 {"name": "loss", "kind": "cross_entropy", "inputs": ["logits"]}]}
EOF
ranks="2 4"
for model in dlrm words; do
    "$topt" plan $model.json --gpus 1 --hw lab-cpu --framework topt --precision f64 --optimizer $optimizer -o plan >out 2>err &&
        "$topt" run plan --data synthetic --steps $steps --lr $lr --report one >said 2>err
    check "$model on one rank"
    grep -q "^table 'people': .* lookups a step named .* rows .*density_of" said
    check "... says which rows its samples named"
    for gpus in $ranks; do
        try $model $gpus dense "people=data $gpus with no sharding"
        try $model $gpus sparse "people=data $gpus with sparse gradients"
        try $model $gpus owner "people=data $gpus with owners of rows"
        grep -q "^table 'people'" out
        check "... and says which rows its samples named"
    done
    try $model 4 columns "people=d:4"
    try $model 4 rows "people=v:4"
    if [ $model = dlrm ]; then
        try dlrm 2 "whole tables" "people=t:2"
        try dlrm 4 "whole tables" "people=t:4"
        try dlrm 4 "whole tables on halves of the ranks, their rows with owners" "people=data 2 x tensor 2 with owners of rows over t"
    fi
    ranks=4
done
optimizer=adamw lr=0.01
"$topt" plan dlrm.json --gpus 1 --hw lab-cpu --framework topt --precision f64 --optimizer $optimizer -o plan >out 2>err &&
    "$topt" run plan --data synthetic --steps $steps --lr $lr --report one --quiet >out 2>err
check "dlrm on one rank with adamw, lazily"
try dlrm 4 "dense bags" "things=data 4 with no sharding"
try dlrm 4 "owners of bags" "things=data 4 with owners of rows"
# Norms of gradients of rows, and a checkpoint that goes on with other choices.
"$topt" plan dlrm.json --gpus 2 --hw lab-cpu --framework topt --precision f64 --optimizer row_wise_adagrad \
    --pin "people=data 2 with owners of rows;things=d:2" -o plan2 >out 2>err &&
    "$topt" plan dlrm.json --gpus 4 --hw lab-cpu --framework topt --precision f64 --optimizer row_wise_adagrad \
        --pin "people=t:4;things=data 4 with owners of rows" -o plan4 >out 2>err &&
    "$topt" plan dlrm.json --gpus 1 --hw lab-cpu --framework topt --precision f64 --optimizer row_wise_adagrad -o plan >out 2>err
check "plans for 1, 2 and 4"
set -- --data synthetic --lr 0.05 --clip 0.05 --quiet
"$topt" run plan "$@" --steps $steps --report one >out 2>err &&
    "$mpiexec" -n 2 "$topt" run plan2 "$@" --steps 5 --checkpoint c --report first >out 2>err &&
    "$mpiexec" -n 4 "$topt" run plan4 "$@" --steps $steps --checkpoint c --resume --report second >out 2>err
check "five clipped steps on two ranks, the rest on four"
{ losses first && losses second; } >b.losses && losses one >a.losses && [ "$(wc -l <b.losses)" -eq $steps ] &&
    paste a.losses b.losses | awk '{ d = $1 - $2; if (d * d > 1e-20 * $1 * $1) bad = 1 } END { exit bad }'
check "... to the losses of one rank"
# What was measured, said of the model, is what the next plan reckons with.
density=$(tr -d '\n' <one | sed -n 's/.*"tables": \[ *{ *"name": "people", *"density": \([0-9.e-]*\), *"density_of": \([0-9]*\).*/"density": \1, "density_of": \2/p')
sed "s/\"features\": 8, \"sparse\": true}/\"features\": 8, \"sparse\": true, $density}/" dlrm.json >measured.json
"$topt" plan measured.json --gpus 1 --hw lab-cpu --framework topt --precision f64 --optimizer $optimizer -o plan >out 2>err &&
    "$topt" run plan --data synthetic --steps $steps --lr $lr >said 2>err &&
    sed -n "s/^table 'people': .* named \([0-9.]*\) of .*planned for \([0-9.]*\)).*/\1 \2/p" said |
    awk '{ n++; d = $1 - $2 } END { exit !(n == 1 && d * d < 0.03) }'
check "a measured density ($density) is what comes back"
sed 's/"lookups": 1, "features": 8, "sparse": true/&, "density": 0.5/' dlrm.json >bad.json
refused 1 "go together" "$topt" plan bad.json --gpus 1 --hw lab-cpu
check "a density without its lookups is refused"
finish
