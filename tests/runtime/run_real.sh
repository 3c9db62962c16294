#!/bin/sh
# run_real.sh - a small GPT learns a real text by real tokens: on 4 ranks that split it in three ways, killed twice, then on
# 2, 3 and 8 ranks; it ends where a single rank that nobody disturbed ends, and writes sentences.
# usage: run_real.sh TOPT MPIEXEC TOKENIZER TEXT STEPS
topt=$1 mpiexec=$2 tokenizer=$3 text=$4 steps=$5
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
[ -r "$text" ] || {
    echo "1..0 # SKIP there is no $text"
    exit 77
}

cat >gpt.json <<'EOT'
{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 64,
 "tie_word_embeddings": true, "vocab_size": 512}
EOT
"$topt" tokenize "$tokenizer" "$text" -o tokens.bin >out 2>err && grep -q '^[0-9]* tokens of a vocabulary of 512' out
check "the text is tokenised: $(cat out)"
for ranks in 1 2 3 4 8; do
    "$topt" plan gpt.json --framework topt --hw lab-cpu --batch 8 --seq 64 --gpus $ranks -o plan$ranks.json >out 2>err
    check "a plan for $ranks: $(sed -n 's/.*"strategy": "\(.*\)".*/\1/p' plan$ranks.json | head -1)"
done
grep -q '"strategy": "data 2 x tensor 2 with ZeRO-[123]' plan4.json
check "four ranks split samples, features and what stays"

run() { # run RANKS ARGUMENTS...
    ranks=$1
    shift
    "$mpiexec" -n "$ranks" sh rank.sh "$topt" run "plan$ranks.json" --data tokens.bin --steps "$steps" --lr 0.004 \
        --schedule cosine --warmup 30 --clip 1 --dtype f64 "$@" >out 2>err
}
cat >rank.sh <<'EOT'
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
EOT
newest() { # step of the last checkpoint
    last=$(ls saved 2>/dev/null | grep -v tmp | tail -1 | tr -dc 0-9)
    expr "0$last" + 0
}
every=$((steps / 20))
# hurt SIGNAL RANKS PARTS: they train on for so many twentieths of the steps, then one of them gets the signal; the run's status
hurt() {
    rm -f pid.*
    until_step=$(($(newest) + $3 * every))
    run "$2" --checkpoint saved --every $every --resume &
    job=$!
    while [ "$(newest)" -lt $until_step ] && kill -0 $job 2>/dev/null; do
        sleep 0.1
    done
    kill -"$1" "$(cat pid.1)"
    wait $job
}
hurt KILL 4 2
[ $? -ne 0 ] && grep -q '^topt run: rank 1 .*has ended without a word' err
check "4 ranks, one of them killed: $(grep '^topt run' err)"
hurt KILL 4 2
[ $? -ne 0 ] && grep -q '^note: going on after step' err
check "... they go on, and are killed again"
for ranks in 2 3; do
    hurt USR1 $ranks 7
    [ $? -eq 75 ] && grep -q '^note: told to end: saved' err
    check "$ranks ranks go on, and are told to end: $(grep '^note: going' err | tail -1)"
done
run 8 --checkpoint saved --every $every --resume --report eight.json --save-weights gpt --config gpt.json &&
    [ "$(newest)" = "$steps" ]
check "8 ranks go on to the end: $(tail -1 out)"

run 1 --report one.json --quiet
check "one rank, undisturbed"
last() { # the loss of the last step
    tr -d '\n' <"$1" | sed 's/.*"losses": \[\([^]]*\)\].*/\1/' | tr -s ', ' '\n' | grep . | tail -1
}
echo "$(last eight.json) $(last one.json)" | awk '{ d = ($1 - $2) / $2; if (d < 0) d = -d; exit !($2 > 0 && d < 1e-5) }'
check "the last losses are the same: $(last eight.json), $(last one.json)"

# words of a text, a line each
words() { tr -cs 'A-Za-z' '\n' | grep .; }
known() { # known SHARE: is that share of the words in 'said' in the text?
    words <"$text" | sort -u >vocabulary
    words <said | awk -v share="$1" 'NR == FNR { in_text[$1] = 1; next } { n++; k += $1 in in_text }
        END { print "# " k " of " n " words are words of the text"; exit !(n > 20 && k >= share * n) }' vocabulary -
}
cp "$tokenizer" gpt/tokenizer.json
"$topt" generate gpt --prompt "You may not" --tokens 120 --temperature 0.3 >said 2>err && sed 's/^/# /' said && known 0.75
check "it writes sentences"
"$topt" generate gpt --prompt "You may not" --tokens 120 --temperature 0.3 --whole >again 2>err && cmp -s said again &&
    "$topt" generate gpt --prompt "You may not" --tokens 120 --temperature 0.3 --seed 2 >other 2>err && ! cmp -s said other
check "... the same for a seed, by whole passes, too, and others for another seed"
"$topt" generate gpt.json --tokenizer "$tokenizer" --checkpoint saved --prompt "You may not" --tokens 120 --temperature 0.3 >again 2>err &&
    cmp -s said again
check "... and from the checkpoint"
finish
