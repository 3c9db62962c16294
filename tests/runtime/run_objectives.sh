#!/bin/sh
# run_objectives.sh - what models learn of texts is what they are for: hidden tokens, gaps, labels, answers.
# usage: run_objectives.sh TOPT MPIEXEC TOKENIZER TEXT
topt=$1 mpiexec=$2 tokenizer=$3 text=$4
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

bert='"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 1, "intermediate_size": 64, "max_position_embeddings": 32,
    "vocab_size": 512, "type_vocab_size": 2, "model_type": "bert"'
echo "{\"architectures\": [\"BertForMaskedLM\"], $bert}" >masked.json
echo "{\"architectures\": [\"BertForSequenceClassification\"], $bert}" >classes.json
echo '{"architectures": ["DistilBertForMaskedLM"], "model_type": "distilbert", "dim": 32, "n_heads": 4, "n_layers": 1, "hidden_dim": 64,
    "max_position_embeddings": 32, "vocab_size": 512}' >distil.json
echo '{"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 1,
    "d_ff": 64, "vocab_size": 512}' >t5.json
echo '{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 1, "n_positions": 32,
    "vocab_size": 512}' >gpt.json
awk 'BEGIN { for (i = 0; i < 60; i++) { word = i % 2 ? "free software" : "no warranty"
    print "{\"text\": \"the program is " word " of version " i % 7 "\", \"label\": \"" (i % 2 ? "yes" : "no") "\"}" >"classes.jsonl"
    a = substr("abcdefg", i % 7 + 1, 1)
    print "{\"source\": \"copy " a " of " i "\", \"target\": \"" a a "\"}" >"pairs.jsonl"
    print "{\"prompt\": \"say " a (i % 3 ? " of a long prompt" : "") " : \", \"completion\": \"" a a a "\"}" >"answers.jsonl"
    print "{\"text\": \"the text number " i " of all that there are\"}" >"texts.jsonl" } }'

losses() { sed 's/.*"loss": \([^,]*\),.*/\1/' "$1"; }
optimizer=momentum lr=0.05
# trains MODEL DATA [OPTION...]: on 1, 2 and 4 ranks the same losses, and a rank's with micro-batches; they fall.
trains() {
    model=$1 data=$2
    shift 2
    for gpus in 1 2 4; do
        "$topt" plan "$model.json" --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus $gpus --optimizer $optimizer -o plan$gpus.json >out 2>err &&
            "$mpiexec" -n $gpus "$topt" run plan$gpus.json --data "$data" --steps 30 --lr $lr --metrics metrics$gpus "$@" >out 2>err || return 1
        losses metrics$gpus >losses$gpus
    done
    "$topt" plan "$model.json" --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 1 --micro-batches 2 --optimizer $optimizer -o parts.json >out 2>err &&
        "$topt" run parts.json --data "$data" --steps 30 --lr $lr --metrics parts "$@" >out 2>err && losses parts >lossesparts || return 1
    paste losses1 losses2 losses4 lossesparts | awk '
        { for (i = 2; i <= 4; i++) { d = $i - $1; if (d < 0) d = -d; if (d > 1e-4 * $1) bad = 1 } if (NR == 1) first = $1; last = $1 }
        END { exit bad || NR != 30 || last >= first }'
}
trains masked "$text"
check "an encoder learns tokens that are hidden from it, of characters"
trains distil "$text" --tokenizer "$tokenizer" --mask-token 511
check "... and of a tokenizer's"
trains t5 "$text"
check "an encoder and a decoder learn what was cut out"
trains t5 pairs.jsonl --tokenizer "$tokenizer"
check "... and targets of sources"
optimizer=adamw lr=0.005
tail -n 59 classes.jsonl >others.jsonl # which begins with the other label
trains classes classes.jsonl --tokenizer "$tokenizer" --eval-data others.jsonl --eval-every 30 && grep -q '"eval_accuracy": 1[,}]' metrics4
check "a classifier learns labels, and says how many it meets"
optimizer=momentum lr=0.05
trains gpt answers.jsonl --tokenizer "$tokenizer"
check "a decoder learns answers alone"
trains gpt texts.jsonl --tokenizer "$tokenizer"
check "... and the texts of records"

# of a text that is one character a batch has one label that can be right: what is hidden is not read
# what fills samples up is not seen: with longer ones the losses are the same, of an encoder, of an encoder and a decoder, and
# where the last position is read, so that what fills stands before the text
echo '{"architectures": ["LlamaForSequenceClassification"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": 512}' >last.json
# filled MODEL DATA
filled() {
    for seq in 16 32; do
        "$topt" plan "$1.json" --framework topt --hw lab-cpu --batch 8 --seq $seq --gpus 1 --optimizer momentum -o plan$seq.json >out 2>err &&
            "$topt" run plan$seq.json --data "$2" --tokenizer "$tokenizer" --steps 5 --lr 0.05 --metrics metrics$seq >out 2>err || return 1
        losses metrics$seq >losses$seq
    done
    paste losses16 losses32 | awk '{ d = $1 - $2; if (d * d > 1e-10) bad = 1 } END { exit bad || NR != 5 }'
}
sed 's/ of version [0-9]*//' classes.jsonl >short.jsonl
filled classes short.jsonl && filled t5 pairs.jsonl && filled last short.jsonl
check "attention does not look at what fills samples up"

# what was learnt of hidden tokens helps to learn labels, which a head of its own gives
"$topt" plan masked.json --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 2 -o plan2.json >out 2>err &&
    "$mpiexec" -n 2 "$topt" run plan2.json --data texts.jsonl --tokenizer "$tokenizer" --mask-token 511 --steps 10 --save-weights body --config masked.json >out 2>err &&
    "$topt" plan classes.json --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 2 -o plan2.json >out 2>err &&
    "$mpiexec" -n 2 "$topt" run plan2.json --data classes.jsonl --tokenizer "$tokenizer" --weights body --config classes.json --lr 0.005 --steps 30 \
        --eval-data classes.jsonl --metrics metrics --quiet --save-weights classifier >out 2>err &&
    grep -q '^warning: the weights have no pooler.w, pooler.bias.b, classifier.w, classifier.bias.b, which start anew' err &&
    grep -q '"eval_accuracy": 1[,}]' metrics &&
    "$mpiexec" -n 2 "$topt" run plan2.json --data classes.jsonl --tokenizer "$tokenizer" --weights classifier --steps 1 --lr 1e-9 \
        --eval-data classes.jsonl --eval-every 1 --metrics again --quiet >out 2>err && [ ! -s err ] && grep -q '"eval_accuracy": 1[,}]' again
check "a classifier starts from an encoder's weights, and comes back whole"

i=0
while [ $i -lt 64 ]; do
    printf 'ab'
    i=$((i + 1))
done >two.txt
"$topt" plan distil.json --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 1 -o plan1.json >out 2>err &&
    "$topt" run plan1.json --data two.txt --steps 1 --metrics masked1 >out 2>err &&
    "$topt" run plan1.json --data two.txt --steps 1 --seed 2 --metrics masked2 >out 2>err &&
    "$topt" run plan1.json --data two.txt --steps 1 --metrics again >out 2>err &&
    [ "$(losses masked1)" = "$(losses again)" ] && [ "$(losses masked1)" != "$(losses masked2)" ]
check "what is hidden is a function of the seed"
"$mpiexec" -n 4 "$topt" run plan4.json --data texts.jsonl --tokenizer "$tokenizer" --steps 6 --lr 0.05 --checkpoint saved --every 3 --metrics whole >out 2>err &&
    rm -r saved/*6 && "$topt" plan gpt.json --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 2 --optimizer momentum -o plan2.json >out 2>err &&
    "$mpiexec" -n 2 "$topt" run plan2.json --data texts.jsonl --tokenizer "$tokenizer" --steps 6 --lr 0.05 --checkpoint saved --resume --metrics rest >out 2>err &&
    losses whole | tail -3 >want && losses rest >got && paste got want | awk '{ d = $1 - $2; if (d * d > 1e-8) bad = 1 } END { exit bad || NR != 3 }'
check "after a checkpoint training goes on with the same samples on other ranks"

# a text whose samples are unlike, one an epoch a batch: each epoch has the same samples, so that a step of rate 0 sees the same mean
awk 'BEGIN { for (i = 0; i < 8; i++) { for (k = 0; k < 16; k++) printf "%c", 97 + (i * k * k + i) % 23 } print "" }' >eight.txt
"$topt" plan gpt.json --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 1 --optimizer sgd -o plan1.json >out 2>err &&
    "$topt" run plan1.json --data eight.txt --order epochs --steps 4 --lr 1e-12 --metrics epochs >out 2>err &&
    "$topt" run plan1.json --data eight.txt --steps 4 --lr 1e-12 --metrics random >out 2>err &&
    losses epochs | awk 'NR == 1 { first = $1 } { d = $1 - first; if (d * d > 1e-10) bad = 1 } END { exit bad || NR != 4 }' &&
    ! losses random | awk 'NR == 1 { first = $1 } { d = $1 - first; if (d * d > 1e-10) bad = 1 } END { exit bad }'
check "by epochs each sample comes once before any comes again"

run() { "$topt" plan "$1.json" --framework topt --hw lab-cpu --batch 8 --seq 16 --gpus 1 -o refused.json >plan.out 2>&1 && shift && "$topt" run refused.json "$@"; }
refused 1 'has no labels, which .loss. takes: give records' run classes --data "$text"
check "a text is not what a classifier learns"
refused 1 'need .source. and .target.' run t5 --data answers.jsonl --tokenizer "$tokenizer"
check "... nor answers what an encoder and a decoder do"
refused 1 'which token hides others' run distil --data "$text" --tokenizer "$tokenizer"
check "no mask"
refused 1 'it has an encoder beside a decoder' run t5 --data "$text" --objective next
check "an encoder and a decoder that would read what they say"
refused 2 'records are read by a --tokenizer' run gpt --data answers.jsonl
check "records by character"
sed 's/"label": "no"/"label": 7/' classes.jsonl >seven.jsonl
refused 1 'one of as many words' run classes --data seven.jsonl --tokenizer "$tokenizer"
check "a class that there is not"
finish
