#!/usr/bin/env bash
# plan_test.sh TOPTD TOPT-CLIENT MAKE-ONNX - the daemon with the solver, asked by topt client and curl.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
client=$2 make_onnx=$3
export TOPT_URL=unix:$sock
text=(-H 'Accept: text/plain')
planned() { sed -nE 's/^plan +(p-[0-9a-f]+).*/\1/p' "$dir/body"; }

cat >"$dir/config.json" <<'M'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
 "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "vocab_size": 4096, "max_position_embeddings": 128,
 "rms_norm_eps": 1e-5, "tie_word_embeddings": false}
M
sed 's/LlamaForCausalLM/NoSuchModel/; s/"llama"/"nosuch"/' "$dir/config.json" >"$dir/unknown.json"
small=(--batch 8 --seq 64 --max-gpus 4)

start --threads 2
hw=$(curl -s --unix-socket "$sock" http://localhost/v1/hardware | grep -o '"name":"v100[^"]*"' | head -1 | cut -d'"' -f4)
[ -n "$hw" ]; ok $? "profiles are shipped: $hw"
topt_client status; says 'is ready'; ok $? "topt client status"
topt_client plan "$dir/config.json" "${small[@]}"
[ "$status" = 1 ] && says "no default"; ok $? "without a default profile one must be named"
for word in '' '&hw=moon'; do
    ask POST "/v1/plan?batch=8&seq=64&slurm_nodes=1$word" "${text[@]}" --data-binary "@$dir/config.json"
    [ "$status" = "$([ -z "$word" ] && echo 503 || echo 404)" ]
    ok $? "a job of Slurm with no profile that is known ($word): $(grep DESCRIPTION "$dir/body")"
done
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" -o "$dir/plan.json"
[ "$status" = 0 ] && says '^1 GPU: ' && says '^assumed +framework pytorch'; ok $? "topt client plan"
id=$(planned)
ask POST "/v1/plan?mode=mini-parallelism&batch=8&seq=64&max_gpus=4&hw=$hw&name=$(basename "$dir")" \
    "${text[@]}" --data-binary "@$dir/config.json"
check "the same plan as text" 200 "^TOPT_PLAN_ID=$id\$"
[ "$(metric topt_cache_hits_total)" = 1 ]; ok $? "from the store"
less=$(($(sed -n 's/TOPT_MEMORY_BYTES=//p' "$dir/body") * 6 / 10))
ask POST "/v1/plan?mode=mini-parallelism&batch=8&seq=64&max_gpus=4&hw=$hw&memory_bytes=$less" \
    "${text[@]}" --data-binary "@$dir/config.json"
check "less memory, more GPUs" 200 '^TOPT_GPUS=[234]$'
metric() { curl -s --unix-socket "$sock" http://localhost/metrics | sed -n "s/^$1 //p"; }
others=('--memory 1GiB' '--max-gpus 1' '--mode mini-time --gpus 1')
for more in "${others[@]}"; do
    searches=$(metric topt_searches_total) kept=$(metric topt_memo_answers_total)
    # shellcheck disable=SC2086
    topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" $more --json
    [ "$status" = 0 ] && [ "$(metric topt_searches_total)" = "$searches" ] &&
        [ "$(metric topt_memo_answers_total)" = $((kept + 1)) ]
    ok $? "$more: from the memo of the problem, without a search"
    cp "$dir/body" "$dir/answer${more// /_}"
done
ask POST "/v1/plan?batch=8&seq=64&max_gpus=4&hw=$hw&tokens=1B&price=2&wait_ms=60000" --data-binary "@$dir/config.json"
check "the cost of a whole training" 200 '"training_cost":'
ask POST "/v1/plan?batch=8&seq=64&hw=$hw&price=2" --data-binary "@$dir/config.json"
check "no price without its length" 400 'say how long it is.*"source":"price"'
ask POST "/v1/plan?batch=8&seq=64&max_gpus=4&hw=$hw&tokens=1B&slurm_show=all" "${text[@]}" --data-binary "@$dir/config.json"
check "in lines for sbatch" 200 '^TOPT_TRAINING=1B tokens: [0-9.]+ hours, [0-9.]+ GPU-hours$'
ask POST /v1/observations -H 'Content-Type: application/json' -d "{\"job\":17,\"plan_id\":\"$id\",\"step_ns\":1000000000,\"steps\":4}"
check "a job reports a step" 201
topt_client observations -o "$dir/seen.json"
[ "$status" = 0 ] && "$(dirname "$client")/topt-solver" calibrate "$hw" "$dir/seen.json" >"$dir/body" 2>"$dir/err" && says 'seen.json: job 17 +1.00 s'
ok $? "what jobs measured, with their plans, for topt calibrate"
# What fewer GPUs would have saved: of a job that reports its steps, and of one whose time accounting has.
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" --mode mini-time --gpus 4
four=$(planned)
for job in 18 19; do
    steps=$([ $job = 18 ] && echo ',"steps":3600' || echo "")
    ask POST /v1/observations -H 'Content-Type: application/json' -d "{\"job\":$job,\"plan_id\":\"$four\",\"step_ns\":1000000000,\"peak_bytes\":1073741824$steps}"
done
topt_client savings
[ "$status" = 0 ] && says '^ +18 .* 4 +[12] +4\.0 +[0-3]\.[0-9] +1\.0+ GiB' && says '^left out: 1 job that reported' && says '^[12] jobs? took 4\.0 GPU-hours'; ok $? "topt client savings: $(grep -E '^ +18 ' "$dir/body")"
mkdir -p "$dir/fake" && printf '#!/bin/sh\necho "19|physics|7200"\necho "18||"\n' >"$dir/fake/sacct" && chmod 755 "$dir/fake/sacct"
PATH=$dir/fake:$PATH topt_client savings -o "$dir/savings.csv"
[ "$status" = 0 ] && grep -qE '^19,[a-z0-9]+,physics,4,[12],8\.000,[0-9.]+,1073741824' "$dir/savings.csv" && grep -qE '^18,[a-z0-9]+,,4,[12],4\.000,' "$dir/savings.csv"
ok $? "with accounting, as CSV: $(grep ^19 "$dir/savings.csv")"
PATH=$dir/fake:$PATH topt_client savings -o "$dir/savings.html"
[ "$status" = 0 ] && grep -q '<td>physics<td>1<td>8.0<td>' "$dir/savings.html"
ok $? "and as a page"
topt_client get-plan "$id" -o "$dir/pinned.json"
[ "$status" = 0 ] && grep -q '"format":"topt-plan/1"' "$dir/pinned.json"; ok $? "topt client get-plan"
topt_client get-plan p-0000000000000000; [ "$status" = 1 ] && says 'was given out'; ok $? "one that never was"
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" --memory 1MiB
[ "$status" = 3 ] && says 'nearest'; ok $? "infeasible exits with 3: $(cat "$dir/err")"
topt_client plan "$dir/unknown.json" "${small[@]}" --hw "$hw"
[ "$status" = 2 ]; ok $? "unknown architecture: $(cat "$dir/err")"
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" --space nosuch
[ "$status" = 2 ] && says "unknown space"; ok $? "unknown space"
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" --algorithm nosuch
[ "$status" = 2 ] && says "unknown algorithm"; ok $? "unknown algorithm"
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" --algorithm data-parallel --mode mini-time --gpus 2
[ "$status" = 0 ] && says "data 2"; ok $? "a plan as another system has it"
topt_client plan "$dir/config.json" --mode mini-parallelism --hw "$hw" --overlap fsdp --eager foo
[ "$status" = 2 ] && says "unknown eager part"; ok $? "unknown part of a framework"
for wrong in "--batch 0" "--seq 0" "--max-gpus 0" "--micro-batches 0" "--memory 80" "--factors zero,zero" \
    "--mode profiling --gpus 1,2,2"; do
    # shellcheck disable=SC2086 # words on purpose
    topt_client plan "$dir/config.json" --hw "$hw" $wrong
    [ "$status" = 2 ] && [ "$(wc -l <"$dir/err")" = 1 ]; ok $? "$wrong: $(cat "$dir/err")"
done
topt_client plan "$dir/config.json" "${small[@]}" --hw "${hw}x"
[ "$status" = 2 ] && says "did you mean $hw\\?"; ok $? "unknown hardware: $(cat "$dir/err")"
topt_client plan "$dir/config.json" "${small[@]}" --hw h100
[ "$status" = 2 ] && says "did you mean h100-80-a3mega, h100-80-dgx, .* or h100-96-500w"; ok $? "a part of many names: $(cat "$dir/err")"
topt_client pln "$dir/config.json"; [ "$status" = 2 ] && says 'did you mean plan\?'; ok $? "unknown command"
topt_client plan "$dir/config.json" --bacth 8; [ "$status" = 2 ] && says 'did you mean --batch\?'; ok $? "unknown option"
topt_client plan "$dir/config.json" --frobnicate; [ "$status" = 2 ]; ok $? "unknown option exits with 2"
topt_client models --svg curve.svg; [ "$status" = 2 ] && says "unknown option '--svg'"; ok $? "an option of another command is none of this one"
topt_client savings --help; [ "$status" = 0 ] && says 'GPU-hours' && ! says '--batch'; ok $? "--help of a command has its own options"
topt_client curve "$dir/config.json" "${small[@]}" --counts pow2 --hw "$hw"
[ "$status" = 0 ] && [ "$(grep -cE '^ +[124] ' "$dir/body")" = 3 ]; ok $? "topt client curve is drawn"
topt_client add-model "$dir/config.json"; [ "$status" = 0 ]; ok $? "topt client add-model"
model=$(cut -d' ' -f1 "$dir/body")
topt_client models; says "$model"; ok $? "topt client models"
topt_client plans; [ "$status" = 0 ] && says "^$id .* 1 GPU "; ok $? "topt client plans"
topt_client frontier "$dir/config.json" --batch 16 --hw "$hw" --gpus 2
[ "$status" = 0 ] && says 'least memory'; ok $? "topt client frontier"
topt_client frontier "$dir/config.json" --batch 16 --hw "$hw"
[ "$status" = 2 ] && says 'how many devices'; ok $? "of how many GPUs?"
topt_client frontier "$(dirname "$0")/../../deploy/quickstart/gpt-small.json" --hw lab-cpu --batch 8 --gpus 2 \
    --framework topt --json
[ "$status" = 0 ] && [ "$(grep -o '"memory_bytes"' "$dir/body" | wc -l)" -gt 128 ]
ok $? "one whose points two threads check"
began=$(date +%s%N)
topt_client curve "$dir/config.json" --hw a100-80-dgx --framework topt --space full --batch 512 --timeout 1
took=$(( ($(date +%s%N) - began) / 1000000 ))
[ "$status" = 0 ] || { [ "$status" = 1 ] && says 'took longer than 1 s .*raise --timeout' && [ $took -lt 2500 ]; }
ok $? "--timeout is kept ($took ms)"
for _ in $(seq 300); do # until its search, which nobody waits for, is given up and counted
    curl -s --unix-socket "$sock" http://localhost/metrics >"$dir/metrics"
    grep -q '^topt_searches_running{lane="search"} 0' "$dir/metrics" && break
    sleep 0.1
done
before=$(metric topt_searches_total)
topt_client curve "$model" "${small[@]}" --counts pow2 --hw "$hw" --json
[ "$status" = 0 ] && says '"points"' && [ "$(metric topt_searches_total)" = "$before" ]
ok $? "the curve by id is the one searched before"
mkdir "$dir/tiny-llama" && sed 's/4096/4095/' "$dir/config.json" >"$dir/tiny-llama/config.json"
topt_client add-model "$dir/tiny-llama/"; [ "$status" = 0 ] && says ' tiny-llama$'; ok $? "a folder's model has its name"
topt_client plan tiny-llama "${small[@]}" --hw "$hw"; [ "$status" = 0 ]; ok $? "by which it is planned"
id=$(planned)
topt_client plan model:tiny-llama "${small[@]}" --hw "$hw"; says "$id"; ok $? "with and without model:"
topt_client curve "model:$model" "${small[@]}" --counts pow2 --hw "$hw"; [ "$status" = 0 ]; ok $? "or by its id"
topt_client plan tiny-lama "${small[@]}" --hw "$hw"
[ "$status" = 2 ] && says 'no such file, and .*did you mean tiny-llama\?'; ok $? "a slip: $(cat "$dir/err")"
topt_client plan "$dir/nosuch.json" "${small[@]}" --hw "$hw"
[ "$status" = 1 ] && says "can't open"; ok $? "a file that is not there: $(cat "$dir/err")"
ask GET "/v1/models/$model/frontier?hw=$hw&gpus=2&batch=8&seq=64&wait_ms=60000"; check "a frontier" 200 '"points":\[\{"memory_bytes"'
ask GET "/v1/models/$model/frontier?hw=$hw&gpus=2&batch=8&seq=64&framework=topt&max_table_bytes=1KiB"
check "costs may take less" 413 'more than --max-table-bytes of 1'
topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" --max-table-bytes 8GiB
[ "$status" = 2 ] && says 'this server allows 4294967296'; ok $? "not more than the server's"
if "$make_onnx" digits >"$dir/digits.onnx"; then # a binary file travels as it is
    topt_client plan "$dir/digits.onnx" --batch 16 --max-gpus 2 --hw "$hw" -o "$dir/onnx.json"
    [ "$status" = 0 ] && says '^1 GPU: ' && grep -q '"name": *"digits"' "$dir/onnx.json"
    ok $? "topt client plan of an ONNX file"
    id=$(planned)
    ask POST "/v1/plan?mode=mini-parallelism&batch=16&max_gpus=2&hw=$hw&name=digits.onnx" \
        "${text[@]}" --data-binary "@$dir/digits.onnx"
    check "the same plan by curl" 200 "^TOPT_PLAN_ID=$id\$"
    ask GET "/v1/plans/$id"; check "which holds the native model" 200 '"format":"topt-model/1"'
    topt_client add-model "$dir/digits.onnx"; [ "$status" = 0 ] && says digits; ok $? "registered"
    head -c 900 "$dir/digits.onnx" >"$dir/cut.onnx"
    topt_client plan "$dir/cut.onnx" --batch 16 --hw "$hw"
    [ "$status" = 1 ] && says 'cut.*ONNX'; ok $? "cut short: $(cat "$dir/err")"
else
    echo "# this topt reads no ONNX"
fi
curl -s --unix-socket "$sock" "http://localhost/v1/hardware/$hw" | sed "s/\"name\":\"$hw\"/\"name\":\"mine\"/" >"$dir/hw.json"
topt_client add-hw "$dir/hw.json"; [ "$status" = 0 ] && says mine; ok $? "topt client add-hw"
topt_client plan "$dir/config.json" "${small[@]}"
[ "$status" = 0 ]; ok $? "the only registered profile is the default"
big='{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":4096,"intermediate_size":14336,
"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,
"max_position_embeddings":8192,"rms_norm_eps":1e-5,"tie_word_embeddings":false}'
kill -STOP "$pid"
timeout 20 "$client" client status >"$dir/body" 2>"$dir/err"; status=$?
kill -CONT "$pid"
[ "$status" = 1 ] && says 'no answer from'; ok $? "topt client status does not wait long for one that hangs"
ask POST "/v1/plan?mode=mini-time&gpus=16&batch=64&seq=4096&hw=a100-80-dgx&framework=topt&space=full&wait_ms=100" -d "$big"
check "a large model takes longer" 202 '"task"'
began=$(date +%s%N)
stop TERM; ok $? "SIGTERM ends it while it searches"
took=$(( ($(date +%s%N) - began) / 1000000 ))
[ $took -lt 2000 ]; ok $? "within 2 s ($took ms)"
grep 'does not end' "$dir/log" | sed 's/^/# /' # how soon it noticed is the solver's matter
topt_client status; [ "$status" = 1 ] && says 'is toptd running'; ok $? "then nobody answers"
rm -rf "$dir/state"
start --threads 2 --prices "other:1,$hw:4" --currency EUR
ask POST "/v1/plan?batch=8&seq=64&max_gpus=4&hw=$hw&tokens=1B&slurm_show=all" "${text[@]}" --data-binary "@$dir/config.json"
check "the site's price, in its currency" 200 '^TOPT_TRAINING=.* GPU-hours, [0-9.]+ EUR at 4 a GPU-hour$'
ask POST "/v1/plan?batch=8&seq=64&max_gpus=4&hw=$hw&tokens=1B&price=2&slurm_show=all" "${text[@]}" --data-binary "@$dir/config.json"
check "the question's own price goes before it" 200 '^TOPT_TRAINING=.* EUR at 2 a GPU-hour$'
stop TERM
rm -rf "$dir/state"
start --threads 2
for more in "${others[@]}"; do
    # shellcheck disable=SC2086
    topt_client plan "$dir/config.json" "${small[@]}" --hw "$hw" $more --json
    cmp "$dir/body" "$dir/answer${more// /_}" >>"$dir/err"
    ok $? "$more: as a toptd answers that was asked nothing before $(cat "$dir/err")"
    stop TERM
    rm -rf "$dir/state"
    start --threads 2
done
stop TERM
! grep -q 'WARNING: ThreadSanitizer' "$dir/log"; ok $? "nothing that threads share was touched without a lock"
finish
