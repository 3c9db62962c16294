#!/bin/sh
# run_vectors.sh - the loops that training spends its time in beside products became vectors: in the code for processors with
# AVX2, each of these functions computes with eight numbers at a time, not with one.
# usage: run_vectors.sh OBJECT...   of the runtime, of which those for f32 are looked at
for object; do
    case $object in
    *host_f32_v3.c*) f32=$object ;;
    esac
done
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
command -v objdump >/dev/null && [ -r "$f32" ] || {
    echo "1..0 # SKIP no objdump, or no code for such processors"
    exit 77
}
# How many instructions of each function compute with whole vectors, and with single numbers.
count() {
    objdump -d --no-show-raw-insn "$1" | awk '
        /^[0-9a-f]+ <.*>:$/ { f = substr($2, 2, length($2) - 3); sub(/[.].*/, "", f); seen[f] = 1 }
        /v(add|mul|sub|div|max|min|fn?m(add|sub)[0-9]*)p[sd] .*%ymm/ { n[f]++ }
        END { for (f in seen) print f, n[f] + 0 }'
}
count "$f32" >f32
hot='bias_fwd add_fwd mul_fwd unary_fwd unary_bwd glu_fwd glu_bwd norm_mean norm_squares norm_sums norm_apply norm_bwd_apply
     norm_bwd_together run_together norm_scale_grad add_column_sums softmax_fwd softmax_bwd xent_bwd attention_fwd rotate_rows block_again turn_all
     update_all fill_normal'
awk -v hot="$hot" 'BEGIN { want = split(hot, name, /[ \n]+/) }
    { n[$1] = $2 }
    END { for (i = 1; i <= want; i++) if (!(n[name[i]] > 0)) { print name[i] > "/dev/stderr"; bad = 1 } exit bad }' f32 >out 2>err
check "$(echo "$hot" | wc -w) functions compute in vectors"
# The check itself can fail: what only copies does not compute.
awk '$1 == "copy_fwd" && $2 == 0 { found = 1 } END { exit !found }' f32
check "a function that copies has no such instruction"
finish
