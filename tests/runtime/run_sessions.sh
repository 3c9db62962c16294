#!/bin/sh
# run_sessions.sh - what a person trains, from base weights to a result: adapters of a Llama (over weights of 4 bits, too), a BERT and its classifier, a T5 on
# pairs, a ViT, a Mixtral with balanced experts; each on 1, 2 and 4 ranks with equal losses, ended and resumed under another plan.
# usage: run_sessions.sh TOPT MPIEXEC TOKENIZER few|held [FOLDER with Fashion-MNIST]
# few: some steps of each.  held: as many as it takes to hold the result to a figure, and ranks are killed; in f64, since what
# the order of sums rounds differently in f32 grows over hundreds of steps.  In a T5 it grows in f64, too: by 1e12 over 220 steps.
topt=$1 mpiexec=$2 tokenizer=$3 mode=$4 fashion=${5:-/usr/share/datasets/fashion-mnist}
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
gpl=/usr/share/common-licenses/GPL-2 bsd=/usr/share/common-licenses/BSD
small='"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 512'
echo "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", $small, \"num_key_value_heads\": 2, \"num_hidden_layers\": 2,
    \"tie_word_embeddings\": true}" >llama.json
bert="\"model_type\": \"bert\", $small, \"num_hidden_layers\": 1, \"max_position_embeddings\": 32, \"type_vocab_size\": 2"
echo "{\"architectures\": [\"BertForMaskedLM\"], $bert}" >masked.json
echo "{\"architectures\": [\"BertForSequenceClassification\"], $bert}" >classes.json
echo '{"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 64, "d_kv": 16, "num_heads": 4, "num_layers": 1,
    "d_ff": 128, "vocab_size": 512}' >t5.json
echo '{"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 32, "intermediate_size": 64, "image_size": 8,
    "patch_size": 4, "num_channels": 1, "num_attention_heads": 4, "num_hidden_layers": 1, "num_labels": 4}' >vit.json
echo '{"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 64, "intermediate_size": 128, "image_size": 28,
    "patch_size": 7, "num_channels": 1, "num_attention_heads": 4, "num_hidden_layers": 2, "num_labels": 10}' >fashion.json
echo "{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\", $small, \"num_key_value_heads\": 2, \"num_hidden_layers\": 1,
    \"num_local_experts\": 4, \"num_experts_per_tok\": 2}" >mixtral.json
awk 'BEGIN { for (i = 0; i < 400; i++) { to = i % 5 ? "train" : "test"; word = i % 2 ? "free software" : "no warranty"
    print "{\"text\": \"the program is " word " of version " i % 7 "\", \"label\": \"" (i % 2 ? "yes" : "no") "\"}" >to "-classes.jsonl"
    a = substr("abcdefgh", i % 8 + 1, 1); b = substr("abcdefgh", int(i / 8) % 8 + 1, 1)
    print "{\"source\": \"say " a " " b "\", \"target\": \"" b " " a "\"}" >to "-pairs.jsonl" } }'
# of 4 classes a picture of 8 x 8 in noise each, as idx files
pictures() { # NAME FIRST COUNT
    awk -v first="$2" -v n="$3" 'BEGIN { printf "\\000\\000\\010\\003\\000\\000%s\\000\\000\\000\\010\\000\\000\\000\\010", sprintf("\\%03o\\%03o", int(n / 256), n % 256)
        for (k = first; k < first + n; k++) { c = k % 4; for (p = 0; p < 64; p++) { i = int(p / 8); j = p % 8
            on = c == 0 ? int(i / 2) % 2 : c == 1 ? int(j / 2) % 2 : c == 2 ? 1 : (int(i / 2) + int(j / 2)) % 2
            printf "\\%03o", 40 + 70 * on + (k * 7919 + p * 104729 + k * p * 31) % 131 } } }' >bytes
    # shellcheck disable=SC2059
    printf "$(cat bytes)" >"$1-images-idx3-ubyte"
    awk -v first="$2" -v n="$3" 'BEGIN { printf "\\000\\000\\010\\001\\000\\000%s", sprintf("\\%03o\\%03o", int(n / 256), n % 256)
        for (k = first; k < first + n; k++) printf "\\%03o", k % 4 }' >bytes
    # shellcheck disable=SC2059
    printf "$(cat bytes)" >"$1-labels-idx1-ubyte"
}
pictures train 0 400
pictures test 1000 80

field() { sed -n "s/.*\"$2\": \([^,}]*\).*/\1/p" "$1"; }
last() { field "$1" "$2" | tail -1; }
# plans NAME [OPTION...]: for 1, 2 and 4 ranks, into NAME-1.json and so on
plans() {
    name=$1
    shift
    for ranks in 1 2 4; do
        "$topt" plan "$@" --framework topt --hw lab-cpu --gpus $ranks -o "$name-$ranks.json" >out 2>err || return 1
    done
}
# Ended after half of the steps, by SIGKILL where figures are held.  halfway NAME STEPS [OPTION...]
halfway() {
    name=$1 half=$((${same:-$2} / 2)) all=$2
    shift 2
    rm -rf saved rest
    if [ "$mode" = few ]; then
        "$mpiexec" -n 2 "$topt" run "$name-2.json" --dtype $number --steps $half --checkpoint saved --every $half "$@" >out 2>err
        return
    fi
    "$mpiexec" -n 2 "$topt" run "$name-2.json" --dtype $number --steps "$all" --checkpoint saved --every $half "$@" >out 2>err &
    run=$!
    while [ ! -d "saved/step-$(printf %09d $half)" ] && kill -0 $run; do sleep 0.1; done
    for rank in $(ps -o pid= --ppid $run); do
        kill -9 "$rank"
        break
    done
    ! wait $run
}
# session NAME STEPS [OPTION...]: trains on 1, 2 and 4 ranks alike, and on 4 from where 2 had ended; alike in the first $same steps, or all
session() {
    name=$1 steps=$2
    shift 2
    for ranks in 1 2 4; do
        "$mpiexec" -n $ranks "$topt" run "$name-$ranks.json" --dtype $number --steps "$steps" --metrics "metrics-$ranks" "$@" >out 2>err || return 1
        field "metrics-$ranks" loss >"losses-$ranks"
    done
    halfway "$name" "$steps" "$@" &&
        "$mpiexec" -n 4 "$topt" run "$name-4.json" --dtype $number --steps "$steps" --checkpoint saved --resume --metrics rest "$@" >out 2>err || return 1
    rests=$(wc -l <rest)
    tail -n "$rests" losses-4 >want && field rest loss | paste - want | head -n $((${same:-$steps} - steps + rests)) >rests && [ -s rests ] &&
        paste losses-1 losses-2 losses-4 | head -n "${same:-$steps}" | cat - rests | awk -v near="$near" '
            { for (i = 2; i <= NF; i++) { d = $i / $1 - 1; if (d < 0) d = -d; if (d > near) bad = 1 } } END { exit bad }'
}
held=1 number=f64 near=1e-6
[ "$mode" = few ] && held=0 number=f32 near=1e-5
steps() { [ $held = 1 ] && echo "$1" || echo 4; }
# holds VALUE OPERATOR BOUND: where figures are held
holds() { [ $held = 0 ] || awk -v x="$1" -v op="$2" -v y="$3" 'BEGIN { exit !(x != "" && (op == "<" ? x < y : x > y)) }'; }

# ---- adapters of a Llama, from its weights, then merged and generating
plans base llama.json --batch 8 --seq 32 --optimizer adam && "$mpiexec" -n 4 "$topt" run base-4.json --data $gpl --tokenizer "$tokenizer" \
    --steps "$(steps 400)" --lr 0.01 --eval-data $bsd --metrics base --save-weights llama --config llama.json >out 2>err
check "a Llama has weights: loss $(last base loss), of another text $(last base eval_loss)"
plans lora llama.json --batch 8 --seq 32 --optimizer adam --train lora:8 &&
    session lora "$(steps 200)" --data $bsd --tokenizer "$tokenizer" --weights llama --eval-data $bsd --lr 0.01 --adapter-dropout 0.1 &&
    holds "$(last metrics-4 eval_loss)" "<" "$(last base eval_loss | awk '{ print $1 - 1 }')"
check "its adapters learn that text on 1, 2 and 4 ranks alike, and after an end: $(last metrics-4 eval_loss)"
"$topt" run lora-1.json --data $bsd --tokenizer "$tokenizer" --weights llama --steps 4 --lr 0.01 --eval-data $bsd --metrics apart \
    --save-weights merged --merge >out 2>err &&
    "$topt" run base-1.json --data $bsd --tokenizer "$tokenizer" --weights merged --steps 1 --lr 1e-12 --eval-data $bsd --metrics together >out 2>err &&
    awk -v a="$(last apart eval_loss)" -v b="$(last together eval_loss)" 'BEGIN { d = a - b; exit !(a && d * d < 1e-8) }' &&
    cp "$tokenizer" merged/tokenizer.json && [ -n "$("$topt" generate merged --prompt Redistribution --tokens 8)" ]
check "... and merged they are the same, and generate"
plans qlora llama.json --batch 8 --seq 32 --optimizer adam --train qlora:8 &&
    session qlora "$(steps 200)" --data $bsd --tokenizer "$tokenizer" --weights llama --eval-data $bsd --lr 0.01 --adapter-dropout 0.1 &&
    holds "$(last metrics-4 eval_loss)" "<" "$(last base eval_loss | awk '{ print $1 - 1 }')" &&
    "$topt" run qlora-1.json --data $bsd --tokenizer "$tokenizer" --weights llama --steps 4 --lr 0.01 --eval-data $bsd --metrics apart \
        --save-weights merged --merge >out 2>err &&
    "$topt" run base-1.json --data $bsd --tokenizer "$tokenizer" --weights merged --steps 1 --lr 1e-12 --eval-data $bsd --metrics together >out 2>err &&
    awk -v a="$(last apart eval_loss)" -v b="$(last together eval_loss)" 'BEGIN { d = a - b; exit !(a && d * d < 1e-8) }'
check "... over weights that rest in 4 bits, too, which are merged as they are: $(last metrics-4 eval_loss)"

# ---- BERT: masked, then a classifier
plans masked masked.json --batch 16 --seq 24 --optimizer adam &&
    session masked "$(steps 300)" --data $gpl --tokenizer "$tokenizer" --mask-token 511 --lr 0.005 --dropout 0.1 --attention-dropout 0.1 &&
    holds "$(last metrics-1 loss)" "<" 5.2
check "a BERT learns hidden tokens with dropout: $(last metrics-1 loss)"
"$topt" run masked-1.json --data $gpl --tokenizer "$tokenizer" --mask-token 511 --steps "$(steps 50)" --lr 0.005 --save-weights bert --config masked.json >out 2>err &&
    plans classes classes.json --batch 16 --seq 24 --optimizer adam &&
    session classes "$(steps 40)" --data train-classes.jsonl --tokenizer "$tokenizer" --weights bert --config classes.json --lr 0.001 \
        --eval-data test-classes.jsonl --eval-batches 5 && holds "$(last metrics-4 eval_accuracy)" ">" 0.95
check "... then classes: $(last metrics-4 eval_accuracy) of new texts"

# ---- T5 on pairs
[ $held = 0 ] || same=160
plans t5 t5.json --batch 16 --seq 16 --optimizer adam &&
    session t5 "$(steps 600)" --data train-pairs.jsonl --tokenizer "$tokenizer" --lr 0.002 --eval-data test-pairs.jsonl --eval-batches 5 &&
    holds "$(last metrics-4 eval_accuracy)" ">" 0.9
check "a T5 learns pairs: $(last metrics-4 eval_accuracy) of new ones' tokens"
same=

# ---- ViT
plans vit vit.json --batch 16 --optimizer adam &&
    session vit "$(steps 150)" --data train-images-idx3-ubyte --lr 0.005 --eval-data test-images-idx3-ubyte --eval-batches 5 --dropout 0.1 &&
    holds "$(last metrics-4 eval_accuracy)" ">" 0.85
check "a ViT tells pictures apart: $(last metrics-4 eval_accuracy) of new ones"

# In f32, which is alike as long as nothing has grown of what it rounds.
if [ $held = 1 ] && [ -d $fashion ]; then
    number=f32 near=1e-5 same=60
    plans fashion fashion.json --batch 64 --optimizer adamw &&
        session fashion 6000 --data $fashion --order epochs --lr 0.002 --schedule cosine --warmup 200 \
            --eval-data $fashion/t10k-images-idx3-ubyte.gz --eval-batches 156 --eval-every 3000 &&
        holds "$(last metrics-1 eval_accuracy)" ">" 0.86 && holds "$(last metrics-4 eval_accuracy)" ">" 0.86
    check "... of Fashion-MNIST: $(last metrics-1 eval_accuracy), $(last metrics-2 eval_accuracy), $(last metrics-4 eval_accuracy)"
    number=f64 near=1e-6 same=
else
    echo "# Fashion-MNIST is learnt where figures are held, and Debian's dataset-fashion-mnist is installed"
fi

# ---- Mixtral, its experts balanced
plans mixtral mixtral.json --batch 8 --seq 32 --optimizer momentum &&
    session mixtral "$(steps 200)" --data $gpl --tokenizer "$tokenizer" --lr 0.2 --balance 0.05 --clip 1 &&
    [ -n "$(last metrics-4 balance)" ] && holds "$(last metrics-4 balance)" "<" 1.15 && holds "$(last metrics-4 loss)" "<" 5.5
check "a Mixtral's experts are balanced: $(last metrics-4 balance) (1: equal parts), loss $(last metrics-4 loss)"
finish
