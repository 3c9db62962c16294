#!/bin/sh
# "topt solve" from outside: output, exit statuses, one line on stderr.
# usage: test_solve.sh PROGRAM WORKED_EXAMPLE
solve=$1
example=$2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0
failed=0

check() { # check NAME STATUS: the result of the last run in $rc
    n=$((n + 1))
    if [ "$rc" -eq "$2" ]; then echo "ok $n - $1"; else
        echo "not ok $n - $1 (status $rc, want $2)"
        sed 's/^/#   /' "$dir/err"
        failed=1
    fi
}
run() {
    "$solve" "$@" >"$dir/out" 2>"$dir/err"
    rc=$?
}

run "$example"
check "a table" 0
grep -q "336 *360" "$dir/out"; rc=$?; check "shows the fastest point" 0
run "$example" --json
check "JSON" 0
tr -d '\n' <"$dir/out" | grep -q '^{"exact":true,"epsilon":0,"frontier":\[{"memory":168,"time":888,"configs":{"matmul1":2,"matmul2":2,"matmul3":2},"edges":\[[0-9]*,[0-9]*\]},.*"stats":{'
rc=$?; check "JSON has the documented form" 0
for algorithm in ft-plain ft-elimination brute-force; do
    run "$example" --algorithm $algorithm
    grep -q "5 points" "$dir/out"; rc=$?; check "$algorithm finds five points" 0
done
run "$example" --memory 200 --threads 2; check "a memory limit" 0
grep -q "2 points" "$dir/out"; rc=$?; check "leaves two points" 0
run "$example" --memory 100; check "nothing fits" 3
run "$example" --threads 257; check "too many threads" 2

# The same problem with its operators turned round, and any number of threads: the same bytes.
a='{"name":"a","configs":[[5,1],[1,5],[2,2]]}'
b='{"name":"b","configs":[[4,1],[1,4]]}'
c='{"name":"c","configs":[[9,2],[3,3]]}'
ab='{"from":"a","to":"b","costs":[[[[1,2]],[[3,0],[0,4]]],[[[2,2]],[[1,1]]],[[[0,0]],[[5,5]]]]}'
bc='{"from":"b","to":"c","costs":[[[[0,1]],[[1,0]]],[[[2,0]],[[0,2]]]]}'
edges=$ab,$bc
echo "{\"format\":\"topt-costs/1\",\"ops\":[$a,$b,$c],\"edges\":[$edges]}" >"$dir/abc.json"
echo "{\"edges\":[$edges],\"ops\":[$c,$a,$b],\"format\":\"topt-costs/1\"}" >"$dir/cab.json"
"$solve" "$dir/abc.json" --json >"$dir/first"
[ -s "$dir/first" ]; rc=$?; check "a problem of three operators" 0
for threads in 1 2 8; do
    run "$dir/cab.json" --json --threads $threads
    cmp -s "$dir/first" "$dir/out"; rc=$?; check "in another order, $threads threads: the same bytes" 0
done
# Its edges in another order, two of them parallel: the same strategies, by the file's edges.
more='{"from":"a","to":"b","costs":[[[[5,0]],[[0,4]]],[[[2,1]],[[1,1]]],[[[0,7],[6,0]],[[2,2]]]]}'
echo "{\"format\":\"topt-costs/1\",\"ops\":[$a,$b,$c],\"edges\":[$ab,$more,$bc]}" >"$dir/there.json"
echo "{\"format\":\"topt-costs/1\",\"ops\":[$b,$c,$a],\"edges\":[$bc,$more,$ab]}" >"$dir/back.json"
"$solve" "$dir/there.json" --json >"$dir/first"
grep -q '"edges":\[[0-9,]*[1-9]' "$dir/first"; rc=$?; check "not only first alternatives" 0
run "$dir/back.json" --json
sed 's/"edges":\[\([0-9]*\),\([0-9]*\),\([0-9]*\)\]/"edges":[\3,\2,\1]/' "$dir/out" >"$dir/turned"
cmp -s "$dir/first" "$dir/turned"; rc=$?; check "edges in another order: the same strategies" 0
big() { # big N: two operators of N bytes each
    echo "{\"format\":\"topt-costs/1\",\"ops\":[{\"name\":\"a\",\"configs\":[[$1,1]]},{\"name\":\"b\",\"configs\":[[$1,1]]}],\"edges\":[]}" >"$dir/big.json"
    run "$dir/big.json" --json
}
big 4611686018427387903; check "two times 2^62 - 1" 0
grep -q '"memory":9223372036854775806,' "$dir/out"; rc=$?; check "is their sum" 0
big 4611686018427387904; check "two times 2^62" 1
grep -q "comes to 2^63 - 1 or more" "$dir/err"; rc=$?; check "overflows, in one line" 0
echo '{"format":"topt-costs/1","ops":[{"name":"a","configs":[[9007199254740993,1]]}],"edges":[]}' >"$dir/odd.json"
run "$dir/odd.json" --memory 9007199254740993; check "a limit of 2^53 + 1 is not rounded" 0
run "$dir/odd.json" --memory 9007199254740992; check "nor one of 2^53" 3
run "$dir/odd.json" --memory 9223372036854775807; check "too large a limit" 2
grep -q "too large" "$dir/err"; rc=$?; check "says so" 0

# Whoever asks may stop any search, and writes to what takes no more.
alike() { # alike N: so many operators with nine configurations, and no edges
    echo '{"format":"topt-costs/1","edges":[],"ops":['
    for i in $(seq "$1"); do
        [ "$i" -gt 1 ] && echo ,
        echo "{\"name\":\"o$i\",\"configs\":[[1,9],[2,8],[3,7],[4,6],[5,5],[6,4],[7,3],[8,2],[9,1]]}"
    done
    echo ']}'
}
alike 7 >"$dir/many.json"
for algorithm in ft-plain ft-elimination; do
    run "$dir/many.json" --algorithm $algorithm --max-work 20
    check "$algorithm is stopped before it has anything" 1
    grep -q "stopped before anything was found" "$dir/err"; rc=$?; check "and says so" 0
done
run "$dir/many.json" --algorithm brute-force --max-work 20 --json
check "brute force is stopped" 0
grep -q '"exact":false,"epsilon":null' "$dir/out"; rc=$?; check "and claims nothing" 0
alike 16 >"$dir/more.json"
run "$dir/more.json" --algorithm brute-force; check "far too much for brute force" 1
grep -q "more than 100000000 strategies" "$dir/err"; rc=$?; check "is refused at once" 0
if [ -w /dev/full ]; then
    for form in "" --json; do
        "$solve" "$example" $form >/dev/full 2>"$dir/err"
        rc=$?; check "a full disk $form" 1
        grep -q "can't be written" "$dir/err"; rc=$?; check "in one line" 0
    done
fi
run "$example" --max-work 1; check "hardly any work" 0
grep -Eq "above the best|nothing is proven" "$dir/out"; rc=$?; check "says how good the answer is" 0
run "$example" --algorithm nonsense; check "no such algorithm" 2
[ "$(wc -l <"$dir/err")" -eq 1 ]; rc=$?; check "one line on stderr" 0
run; check "no file" 2
run --nonsense; check "no such option" 2
run "$dir/nothing.json"; check "a file that is not there" 1
echo '{"format":"topt-costs/1","ops":[],"edges":[' >"$dir/cut.json"
run "$dir/cut.json"; check "a truncated file" 1
echo '{"format":"topt-costs/1","ops":[],"edges":[]}' >"$dir/none.json"
run "$dir/none.json"; check "no operators" 0
run --help; check "help" 0
echo "1..$n"
exit $failed
