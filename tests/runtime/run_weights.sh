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
# shellcheck disable=SC2086 # options and their values
for model in $models; do
    from=$fixtures/$model data="--data $fixtures/$model/tokens.bin --objective next" seq="--seq 8"
    [ ! -e "$from/records.jsonl" ] || data="--data $from/records.jsonl --tokenizer $from/tokenizer.json"
    [ ! -e "$from/train-images-idx3-ubyte" ] || data="--data $from/train-images-idx3-ubyte" seq=
    for gpus in 1 4; do
        "$topt" plan "$from/config.json" --framework topt --hw lab-cpu --batch 4 $seq --gpus $gpus --optimizer sgd \
            --capacity 4 -o plan$gpus.json >out 2>err &&
            "$mpiexec" -n $gpus "$topt" run plan$gpus.json $data --weights "$from" --steps 4 --lr 0.1 \
                --clip 1e9 --metrics metrics --save-weights saved$gpus >out 2>err && pairs metrics >got &&
            near got "$from/expected.txt"
        check "$model on $gpus: the losses of four steps and the norms of their gradients are transformers'"
    done
    names saved4/model.safetensors >got && names "$from/model.safetensors" >want && cmp -s got want &&
        cmp -s saved4/config.json "$from/config.json"
    check "... what is saved has the names and shapes of what was read"
    "$topt" run plan1.json $data --weights saved4 --steps 1 --clip 1e9 --metrics back >out 2>err &&
        "$topt" run plan1.json $data --weights "$from" --steps 5 --lr 0.1 --clip 1e9 --metrics on >out 2>err &&
        pairs back >got && tail -1 on >last && pairs last >want && near got want
    check "... and training goes on from it"
done
[ $# -eq 0 ] || finish
# Adapters: start, train and come back as PEFT's, and are what the merged weights have.
for model in llama gpt2 gptj; do
    from=$fixtures/$model modules=$(tr -d ' \n' <"$fixtures/$model/adapter/adapter_config.json" |
        sed 's/.*"target_modules":\[\([^]]*\)\].*/\1/; s/"//g')
    for gpus in 1 4; do
        "$topt" plan "$from/config.json" --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus $gpus --optimizer sgd \
            --train "lora:3:$modules" -o lora$gpus.json >out 2>err &&
            "$mpiexec" -n $gpus "$topt" run lora$gpus.json --data "$from/tokens.bin" --weights "$from" --adapter "$from/adapter" \
                --steps 4 --lr 0.1 --clip 1e9 --metrics metrics --save-weights adapter$gpus >out 2>err && pairs metrics >got &&
            near got "$from/adapter/expected.txt"
        check "$model on $gpus: adapters train as in torch"
    done
    names adapter4/adapter_model.safetensors >got && names "$from/adapter/adapter_model.safetensors" >want && cmp -s got want &&
        [ ! -e adapter4/model.safetensors ]
    check "... and are saved by the names that they were read by"
    "$mpiexec" -n 4 "$topt" run lora4.json --data "$from/tokens.bin" --weights "$from" --adapter adapter1 --steps 1 --lr 1e-12 \
        --metrics apart --save-weights merged --merge >out 2>err &&
        "$topt" plan "$from/config.json" --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus 1 -o whole.json >out 2>err &&
        "$topt" run whole.json --data "$from/tokens.bin" --weights merged --steps 1 --metrics metrics >out 2>err &&
        sed 's/.*"loss": \([^,]*\),.*/\1 1/' apart >got && sed 's/.*"loss": \([^,]*\),.*/\1 1/' metrics >want && near got want
    check "... merged, they are weights with the same loss"
done
mkdir twice && cp "$fixtures/gptj/adapter/adapter_model.safetensors" twice &&
    sed 's/"lora_alpha": 3/"lora_alpha": 6/' "$fixtures/gptj/adapter/adapter_config.json" >twice/adapter_config.json
"$topt" run lora1.json --data "$fixtures/gptj/tokens.bin" --weights "$fixtures/gptj" --adapter twice --steps 1 --metrics metrics >out 2>err &&
    sed 's/.*"loss": \([^,]*\),.*/\1 1/' metrics >got && sed 's/$/ 1/' "$fixtures/gptj/adapter/twice.txt" >want && near got want
check "lora_alpha is obeyed"
"$topt" plan "$fixtures/gptj/config.json" --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus 1 --train lora:3:q_proj -o few.json >out 2>err
refused 1 'adapter_model.safetensors: there is .*k_proj.*, which the plan does not train' "$topt" run few.json \
    --data "$fixtures/gptj/tokens.bin" --weights "$fixtures/gptj" --adapter "$fixtures/gptj/adapter"
check "adapters that the plan has not are not left out"
refused 1 'the plan has no adapters' "$topt" run whole.json --data "$fixtures/gptj/tokens.bin" --weights "$fixtures/gptj" --adapter twice
check "... nor all of them"
"$topt" plan "$fixtures/gpt_neox/config.json" --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus 1 --train lora -o few.json >out 2>err
refused 1 "beside a part of a module.*--merge" "$topt" run few.json --data "$fixtures/gpt_neox/tokens.bin" --weights "$fixtures/gpt_neox" --save-weights new &&
    [ ! -e new ]
check "an adapter without a name of PEFT's is refused before the first step"
"$topt" plan "$fixtures/llama/config.json" --framework topt --hw lab-cpu --batch 4 --seq 8 --gpus 1 --train qlora -o few.json >out 2>err
"$topt" run few.json --data "$fixtures/llama/tokens.bin" --weights "$fixtures/llama" --steps 1 --metrics few >out 2>err &&
    sed 's/.*"loss": \([^,]*\),.*/\1/' few | paste - "$fixtures/llama/expected.txt" | awk '{ d = $1 / $2 - 1; exit !(d * d > 0 && d * d < 1e-4) }'
check "weights that rest in 4 bits have nearly the loss of the whole ones: $(sed 's/, "lr.*//' few)"
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
