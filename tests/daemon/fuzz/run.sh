#!/usr/bin/env bash
# run.sh [SECONDS [TARGET...]] - the fuzz targets (http, worker, query), each for so long (600), one after the other.
#
# Builds them in build/fuzz with clang, libFuzzer, ASan and UBSan.  What was found to reach new code is kept in
# build/fuzz/corpus for the next run; what went wrong lies in build/fuzz/found.  Status 1 where something did.
set -eu
seconds=${1:-600}
shift || true
cd "$(dirname "$0")/../../.."
[ $# -gt 0 ] || set -- http worker query
build=$PWD/build/fuzz
cmake --preset dev -B "$build" -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTOPT_CUDA=OFF -DTOPT_MPI=OFF \
    -DTOPT_SANITIZE=address,undefined,fuzzer-no-link -DTOPT_FUZZ=ON >/dev/null
for target in "$@"; do
    nice cmake --build "$build" --target "fuzz_$target" >/dev/null
done
mkdir -p "$build/found"
python3 tests/daemon/fuzz/seeds.py "$build/seeds" "$PWD"
export TOPT_WORKER=$build/tests/fake/libexec/topt/toptd-worker
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp
status=0
for target in "$@"; do
    mkdir -p "$build/corpus/$target"
    echo "fuzz_$target for $seconds s"
    nice -n 19 "$build/tests/fuzz_$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -max_len=8192 \
        -print_final_stats=1 -artifact_prefix="$build/found/$target-" "$build/corpus/$target" "$build/seeds/$target" \
        >"$build/found/$target.log" 2>&1 || status=1
    grep -E 'SUMMARY|stat::number_of_executed_units|stat::new_units|ERROR' "$build/found/$target.log" || true
done
exit $status
