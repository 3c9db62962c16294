#!/bin/sh
# run_profile.sh - `topt profile` on ranks of several nodes: what it finds out, that it goes on where it was killed, that
# nodes which are unlike are named, and that a toptd gets the profile.
# usage: run_profile.sh TOPT MPIEXEC TOPOLOGIES.PY TOPTD
topt=$1 mpiexec=$2 make=$3 toptd=$4
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

refused 2 '^topt profile: --nodes 3 does not fit the 1 rank that was started' "$topt" profile --nodes 3 -o no.json
check "more nodes than ranks"
# killed in the middle
cat >rank.sh <<'EOT'
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec "$@"
EOT
# It may end before it is seen at work, on a fast machine as on a busy one: then it is begun anew.
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    rm -f two.json two.json.part
    "$mpiexec" -n 2 sh rank.sh "$topt" profile -o two.json --max-product 64 --max-bytes 64KiB >out 2>err &
    job=$!
    until [ -e two.json.part ] && [ "$(grep -c all_gather two.json.part)" -ge 2 ] || ! kill -0 $job 2>/dev/null; do
        sleep 0.002
    done
    kill -KILL "$(cat pid.0)" 2>/dev/null
    wait $job 2>/dev/null
    [ ! -e two.json.part ] || break
done
[ -e two.json.part ] && [ ! -e two.json ]
check "killed: no profile, but $(wc -l <two.json.part) lines of what was measured"
cp two.json.part before
printf '{"of":"%s: all_ga' "$(uname -n)" >>two.json.part
"$mpiexec" -n 2 "$topt" profile -o two.json --max-product 64 --max-bytes 64KiB >out 2>err && grep -q '^note: going on from [0-9]* measurements' err &&
    [ ! -e two.json.part ]
check "the same command goes on: $(grep '^note: going' err)"
grep -q '^2 ranks on 1 node: .* 4 curves' out
check "two ranks of this machine: $(head -1 out)"
python3 - <<'EOT' >out 2>err
import json
profile = json.load(open("two.json"))
curve = {(c["collective"], x): ns for c in profile["curves"] for x, ns in c["points"]}
kept = [json.loads(line) for line in open("before") if '"of"' in line]
seen = [k for k in kept if " over " in k["of"]]
assert len(seen) >= 9, len(seen)
for k in seen:
    assert curve[k["of"].split(": ")[1].split(" ")[0], k["at"]] == int(k["value"] + 0.5), k
EOT
check "... with what was measured before"
"$topt" hw check two.json >out 2>err && ! grep -q 'one efficiency for f' out && ! grep -q 'runtime_bytes)' out &&
    grep -q 'products in f64.* points' out && grep -q attention_by_size two.json &&
    grep -q '^  kernels .* by samples of their own$' out
check "products and attention by size, and the memory of a rank without its model, are known"
python3 - <<'EOT' >out 2>err
import json
rows = {(r["kernel"], r["of"]): r["samples"] for r in json.load(open("two.json"))["device"]["kernels"]}
wanted = ["linear", "attention_bwd causal", "attention ", "ssd_bwd", "selective_scan", "delta_rule", "causal_conv", "conv_bwd_w", "pool_bwd",
          "batch_norm_mean", "norm_apply", "norm_apply rms", "unary gelu", "unary_bwd gelu_erf", "glu silu", "experts_up", "experts_act silu",
          "dispatch", "embedding_bwd", "xent_sum", "rotary", "load", "zero", "sum", "update sgd", "update adamw"]
for w in wanted:
    kernel, _, of = w.partition(" ")
    samples = [s for k, s in rows.items() if k[0] == kernel and (not of or k[1] == of)]
    assert samples and all(x[4] > 0 for s in samples for x in s), w
EOT
check "kernels of every kind by themselves $(tail -1 err)"
echo '{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 2, "n_positions": 64,
"vocab_size": 256}' >gpt.json
grep -q '"rates": "measured"' two.json && "$topt" plan gpt.json --hw two.json --batch 8 --framework topt >out 2>err &&
    grep -q ' 0 % from data sheets' out && ! grep -q 'narrows this range' out
check "a plan rests on them: $(grep 'data sheets' out)"
# The rates of these ranks are those of any others and need not be measured again.
rates_of() { # rates_of WHERE FILE
    grep -v ' over ' before | sed "s/\"of\":\"[^:]*: /\"of\":\"$1: /" >"$2.part"
}
echo text >odd.json.part
refused 1 'remove it' "$topt" profile -o odd.json
check "another file in its place is left alone"

# ranks 0 and 1 on node a, 2 and 3 on node b, each of which is what an exported topology says
cat >node.sh <<'EOT'
rank=$OMPI_COMM_WORLD_RANK
export OMPI_COMM_WORLD_LOCAL_RANK=$((rank % 2))
if [ "$rank" -lt 2 ]; then node=a; else node=b; fi
export SLURMD_NODENAME=$node HWLOC_XMLFILE=$node.xml HWLOC_THISSYSTEM=0
exec "$@"
EOT
two() { # two KIND KIND ARGUMENTS...: 'topt profile' on nodes like these
    python3 "$make" "$1" >a.xml && python3 "$make" "$2" >b.xml || return
    shift 2
    "$mpiexec" -n 4 sh node.sh "$topt" profile "$@" >out 2>err
}
rates_of 'a and b, 2 ranks each' alike.json
two cpu cpu -o alike.json --max-product 64 --max-bytes 4KiB && grep -q '^a and b, 2 ranks each: 2 packages, 4 cores (8 threads), L3 16.00 MiB: a processor$' out &&
    ! grep -q unlike err && grep -q '"nodes": 2' alike.json && grep -q '"gpus_per_node": 2' alike.json &&
    grep -q '"shared_cores": 8' alike.json && grep -q '"memory_bytes": 17179869184' alike.json
check "two nodes of two ranks: $(head -1 out)"
rates_of 'a and b, 2 ranks each' unlike.json
two cpu half -o unlike.json --max-product 64 --max-bytes 2KiB && grep -q '^note: b is unlike a: packages: 1, not 2; cores: 2, not 4' err &&
    grep -q '"memory_bytes": 8589934592' unlike.json
check "one that is unlike is named, and the least counts: $(grep '^note: b' err)"
two pairs apart --topology this -o merged.json --like a100-40-dgx &&
    grep -q '^note: b is unlike a: its slowest GPU sends 31.5 GB/s, not 75' err && grep -q '"nodes": 2' merged.json &&
    grep -q '"bytes_per_second": 31500000000' merged.json
check "links of two nodes: $(grep '^note: b' err)"
two pairs cpu --topology this -o odd2.json --like a100-40-dgx
[ $? -eq 1 ] && [ "$(grep -c '^topt ' err)" -eq 1 ] && grep -q 'b has 0 GPUs and a has 4' err && [ ! -e odd2.json ]
check "nodes with unequal GPUs have no profile: $(grep '^topt' err)"

if [ -x "$toptd" ]; then
    "$toptd" --socket "$dir/toptd.sock" --state "$dir/state" >log 2>&1 &
    job=$!
    for _ in $(seq 100); do
        [ -S toptd.sock ] && break
        sleep 0.1
    done
    rates_of "$(uname -n), 1 ranks each" one.json
    "$topt" profile -o one.json --name mine --max-product 64 --max-bytes 4KiB --post "unix:$dir/toptd.sock" >out 2>err &&
        "$topt" client hardware --url "unix:$dir/toptd.sock" >out 2>err && grep -q mine out
    check "toptd has it: $(grep mine out)"
    kill $job
    wait $job
    rates_of "$(uname -n), 1 ranks each" one.json
    "$topt" profile -o one.json --quiet --max-product 64 --max-bytes 4KiB --post "unix:$dir/toptd.sock" >out 2>err
    [ $? -ne 0 ] && grep -q 'has not taken the profile, which is in one.json' err && [ -s one.json ]
    check "without a toptd the profile stays"
fi
refused 2 'post needs a file' "$topt" profile -o - --post default
check "what is not written can't be given away"
finish
