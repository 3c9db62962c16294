#!/bin/sh
# study.sh TOPT - what `topt study` prints: the orders of systems, the same as JSON, refusals.
topt=$1
n=0 bad=0
ok() # STATUS TEXT
{
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        bad=1
    fi
}

for group in "" "--group tpu-v3"; do
    # shellcheck disable=SC2086 # no group is no argument
    "$topt" study accpar $group | awk '/^geometric mean/ { exit !(1 < $3 && $3 < $4 && $4 < $5) }'
    ok $? "data parallel, one weird trick, HyPar, AccPar: each faster${group:+, of equal boards}"
done
[ "$("$topt" study accpar --json | grep -c '"network"')" = 8 ]
ok $? "eight networks as JSON"
[ "$("$topt" study accpar resnet18 --group tpu-v3 | grep -c '^conv')" = 40 ]
ok $? "the layers of one network, by HyPar and by AccPar"
"$topt" study parallax | awk '/^LM/ { exit !($3 < $4 && $4 < $5 && $5 <= $6) }'
ok $? "all-reduce, servers, aggregating servers, hybrid: each faster of a language model"
"$topt" study parallax --json | grep -q '"all_gather"'
ok $? "bytes as JSON"
"$topt" study acpar 2>&1 | grep -q "did you mean accpar"
ok $? "a slip is named"
"$topt" study accpar lenet 2>&1 >/dev/null | grep -q "unknown network 'lenet'"
ok $? "a network that nobody knows"
"$topt" study accpar --group v9 2>&1 | grep -q "has no group 'v9'"
ok $? "a group that is not there"
"$topt" study 2>/dev/null
[ $? = 2 ]
ok $? "no study is no question"
echo "1..$n"
exit $bad
