#!/bin/sh
# run_checkpoint.sh - runs that are killed, told to end, cut and moved to other numbers of ranks
# go on as one that nobody disturbed.
# usage: run_checkpoint.sh TOPT_RUNTIME MAKE_PLAN MPIEXEC
runtime=$1 make_plan=$2 mpiexec=$3
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
for gpus in 1 2 3 8; do
    "$make_plan" gpt $gpus 7 1 plan$gpus- >out 2>err
    check "a plan for $gpus devices"
done
run() { # run RANKS ARGUMENTS...
    ranks=$1
    shift
    "$mpiexec" -n "$ranks" "$runtime" run "plan$ranks-0.json" --data text "$@" >out 2>err
}
losses() { # losses REPORT: a line each, with the number of its step
    first=$(sed -n 's/.*"first_step": \([0-9]*\).*/\1/p' "$1")
    tr -d '\n' <"$1" | sed 's/.*"losses": \[\([^]]*\)\].*/\1/' | tr -s ', ' '\n' | grep . |
        awk -v at="$first" '{ print ++at, $1 }'
}
agree() { # agree REPORT: its losses with those of the whole run, within 1e-5
    losses "$1" | awk 'NR == FNR { want[$1] = $2; next }
        { d = ($2 - want[$1]) / want[$1]; if (d < 0) d = -d; if (!($1 in want) || d > 1e-5) bad = 1; n++ }
        END { exit bad || !n }' whole - && [ "$(losses "$1" | wc -l)" -ge "${2:-1}" ]
}
"$runtime" run plan1-0.json --data text --steps 60 --report whole.json --quiet >out 2>err &&
    losses whole.json >whole && [ "$(wc -l <whole)" = 60 ]
check "one process, undisturbed"

run 8 --steps 25 --checkpoint ck --every 10 &&
    [ "$(ls ck | tr '\n' ' ')" = "step-000000010 step-000000020 step-000000025 " ]
check "8 ranks save every 10 steps, and at the end"
run 8 --steps 3 --checkpoint counted --every 2 --report r8 && copy=$(sed -n 's/.*"beside_bytes": \([0-9]*\).*/\1/p' r8) &&
    largest=$(wc -c counted/step-000000003/rank-*.safetensors | sed '/total/d' | awk '$1 > most { most = $1 } END { print most }') &&
    [ "$copy" -gt 1000 ] && [ "$copy" = "$largest" ] &&
    grep -q '"checkpoints": 2,' r8 && grep -q '"checkpoint_ns": [0-9]' r8
check "the copy that is counted is what the largest rank writes: $copy bytes"
run 3 --steps 40 --checkpoint ck --every 10 --resume --report r3 && agree r3 15 && grep -q 'after step 25' err
check "... 3 ranks go on"
run 2 --steps 60 --checkpoint ck --every 10 --resume --report r2 --keep 2 && agree r2 20 &&
    [ "$(ls ck | tr '\n' ' ')" = "step-000000050 step-000000060 " ]
check "... then 2, which keep 2 checkpoints"
run 2 --steps 60 --checkpoint ck --resume
check "nothing is left to do"
sed -n 's/^note: //p' err | grep -qx 'the checkpoint is after step 60, so nothing is left to do of --steps 60'
check "... which is said: $(cat err)"
refused 2 "^topt run: --checkpoint: 'ck' has a checkpoint after step 60; --resume goes on from it" \
    "$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --steps 5 --checkpoint ck --quiet &&
    [ "$(ls ck | tr '\n' ' ')" = "step-000000050 step-000000060 " ]
check "another training into the same folder"

# weights that are no numbers: the last step's are saved, as nobody has seen the loss that they give
run 2 --steps 3 --checkpoint bad --every 1 && run 2 --steps 4 --checkpoint bad --resume --lr 1e300
check "a last step at too high a rate"
mkdir bad/step-000000009.tmp && echo begun >bad/step-000000009.tmp/rank-00000.safetensors
refused 1 "not a number in the first step after the checkpoint, .*without 'bad/step-000000004' --resume takes an older one" \
    "$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --steps 9 --checkpoint bad --resume --quiet
check "... is told apart from a rate that is too high"
rm -r bad/step-000000004
run 2 --steps 5 --checkpoint bad --resume --keep 9 && grep -q 'after step 3' err &&
    [ "$(ls bad | tr '\n' ' ')" = "step-000000002 step-000000003 step-000000005 " ]
check "... the run goes on without it, and nothing half written is left"

# cut short, changed, foreign: the last good one is used
head -c 3000 ck/step-000000060/rank-00001.safetensors >cut && cp cut ck/step-000000060/rank-00001.safetensors
run 3 --steps 60 --checkpoint ck --resume --every 100 --keep 9 --report r3 && agree r3 10 &&
    grep -q "^warning: ck/step-000000060 can't be used: .*ck/step-000000060/rank-00001.safetensors: is cut short" err
check "a file that was cut short"
truncate -s -4 ck/step-000000060/rank-00001.safetensors
run 2 --steps 60 --checkpoint ck --resume --keep 9 && grep -q "rank-00001.safetensors has [0-9]* bytes, [0-9]* were written" err
check "... by a few bytes"
rm -r ck/step-000000060
printf 'x' | dd of=ck/step-000000050/rank-00000.safetensors bs=1 seek=4000 conv=notrunc 2>/dev/null
refused 1 'none of the 1 checkpoints can be used: .*is not as it was written' \
    "$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --steps 60 --checkpoint ck --resume --quiet
check "a file that was changed, and no other checkpoint"
mkdir -p ck/step-000000070 && echo '{}' >ck/step-000000070/index.json
"$make_plan" mlp 1 7 1 mlp- >out 2>err && "$runtime" run mlp-0.json --steps 3 --data synthetic --checkpoint other >out 2>err &&
    cp -r other/step-000000003 ck/step-000000080
refused 1 'none of the 3 checkpoints' \
    "$runtime" run plan1-0.json --data text --steps 90 --checkpoint ck --resume --quiet
check "checkpoints of other models"
"$runtime" run plan1-0.json --data text --steps 90 --checkpoint ck --resume >out 2>err
grep -q "step-000000080 can't be used: is of another model" err && grep -q "step-000000070 can't be used: " err
check "... are named"
refused 1 'was trained by momentum' "$runtime" run mlp-0.json --data synthetic --optimizer adam --checkpoint other --resume
check "another optimizer"
sed 's/"name": *"mlp",/"name": "renamed",/' mlp-0.json >renamed.json && ! cmp -s mlp-0.json renamed.json &&
    "$runtime" run renamed.json --data synthetic --steps 5 --checkpoint other --resume >out 2>err && grep -q 'going on after step 3' err
check "a checkpoint is of the model's shapes, whatever it is called"
"$runtime" run mlp-0.json --data synthetic --steps 10 --schedule cosine --checkpoint cosine >out 2>err &&
    "$runtime" run mlp-0.json --data synthetic --steps 20 --schedule cosine --checkpoint cosine --resume --quiet >out 2>err &&
    sed -n 1p err | grep -q "^warning: the cosine of the learning rate now ends at step 20, the checkpoint.s at 10: it goes on at"
check "other --steps say what becomes of the learning rate, under --quiet, too"
"$runtime" run plan1-0.json --data text --steps 5 --checkpoint new --resume >out 2>err && grep -q 'no checkpoint' err
check "nothing to resume: from the start"
refused 2 'from where' "$runtime" run plan1-0.json --data text --resume
check "--resume of nothing"

# killed twice, wherever it was; then to the end
rm -rf ck
cat >rank.sh <<'END'
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
trap '' XFSZ
exec "$@"
END
newest() { # newest: step of the last checkpoint
    last=$(ls ck 2>/dev/null | grep -v tmp | tail -1 | tr -dc 0-9)
    expr "0$last" + 0
}
wait_for() { # wait_for STEP: is there a checkpoint of at least that step?
    for i in $(seq 300); do
        [ "$(newest)" -ge "$1" ] && return 0
        sleep 0.1
    done
    return 1
}
killed() { # killed SIGNAL RANKS: the run is, some steps after it went on; its status
    rm -f pid.*
    target=$(($(newest) + 40))
    "$mpiexec" -n "$2" sh rank.sh "$runtime" run "plan$2-0.json" --data text --steps 100000000 --dtype f64 \
        --checkpoint ck --every 20 --resume --report killed >out 2>err &
    job=$!
    wait_for $target
    kill -"$1" "$(cat pid.1)"
    wait $job
}
killed KILL 2
[ $? -ne 0 ]
check "killed"
killed KILL 3
[ $? -ne 0 ]
check "... twice"
killed TERM 2
[ $? -eq 75 ] && grep -q '^note: told to end: saved after step' err &&
    grep -q '"ended": "told to end (SIGTERM or SIGUSR1) after step [0-9]*"' killed
    grep -q '"ended": "told to end (SIGTERM or SIGUSR1) after step' killed
check "told to end: it saves, and says so by its exit status"
last=$(newest)
run 8 --steps $((last + 10)) --checkpoint ck --resume --report rest --dtype f64 && grep -q "after step $last" err
check "... and goes on from there, step $last, with 8 ranks"
"$runtime" run plan1-0.json --data text --steps $((last + 10)) --dtype f64 --report whole.json --quiet >out 2>err &&
    losses whole.json >whole && agree rest 10
check "... as if nothing had been"

# no room
refused 1 "no room for a checkpoint in 'full'" sh -c 'trap "" XFSZ; ulimit -f 4; exec "$@"' sh \
    "$runtime" run plan1-0.json --data text --checkpoint full
check "no room for a checkpoint is said before the first step"
rm -rf ck
"$mpiexec" -n 2 sh rank.sh "$runtime" run plan2-0.json --data text --steps 100000000 --checkpoint ck --every 20 \
    --report partial >out 2>err &
job=$!
wait_for 20
began=$(date +%s)
prlimit --pid "$(cat pid.1)" --fsize=2048
wait $job
status=$?
[ $status -eq 1 ] && [ "$(grep -c '^topt run: ' err)" -eq 1 ] && grep -q "^topt run: write 'ck/step-.*': File too large" err &&
    [ $(($(date +%s) - began)) -lt 10 ]
check "a disk that fills up: $(grep '^topt' err)"
grep -q '"ended": ".*write' partial && ls ck | grep -q '^step-[0-9]*$' && ! ls ck | grep -q tmp
check "... what was saved before stays, and there is a report"
finish
