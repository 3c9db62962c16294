#!/bin/sh
# unequal.sh ROOT TOPT - groups of unlike devices: which of them a job takes, and the questions about all of them.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"

group() # group NAME SLOWER MEMORY
{
    printf '{"name":"%s","nodes":1,"gpus_per_node":2,
      "device":{"name":"rank %s","memory_bytes":%s,"flops":{"f32":%s},"efficiency":{"matmul":0.6,"attention":0.1,
        "elementwise":0.05},"memory_bandwidth":%s,"launch_ns":2000,"source":"assumed"},
      "links":[{"level":"node","bytes_per_second":4e9,"latency_ns":2000,"source":"assumed"}]}' "$1" "$1" "$3" \
        "$(awk "BEGIN { print 4e10 / $2 }")" "$(awk "BEGIN { print 1e10 / $2 }")"
}
cluster() # cluster NAME GROUP,GROUP: a profile
{
    printf '{"format":"topt-hw/1","name":"%s","groups":[%s],"between":{"bytes_per_second":3e9,"latency_ns":20000,"source":"assumed"}}' \
        "$1" "$2" >"$1.json"
}
# whole NAME FILE: the first member of that name
whole()
{
    tr -d '\n' <"$2" | sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p"
}
cat >gpt.json <<'END'
{"model_type":"gpt2","n_embd":128,"n_layer":2,"n_head":4,"n_positions":128,"vocab_size":512}
END
ask="--batch 32 --seq 64 --framework topt --precision f32"
cluster mixed "$(group fast 1 1073741824),$(group slow 2.3 1073741824)"
cluster small "$(group fast 1 8000000),$(group slow 2.3 8000000)"
cluster three "$(group fast 1 1073741824),$(group slow 2.3 1073741824),$(group slowest 4 1073741824)"

# shellcheck disable=SC2086
"$topt" plan gpt.json --hw mixed.json $ask >out 2>err && grep -q '^1 GPU: ' out && grep -q '^groups *fast: .* per step on 1 GPU$' out &&
    grep -q ' fast and slow: .* per step on 4 GPUs' out
check "the fewest devices: one of the faster group, with the other choices beside it"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw mixed.json --gpus 2 $ask --json >plan 2>err && grep -q '"group": *"fast"' plan
check "two devices: those of the group in which two are faster"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw mixed.json --gpus 4 $ask --json >plan 2>err && grep -q '"groups"' plan && ! grep -q '"group":' plan
check "all of them: shares"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw three.json --gpus 4 $ask --json >plan 2>err && tr -d ' \n' <plan | grep -q '"groups":\["fast","slow"\]' &&
    [ "$(whole gpus plan)" = 4 ]
check "four of six devices: two of the groups"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw mixed.json --gpus 3 $ask -o joint.json >out 2>err && grep -q '^groups *2 of fast and 1 of slow: .* per step on 3 GPUs' out &&
    grep -q ' 1 of fast and 2 of slow: ' out && grep -q '^fast *2 x' out && grep -q '^slow *1 x' out && grep -q '"n0:3"' joint.json
check "three devices: two of the faster group and one of the other, as one plan too"
"$topt" explain joint.json >out 2>err && grep -q 'of the slowest group, \(fast\|slow\)$' out && ! grep -q '1[0-9][0-9] %' out
check "it is explained as the slowest group takes it"
# shellcheck disable=SC2086
refused 2 'no groups of mixed have 5 devices in numbers that are booked: 2 of fast, 2 of slow' "$topt" plan gpt.json --hw mixed.json --gpus 5 $ask
check "more devices than there are"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw three.json $ask --groups slow,slowest --json >plan 2>err && grep -q '"group": *"slow"' plan && ! grep -q '"fast"' plan
check "groups by name: the others are not asked about"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw mixed.json $ask --lines plan >out 2>err && grep -q '^TOPT_WHY=.*GPUs of group fast, as one job takes GPUs of one kind' out
check "lines for sbatch are of one group"
# shellcheck disable=SC2086
refused 2 'lines are of a job that has GPUs of one kind' "$topt" plan gpt.json --hw mixed.json $ask --lines plan --groups fast,slow
check "... and not of several"
# shellcheck disable=SC2086
refused 2 "there is no group 'fst' in mixed: it has fast, slow" "$topt" plan gpt.json --hw mixed.json $ask --groups fst
check "an unknown group"
cat >llama.json <<'END'
{"model_type":"llama","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":4,
 "intermediate_size":1024,"vocab_size":8000,"hidden_act":"silu","tie_word_embeddings":false}
END
"$topt" plan llama.json --hw a100-v100 --batch 64 --seq 512 --memory 1GiB --framework topt --space canonical \
    --factors all >out 2>err && grep -q ' a100 and v100: .* per step on 16 GPUs' out
check "moves between unequal parts, where memory is costed again"
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw small.json $ask --max-gpus 4 >out 2>err
status=$?
grep -q 'on 4 GPUs of small\|hold it' out && { [ $status = 0 ] || [ $status = 3 ]; }
check "where no group holds it alone, groups together are asked"
# shellcheck disable=SC2086
"$topt" frontier gpt.json --hw mixed.json --gpus 4 $ask --space uniform --json >all 2>err &&
    "$topt" frontier gpt.json --hw mixed.json --gpus 2 $ask --space uniform --json >two 2>err && grep -q '"hw": *"fast"' two &&
    tr -d ' \n' <all | grep -q '"exact":false'
check "frontiers: of all by shares, of two devices those of the faster group"
# shellcheck disable=SC2086
"$topt" frontier gpt.json --hw mixed.json --gpus 3 $ask --space uniform --json >three 2>err && tr -d ' \n' <three | grep -q '"gpus":3,' &&
    [ "$(grep -c '"time_ns"' three)" -ge 1 ]
check "... of three those of both"
least=$(tr -d ' \n' <all | grep -o '"time_ns":[0-9]*' | cut -d: -f2 | sort -n | head -1)
# shellcheck disable=SC2086
"$topt" plan gpt.json --hw mixed.json --gpus 4 $ask --space uniform --json >plan 2>err &&
    tr -d ' \n' <plan | grep -q "\"time_ns\":$least[,}]"
check "its fastest point is the plan's time, $least ns"
# shellcheck disable=SC2086
"$topt" compare gpt.json --hw mixed.json --gpus 4 $ask --space uniform --proposals 1 >out 2>err && grep -q '^ft  *yes' out &&
    grep -q '^equal-shares  *yes .* 1\.[1-9]' out && ! grep -q '^equal-shares.*faster' out
check "ft by shares is faster than its own search on devices like the least"
# shellcheck disable=SC2086
"$topt" compare gpt.json --hw mixed.json --gpus 3 $ask --space uniform --proposals 1 >out 2>err && grep -q '^ft  *yes' out &&
    grep -q '^accpar *no plan' out && grep -q 'it cuts each kind' out
check "systems on three of them; AccPar cuts both kinds alike"

cat >deep.json <<'END'
{"model_type":"llama","hidden_size":1024,"num_hidden_layers":12,"num_attention_heads":8,"num_key_value_heads":8,
 "intermediate_size":4096,"vocab_size":32000,"hidden_act":"silu","tie_word_embeddings":false,"max_position_embeddings":2048}
END
stages="--hw a100-v100 --gpus 16 --batch 64 --seq 1024 --pipeline 2"
# shellcheck disable=SC2086
"$topt" plan deep.json $stages --framework megatron -o staged.json >out 2>err && grep -q ' by one pipeline of 2 stages, each on GPUs of one group$' out &&
    grep -q '^stage 1 *8 x ' out && grep -q '^stage 2 *8 x ' out && grep -q '^ *ranks 0 to 7 on [av]100, 8 to 15 on [av]100$' out
check "stages on groups: a line a stage, and which ranks are where"
a100=$(sed -n 's/^stage .*A100[^ ]* *\([0-9]*\) layers.*/\1/p' out)
v100=$(sed -n 's/^stage .*V100[^ ]* *\([0-9]*\) layers.*/\1/p' out)
[ $((a100 + v100)) = 12 ] && [ "$v100" -lt "$a100" ]
check "the older devices have fewer layers: $v100 beside $a100"
# shellcheck disable=SC2086
"$topt" plan deep.json $stages --framework megatron --json >plan 2>err && tr -d ' \n' <plan | grep -q '"stages":\[{"memory_bytes":[0-9]*,"busy_ns":[0-9]*,"group":"[av]100"' &&
    "$topt" explain staged.json >out 2>err && grep -q '^Pipeline: 2 stages' out
check "as a document, and explained"
"$topt" launch staged.json >out 2>err && grep -q -e '--pipeline-model-parallel-layout' out && grep -q -e '--node-rank="\$node"' out &&
    grep -q 'NODE_RANK, 0 on [av]100, 1 on$\|NODE_RANK, 0 on [av]100, 1 on [av]100' out
check "topt launch writes the uneven cut, and where each node is"
first=$(sed -n 's/.*NODE_RANK, 0 on \([av]100\), 1.*/\1/p' out)
"$topt" launch staged.json --sbatch >out 2>err &&
    [ "$(sed -n 's/^#SBATCH \(--partition=.*\|hetjob\)$/\1/p' out | tr '\n' ' ')" = "--partition=$first hetjob --partition=$([ "$first" = a100 ] && echo v100 || echo a100) " ]
check "... and a heterogeneous job, whose components are in the order of the stages"
refused 3 'run: topt launch PLAN --sbatch' "$topt" launch staged.json --env
check "... no words for one srun"
# shellcheck disable=SC2086
"$topt" plan deep.json $stages --framework deepspeed --json >plan 2>err && tr -d ' \n' <plan | grep -q '"layers":\[6,6\]'
check "DeepSpeed's stages have equally many layers"
# shellcheck disable=SC2086
"$topt" plan deep.json $stages --virtual-stages 2 --framework megatron >out 2>err
[ $? = 3 ] && grep -q 'one chunk of layers' out
check "several chunks a stage are refused by name"
finish
