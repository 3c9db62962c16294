#!/bin/sh
# run_weights.sh - weights of Hugging Face folders train here as transformers trains them, and come back.
# usage: run_weights.sh TOPT MPIEXEC FIXTURES [MODEL...]
# With models: those alone, each expert with slots for all tokens, of which transformers drops none.
topt=$1 mpiexec=$2 fixtures=$3
shift 3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

# near A B: pairs of numbers, line by line, within 1e-5
near() {
    [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] && [ -s "$1" ] && paste "$1" "$2" | awk '
        { for (i = 1; i <= 2; i++) { d = $i - $(i + 2); if (d < 0) d = -d; if (d > 1e-5 * $(i + 2)) bad = 1 } }
        END { exit bad }'
}
pairs() { sed 's/.*"loss": \([^,]*\),.*"gradient_norm": \([^,}]*\).*/\1 \2/' "$1"; }
names() { # the tensors of a file and their shapes
    len=$(od -An -tu8 -N8 "$1" | tr -d ' ')
    tail -c +9 "$1" | head -c "$len" | tr -d ' ' | sed 's/"__metadata__":{[^}]*},*//; s/,*"data_offsets":\[[0-9,]*\],*//g' |
        sed 's/"dtype":"F32",*//g; s/},/\n/g; s/[{}]//g' | sed 's/,$//' | sort
}
models=${*:-gpt2 llama mistral qwen2 qwen3 phi starcoder2 opt gemma gptj phi3 gpt_neox}
for model in $models; do
    from=$fixtures/$model
    for gpus in 1 4; do
        "$topt" plan "$from/config.json" --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus $gpus --optimizer sgd \
            --capacity 4 -o plan$gpus.json >out 2>err &&
            "$mpiexec" -n $gpus "$topt" run plan$gpus.json --data "$from/tokens.bin" --weights "$from" --steps 4 --lr 0.1 \
                --clip 1e9 --metrics metrics --save-weights saved$gpus >out 2>err && pairs metrics >got &&
            near got "$from/expected.txt"
        check "$model on $gpus: the losses of four steps and the norms of their gradients are transformers'"
    done
    names saved4/model.safetensors >got && names "$from/model.safetensors" >want && cmp -s got want &&
        cmp -s saved4/config.json "$from/config.json"
    check "... what is saved has the names and shapes of what was read"
    "$topt" run plan1.json --data "$from/tokens.bin" --weights saved4 --steps 1 --clip 1e9 --metrics back >out 2>err &&
        "$topt" run plan1.json --data "$from/tokens.bin" --weights "$from" --steps 5 --lr 0.1 --clip 1e9 --metrics on >out 2>err &&
        pairs back >got && tail -1 on >last && pairs last >want && near got want
    check "... and training goes on from it"
done
[ $# -eq 0 ] || finish
refused 1 'weights' "$topt" run plan1.json --data "$fixtures/llama/tokens.bin" --weights "$fixtures/llama/config.json"
check "a folder without weights"
"$topt" run plan1.json --data "$fixtures/llama/tokens.bin" --weights "$fixtures/phi" >out 2>err || grep -q '^topt run: --weights' err
check "weights of another model"
sed 's/"vocab_size": *[0-9]*/"vocab_size": 9/' "$fixtures/gpt_neox/config.json" >small.json
sed 's/"num_hidden_layers": *[0-9]*/"num_hidden_layers": 9/' "$fixtures/gpt_neox/config.json" >deep.json
"$topt" plan small.json --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus 1 -o small-plan.json >out 2>err
run_of() { "$mpiexec" -n 4 "$topt" run plan4.json --data "$fixtures/gpt_neox/tokens.bin" --steps 2 --quiet "$@"; }
refused 1 '^topt run: --save-weights: small.json is of another model: its .*another shape' run_of --save-weights new --config small.json &&
    [ ! -e new ]
check "weights by the config of another vocabulary: refused before the first step"
refused 1 '^topt run: --save-weights: deep.json is of another model: it has .h2' run_of --save-weights new --config deep.json
check "... of more layers"
refused 1 '^topt run: --weights: .*gpt_neox is of another model: its .*another shape' \
    "$topt" run small-plan.json --data synthetic --weights "$fixtures/gpt_neox"
check "weights of another vocabulary are not read"
echo text >file
refused 1 "^topt run: --save-weights: can't write 'file/model.safetensors': Not a directory" \
    run_of --save-weights file --config "$fixtures/gpt_neox/config.json" && [ ! -s out ]
check "no folder for weights is said before the first step"
refused 1 "^topt run: --save-weights: can't write 'full/model.safetensors': File too large" sh -c 'trap "" XFSZ; ulimit -f 8; exec "$@"' sh \
    "$topt" run plan1.json --data "$fixtures/gpt_neox/tokens.bin" --steps 2 --save-weights full --config "$fixtures/gpt_neox/config.json" &&
    [ ! -s out ] && [ -z "$(ls full)" ]
check "... nor is no room"
refused 2 'of which model' "$topt" run plan1.json --data synthetic --save-weights new
check "names of no model"
finish
