#!/bin/bash
# test_doors.sh - one question at every door: topt plan, topt client, REST with JSON, what the dashboard asks, and sbatch
# answer with one plan.
. "$(dirname "$0")/planner.sh"

tunnel=
stop_planner()
{
    [ -z "$tunnel" ] || kill "$tunnel"
    stop_toptd
}

start_all
rest() { curl -s --unix-socket toptd.sock "$@"; }
of() # FIELD < JSON
{
    python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]))' "$1"
}

mkdir small-llama large-llama
cat >small-llama/config.json <<'M'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
 "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "vocab_size": 4096, "max_position_embeddings": 128,
 "rms_norm_eps": 1e-5, "tie_word_embeddings": false}
M
cat >large-llama/config.json <<'M'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
 "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
 "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "_name_or_path": "somebody/else"}
M
cp "$source_dir/deploy/quickstart/gpt-small.json" .
cat >megatron.sh <<'M'
#!/bin/bash
torchrun pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 64 \
    --max-position-embeddings 64 --position-embedding-type rope --vocab-size 4096 --global-batch-size 16
M

# A question's fields as options of commands, of sbatch, and as members of JSON.
options() { local f; for f in "$@"; do echo "--${f/=/ }" | tr _ -; done | xargs; }
topt_options() { local f; for f in "$@"; do echo "--topt-$f" | tr _ -; done | xargs; }
members() # FIELD=VALUE...
{
    local f v all=
    for f in "$@"; do
        v=${f#*=}
        case $v in *[!0-9.]*) v="\"$v\"" ;; esac
        all+=",\"${f%%=*}\":$v"
    done
    echo "$all"
}

# With the name that the plan has at all doors; 'more': how sbatch is to be asked, besides.
doors() # TEXT MODEL NAME MORE FIELD=VALUE...
{
    local text=$1 model=$2 name=$3 more=$4 file=$2 id options got sbatch mode
    shift 4
    [ -d "$model" ] && file=$model/config.json
    options=$(options "$@")
    # shellcheck disable=SC2086 # options are words
    "$TOPT" plan "$model" $options --json >cli.json 2>err
    id=$(of plan_id <cli.json)
    like "$id" p- "$text: topt plan gives $id, $(of gpus <cli.json) GPUs"
    # shellcheck disable=SC2086
    is "$("$TOPT" client plan "$model" $options --json --url "$url" | of plan_id)" "$id" "$text: topt client"
    if [ "${file%.json}" != "$file" ]; then
        is "$(echo "{\"name\":\"$name\",\"model\":$(cat "$file")$(members "$@")}" |
            rest -H 'Content-Type: application/json' -d @- http://localhost/v1/plan | of plan_id)" \
            "$id" "$text: REST with JSON"
    else
        is "$(rest --data-binary "@$file" "http://localhost/v1/plan?name=$name$(printf '&%s' "$@")" | of plan_id)" \
            "$id" "$text: REST with the file"
    fi
    got=$("$TOPT" client add-model "$model" --url "$url" | cut -d' ' -f1)
    is "$(rest -H 'Content-Type: application/json' -d "{\"model_id\":\"$got\"$(members "$@")}" \
        http://localhost/v1/plan | of plan_id)" "$id" "$text: by the model's id, as the dashboard asks"
    [ "$text" != "a large model" ] || page "$text" "$got" "$id" "$@"
    # shellcheck disable=SC2086
    sbatch --parsable $(topt_options "$@") --topt-model="$model" $more -o out --wrap env >job 2>err
    is "$(sed -n 's/.*; plan \(p-[0-9a-f]*\).*/\1/p' err)" "$id" "$text: sbatch: $(head -1 err)"
    curve "$text" "$got" "$@"
}

# The dashboard itself, where there is a browser that runs without a screen; through a tunnel, as people reach it.
tunnel()
{
    [ ! -s port ] || return 0
    python3 "$source_dir/tests/slurm/forward.py" "$work/toptd.sock" port 7>&- &
    tunnel=$!
    while [ ! -s port ]; do sleep 0.05; done
}

page() # TEXT MODEL-ID PLAN FIELD=VALUE...
{
    local text=$1 model=$2 id=$3 browser hash seen
    shift 3
    browser=$(command -v chromium) || { ok "$text: the dashboard # SKIP no chromium" true; return; }
    hash=$(printf '&%s' "$@" | sed 's/&mode=[^&]*//')
    tunnel
    seen=$(timeout 100 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/browser" \
        --virtual-time-budget=20000 --dump-dom "http://127.0.0.1:$(cat port)/#model_id=$model$hash" 2>browser.log |
        sed -n 's/.*<code id="plan">\(p-[0-9a-f]*\)<.*/\1/p')
    is "$seen" "$id" "$text: the dashboard"
}

# The curve that the dashboard draws has the answer's point.
curve() # TEXT MODEL-ID FIELD=VALUE...
{
    local text=$1 model=$2 query
    shift 2
    query=$(printf '%s\n' "$@" | grep -vE '^(mode|gpus|min_efficiency)=' | paste -sd'&')
    ok "$text: the curve has that point" python3 - cli.json <(rest "http://localhost/v1/models/$model/curve?$query") <<'P'
import json, sys
plan, curve = (json.load(open(f)) for f in sys.argv[1:])
point = [p for p in curve["points"] if p["gpus"] == plan["gpus"]][0]
sys.exit(any(point[k] != plan[k] for k in ("time_ns", "memory_bytes", "nodes", "strategy")))
P
}

doors "a config.json" small-llama small-llama "" mode=mini-parallelism hw=lab-cpu batch=8 seq=64
is "$(field "$(cat job)" NumTasks)" "$(of gpus <cli.json)" "and the job has its GPUs"
wait_job "$(cat job)"
is "$(sed -n 's/^TOPT_PLAN=//p' out)" "$(of plan_id <cli.json)" "and its plan"
doors "less memory" small-llama small-llama "" mode=mini-parallelism hw=lab-cpu batch=8 seq=64 memory=48MiB
wait_job "$(cat job)"
doors "a native model" gpt-small.json gpt-small "" mode=mini-time gpus=4 hw=lab-cpu batch=8 seq=64
wait_job "$(cat job)"
doors "Megatron-LM's arguments" megatron.sh megatron "" mode=mini-parallelism hw=lab-cpu framework=megatron
wait_job "$(cat job)"
doors "for our own runtime" gpt-small.json gpt-small "" mode=mini-time gpus=2 hw=lab-cpu batch=8 seq=64 framework=topt
wait_job "$(cat job)"
doors "a large model" large-llama large-llama --topt-dry-run mode=mini-parallelism hw=a100-80-dgx batch=64 seq=8192
is "$(cat job)" "" "a dry run submits nothing"
like "$(cat err)" "times as fast" "and says what else to ask: $(sed -n 2p err)"
doors "adapters" large-llama large-llama --topt-dry-run mode=mini-parallelism hw=a100-80-dgx batch=64 seq=4096 train=lora:8
doors "an efficiency" large-llama large-llama --topt-dry-run mode=mini-parallelism hw=a100-80-dgx batch=64 seq=8192 \
    min_efficiency=90
doors "another framework" large-llama large-llama --topt-dry-run mode=mini-parallelism hw=a100-80-dgx batch=64 seq=8192 \
    framework=megatron precision=bf16-mixed
doors "a number of GPUs" large-llama large-llama --topt-dry-run mode=mini-time gpus=16 hw=a100-80-dgx batch=64 seq=8192 \
    framework=deepspeed

# What the rows beside an answer say chooses them does.
"$TOPT" plan large-llama --hw a100-80-dgx --batch 512 --seq 8192 --json >cli.json
ok "there are rows beside the answer" [ "$(python3 -c 'import json; print(len(json.load(open("cli.json"))["alternatives"]))')" -gt 1 ]
while read -r gpus efficiency; do
    is "$("$TOPT" plan large-llama --hw a100-80-dgx --batch 512 --seq 8192 --min-efficiency "$efficiency" --json | of gpus)" \
        "$gpus" "an efficiency of $efficiency chooses $gpus GPUs"
done < <(python3 -c '
import json
for row in json.load(open("cli.json"))["alternatives"]:
    if "min_efficiency" in row: print(row["gpus"], row["min_efficiency"])')

# What can't be: in the same words.
for args in "--hw lab-cpu --batch 64 --seq 8192" "--hw a100-80-dgx --gpus 24 --batch 64 --seq 8192"; do
    # shellcheck disable=SC2086
    why=$("$TOPT" plan large-llama $args --json | of why)
    # shellcheck disable=SC2086
    like "$("$TOPT" client plan large-llama $args --url "$url" 2>&1)" "$why" "refused by toptd as by topt: $why"
    mode="--topt-mode=mini-parallelism"
    case $args in *gpus*) mode=--topt-mode=mini-time ;; esac
    # shellcheck disable=SC2086,SC2001
    sbatch --topt-model=large-llama $mode $(echo "$args" | sed 's/--\([a-z]*\) /--topt-\1=/g') --wrap env >job 2>err
    is "$?/$(cat job)" "1/" "and by sbatch"
    like "$(cat err)" "$why" "with $(cat err)"
done
finish
