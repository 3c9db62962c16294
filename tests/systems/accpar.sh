#!/bin/sh
# accpar.sh ROOT TOPT - AccPar and HyPar as rows of `topt compare`: what they choose, by our costs.
root=$1 topt=$2
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"

compare() # compare MODEL GPUS OPTIONS...: into 'out'
{
    model=$1 gpus=$2
    shift 2
    "$topt" compare "$model" --hw v100-dgx1-2x8 --gpus "$gpus" --accounting paper --space canonical --blocks alike --proposals 1 --json "$@" \
        >out 2>err && [ -s out ]
}
# row SYSTEM: its members
row()
{
    tr -d '\n' <out | tr '{' '\n' | grep "\"algorithm\": *\"$1\""
}
# whole NAME SYSTEM
whole()
{
    row "$2" | sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p"
}
least() # least A B: A is no more
{
    awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a + 0 <= b + 0)}'
}

compare paper:vgg16 8 && row accpar | grep -q "of 16 layers it splits 13 by batch only, 3 by input features,"
check "VGG16: AccPar cuts convolutions over the batch, products over features"
row hypar | grep -q " 0 by output features"
check "HyPar never over output features"
for system in accpar hypar; do
    least "$(whole time_ns ft)" "$(whole time_ns $system)" && least "$(whole time_ns $system)" "$(whole time_ns data-parallel)"
    check "VGG16: $system is between ft and data parallel, $(whole time_ns ft) <= $(whole time_ns $system) <= $(whole time_ns data-parallel) ns"
done
compare paper:transformer-s 16 && least "$(whole time_ns ft)" "$(whole time_ns accpar)" && least "$(whole time_ns accpar)" "$(whole time_ns hypar)"
check "Transformer-S, layers of which paths fork and join: AccPar is between ft and HyPar"
"$topt" compare paper:vgg16 --hw v100-dgx1-2x8 --gpus 8 --space canonical --blocks alike --systems tofu,tofu-recursive --json >out 2>err
least "$(whole time_ns tofu)" "$(whole time_ns tofu-recursive)" && [ "$(whole least_bytes tofu)" = "$(whole least_bytes tofu-recursive)" ]
check "Tofu's recursion by numbers fetched is in tofu's space, as small and no faster, $(whole time_ns tofu-recursive) and $(whole time_ns tofu) ns"
compare paper:vgg16 6 && row accpar | grep -q '"feasible": *false' && row accpar | grep -q "power of 2"
check "six devices are not cut in halves"
compare paper:vgg16 8 --pin 'classes=b:8' && row accpar | grep -q '"feasible": *false' && row accpar | grep -q "takes no pins"
check "what is pinned leaves it no choice"
"$topt" compare paper:vgg16 --hw v100-dgx1-2x8 --gpus 8 --accounting paper --space canonical --blocks alike --proposals 1 --svg bars.svg >out 2>err &&
    grep -q "^accpar .* yes" out && [ "$(grep -c '>accpar</text>' bars.svg)" = 2 ]
check "the table has it, and bars of time and memory"
# unequal boards, cut between them first: two of either kind, over a slow link
board() # board NAME SLOWER
{
    printf '{"name":"%s","nodes":1,"gpus_per_node":2,
      "device":{"name":"board %s","memory_bytes":16000000000,"flops":{"f32":%s},"efficiency":{"matmul":0.6,"attention":0.1,
        "elementwise":0.05},"memory_bandwidth":1e12,"launch_ns":2000,"source":"assumed"},
      "links":[{"level":"node","bytes_per_second":4e10,"latency_ns":2000,"source":"assumed"}]}' "$1" "$1" "$(awk "BEGIN { print 2e13 / $2 }")"
}
printf '{"format":"topt-hw/1","name":"boards","groups":[%s,%s],"between":{"bytes_per_second":1e10,"latency_ns":20000,"source":"assumed"}}' \
    "$(board fast 1)" "$(board slow 2)" >boards.json
"$topt" compare paper:alexnet --hw boards.json --batch 256 --gpus 4 --precision f32 --framework topt --space full --proposals 1 --json >out 2>err
row accpar | grep -q "between groups the batch of 5 and features of 3, by shares of [56]" && row accpar | grep -q 'a step takes fast [0-9.]* ms, slow'
check "groups of unlike boards: AccPar's shares, and what each group takes with them"
row hypar | grep -q "by shares of 50.0 and 50.0 %"
check "HyPar's are equal"
least "$(whole time_ns ft)" "$(whole time_ns accpar)" && least "$(whole time_ns accpar)" "$(whole time_ns hypar)"
check "ft <= AccPar <= HyPar, $(whole time_ns ft) <= $(whole time_ns accpar) <= $(whole time_ns hypar) ns"
finish
