#!/bin/sh
# run_text.sh - texts become tokens, train a model, and come out of it.
# usage: run_text.sh TOPT TOKENIZERS
topt=$1 tokenizers=$2
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -40 >text
cat >gpt.json <<'EOT'
{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 32, "n_head": 2, "n_layer": 1, "n_positions": 32,
 "tie_word_embeddings": true, "vocab_size": 424}
EOT
cp "$tokenizers/gpt2.json" tokenizer.json
"$topt" tokenize . text -o text.bin >out 2>err && grep -q '^[0-9]* tokens of a vocabulary of 420, in text.bin$' out
check "tokens of a text: $(cat out)"
"$topt" plan gpt.json --framework topt --hw lab-cpu --batch 4 --seq 24 --gpus 1 -o plan >out 2>err &&
    "$topt" run plan --data text.bin --steps 150 --lr 0.01 --report bin --quiet --save-weights gpt --config gpt.json \
        --checkpoint saved >out 2>err &&
    "$topt" run plan --data text --tokenizer tokenizer.json --steps 150 --lr 0.01 --report text.report --quiet >out 2>err &&
    grep '"losses"' -A 150 bin | grep '\.' >one && grep '"losses"' -A 150 text.report | grep '\.' >two && [ -s one ] && cmp -s one two
check "a model trains by them, and by the text itself to the same losses"
cp tokenizer.json gpt
begin='itself up over four quiet machines. a small crowd'
"$topt" generate gpt --prompt "$begin" --tokens 12 --seq 24 --temperature 0 >said 2>err && grep -q 'crowd of numbers adds' said
check "... and has learned it: $(cat said)"
cp gpt.json renamed.json
"$topt" generate renamed.json --checkpoint saved --tokenizer gpt --prompt "$begin" --tokens 12 --seq 24 --temperature 0 >again 2>err &&
    cmp -s said again
check "... so has its checkpoint, whatever the name of the model's file"
"$topt" generate gpt --prompt "$begin" --tokens 16 --seed 5 --temperature 1 >said 2>err &&
    "$topt" generate gpt --prompt "$begin" --tokens 16 --seed 5 --temperature 1 --whole >again 2>err && cmp -s said again
check "... the same tokens whether keys and values are kept or not"
sed 's/"vocab_size": *[0-9]*/"vocab_size": 424/' "$tokenizers/../weights/lfm2_moe/config.json" >moe.json
"$topt" plan moe.json --framework topt --hw lab-cpu --batch 4 --seq 16 --gpus 1 --capacity 4 -o moe.plan >out 2>err &&
    "$topt" run moe.plan --data text --tokenizer tokenizer.json --steps 20 --lr 0.01 --quiet --save-weights moe --config moe.json >out 2>err &&
    "$topt" generate moe --prompt "$begin" --tokens 16 --seed 5 --temperature 1 >said 2>err &&
    "$topt" generate moe --prompt "$begin" --tokens 16 --seed 5 --temperature 1 --whole >again 2>err && cmp -s said again &&
    [ "$(wc -c <said)" -gt "${#begin}" ]
check "... of a mixture of experts, too"
"$topt" generate gpt --prompt 'a small crowd of numbers adds itself up over four quiet machines' --tokens 8 --seq 6 \
    --temperature 0 >out 2>err && grep -q 'quiet machines.*' out
check "a text longer than what the model sees"
"$topt" generate gpt --tokens 8 --seed 3 --top-k 0 --temperature 1.5 >out 2>err && [ -s out ]
check "from the beginning of a text"
# the tokenizer goes with the weights: the folder writes text as it is; tokens that are made already need it for nothing else
"$topt" run plan --data text.bin --tokenizer tokenizer.json --steps 2 --report two --quiet --save-weights with --config gpt.json >out 2>err &&
    cmp -s tokenizer.json with/tokenizer.json && "$topt" generate with --tokens 2 >out 2>err && [ -s out ] &&
    "$topt" run plan --data text.bin --steps 1 --quiet --weights with --save-weights on >out 2>err && cmp -s tokenizer.json on/tokenizer.json
check "weights keep the tokenizer that texts were read by, or that was beside them"
grep -q "'text' is read with a token for each byte value, the model's vocabulary has 424" err && no=1 || no=0
"$topt" run plan --data text --steps 1 >out 2>err && [ $no = 0 ] && grep -q '^1 step on 1 rank: ' out &&
    grep -q "^warning: 'text' is read with a token for each byte value, the model's vocabulary has 424; --tokenizer" err
check "a text without a tokenizer: $(cat err)"
mkdir empty
refused 1 "no text in 'empty'" "$topt" tokenize . empty -o out.bin
check "no text"
refused 2 "there is no 'saved/tokenizer.json'; --tokenizer FILE" "$topt" generate saved
check "no tokenizer beside the model"
refused 2 "'gpt.json' has no weights beside it: .*--checkpoint DIR" "$topt" generate gpt.json --tokenizer gpt
check "a config alone"
refused 1 'is not known here' "$topt" tokenize gpt.json text -o out.bin
check "what is no tokenizer"
refused 2 'has to end in .bin' "$topt" tokenize . text -o tokens
check "tokens by another name"
refused 1 'the model.s vocabulary ends at' "$topt" run plan --data text --tokenizer "$tokenizers/licenses.json"
check "a vocabulary that the model lacks"
sed 's/424/300/' gpt.json >less.json
refused 1 "topt generate: none of the 1 checkpoints can be used: .*is of another model: " \
    "$topt" generate less.json --checkpoint saved --tokenizer gpt
check "a checkpoint of another model"
refused 1 'no checkpoint in' "$topt" generate gpt.json --checkpoint none --tokenizer gpt
check "no checkpoint"
echo '{"model_type": "bert", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 424, "intermediate_size": 32}' >bert.json
refused 1 'does not write text' "$topt" generate bert.json --tokenizer gpt
check "a model that sees what comes after"
finish
