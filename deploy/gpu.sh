#!/usr/bin/env bash
# gpu.sh - build the CUDA backend and test it on this machine's GPUs.
#
#   deploy/gpu.sh [--out DIR] [--arch LIST]    build, test, measure
#   deploy/gpu.sh --pack DIR [--arch LIST]     build here, test elsewhere: DIR/gpu.sh [--out DIR]
#
#   --out DIR     where results and logs go (default: build/gpu-results)
#   --arch LIST   GPU architectures to build for, as CMake takes them (default: this machine's
#                 GPUs; with --pack 75;80;90)
#   --pack DIR    put programs, the module and the libraries that they need (CUDA's and libc's
#                 left out) into DIR, for a machine with GPUs but without compilers or packages
#   --no-install  never call apt: name what is missing and stop
#
# Needs nvcc and g++ to build, a GPU and CUDA's runtime libraries to test; neither network nor
# MPI.  What is tested:
#
#   kernels    every kernel against the host backend, f32, f64, bf16; and again under
#              compute-sanitizer, where CUDA's tools are
#   one rank   plans of every test model against the host's losses
#   staged     the same on 2 and 4 ranks that share a GPU, over sockets, and over MPI where it is
#   NCCL       the same on as many ranks as there are GPUs
#   a GPT      of deploy/quickstart trained for 20 steps, host and GPU: losses and times
#   rates      of kernels at a GPT's sizes: rates.json
#
# The last line says how many passed, failed and were skipped; exit status 0 only where nothing
# failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out='' pack='' arch='' install=1
while [ $# -gt 0 ]; do
    case $1 in
        --out | --pack | --arch)
            [ $# -ge 2 ] || { echo "gpu.sh: $1 needs a value" >&2 && exit 2; }
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        --no-install) install=0 ;;
        --help | -h)
            sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
            exit 0
            ;;
        *)
            echo "gpu.sh: '$1' is no option; try --help" >&2
            exit 2
            ;;
    esac
    shift
done

# A packed folder has programs beside this script; a checkout has its root above.
packed=0 root=$(dirname "$here")
if [ -x "$here/bin/cuda_kernels" ]; then
    packed=1 root=$here
    [ -z "$pack$arch" ] || { echo "gpu.sh: this is a packed folder: it only tests" >&2 && exit 2; }
fi
build=$root/build/gpu
[ -z "$out" ] || { mkdir -p "$out" && out=$(cd "$out" && pwd); }
[ -n "$out" ] || out=$root/build/gpu-results
logs=$out
mkdir -p "$out"
# shellcheck source=deploy/lib.sh
. "$here/lib.sh"
trap 'stop_step' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

passed=0 failed=0 skipped=0
rows=()

add_row() # NAME RESULT
{
    rows+=("$(printf '  %-30s %6s  %s' "$1" "$(seconds_text "$step_seconds")" "$2")")
}

skip() # NAME WHY
{
    skipped=$((skipped + 1))
    step_seconds=0
    add_row "$1" "skipped: $2"
}

# A status of 77 is a skip, whose reason stands in the test's output.
or_skip() # COMMAND...
{
    local rc=0
    "$@" || rc=$?
    [ $rc != 77 ] || rc=0
    return $rc
}

check() # NAME LOG COMMAND...
{
    local name=$1 log=$2 rc=0 why
    shift 2
    tail_lines=12 run_step "$name" "$log" or_skip "$@" || rc=$?
    why=$(sed -n 's/^1\.\.0 # skipped: //p' "$logs/$log.log" | tail -n 1)
    if [ $rc != 0 ]; then
        failed=$((failed + 1))
        add_row "$name" "FAILED (status $rc): $(grep -m 1 -E '^(not ok|Bail)' "$logs/$log.log" || true)"
    elif [ -n "$why" ]; then
        skipped=$((skipped + 1))
        add_row "$name" "skipped: $why"
    else
        passed=$((passed + 1))
        add_row "$name" "ok: $(grep -c '^ok ' "$logs/$log.log" || true) checks"
    fi
}

# --- building

targets=(topt-solver topt-runtime cuda_kernels cuda_agree cuda_collectives cuda_rates
    topt_rt_cuda)

configure_and_build()
{
    local list=$arch
    [ -n "$list" ] || { [ -n "$pack" ] && list='75;80;90'; } || list=native
    cmake --preset release -S "$root" -B "$build" -DTOPT_CUDA=ON -DTOPT_SLURM=OFF \
        "-DCMAKE_CUDA_ARCHITECTURES=$list" "$@" &&
        cmake --build "$build" --target "${targets[@]}"
}

# What a program needs beside libc, the compiler's own and CUDA's.
libraries_of() # FILE...
{
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+|libcu[a-zA-Z]*|libnv[a-zA-Z]*)\.so' || true
}

make_pack()
{
    local library
    mkdir -p "$pack/bin" "$pack/lib" "$pack/module"
    cp "$build"/tests/cuda_* "$build"/libexec/topt/topt-* "$pack/bin/"
    cp "$build/libexec/topt/libtopt_rt_cuda.so" "$pack/module/"
    cp "$here/gpu.sh" "$here/lib.sh" "$root/deploy/quickstart/gpt-small.json" "$root/tests/cuda/sockets.sh" "$pack/"
    while read -r library; do
        cp -L "$library" "$pack/lib/"
    done < <(libraries_of "$pack"/bin/* "$pack"/module/*)
}

if [ $packed = 0 ]; then
    say "topt on GPUs: build in $build"
    command -v nvcc >/dev/null || export PATH=$PATH:/usr/local/cuda/bin
    command -v nvcc >/dev/null || fail "nvcc was not found: install CUDA, or test a packed folder (--pack)"
    command -v dpkg-query >/dev/null && need_packages "${packages_cuda[@]}"
    # a packed folder takes along as little as it can
    mpi=()
    [ -z "$pack" ] || mpi=(-DTOPT_MPI=OFF)
    run_step build build configure_and_build "${mpi[@]}" || fail "it does not build: see $logs/build.log"
fi
if [ -n "$pack" ]; then
    mkdir -p "$pack" && pack=$(cd "$pack" && pwd)
    make_pack
    say "packed: $(du -sh "$pack" | cut -f1) in $pack; on a machine with a GPU run $pack/gpu.sh"
    exit 0
fi

# --- where things are

if [ $packed = 1 ]; then
    tests=$root/bin tools=$root/bin model=$root/gpt-small.json sockets=$root/sockets.sh
    export TOPT_MODULE_PATH=$root/module
    for folder in "$root/lib" /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/nvidia/lib64; do
        [ ! -d "$folder" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
    done
    export LD_LIBRARY_PATH
else
    tests=$build/tests tools=$build/libexec/topt
    model=$root/deploy/quickstart/gpt-small.json sockets=$root/tests/cuda/sockets.sh
    export TOPT_MODULE_PATH=$build/libexec/topt
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OPENBLAS_NUM_THREADS=1
unset TOPT_RANK TOPT_RANKS TOPT_RENDEZVOUS TOPT_FAKE_GPUS TOPT_NCCL

# --- what is here

gpus=0
if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=index,name,memory.total,driver_version --format=csv,noheader \
        >"$out/gpus.txt" 2>/dev/null || : >"$out/gpus.txt"
    gpus=$(wc -l <"$out/gpus.txt")
    sed 's/^/  GPU /' "$out/gpus.txt"
fi
[ "$gpus" -gt 0 ] || say "  no GPU is seen by nvidia-smi: the tests say what they find"

# --- tests

# The quick start's GPT on one device, host and GPU: losses that agree, and the time of a step.
train_both()
{
    local plan=$out/plan.json text=$out/text device
    "$tools/topt-solver" plan "$model" --hw h100-80-dgx --framework topt --precision f32 --gpus 1 -o "$plan" || return 1
    for i in $(seq 400); do
        echo "$i small crowds of numbers add themselves up over $((i * i % 97)) quiet machines."
    done >"$text"
    for device in host cuda; do
        "$tools/topt-runtime" run "$plan" --data "$text" --steps 20 --device $device --dtype f32 \
            --report "$out/train-$device.json" || return 1
    done
    awk '
        /"losses"/ { on = 1; next }
        /\]/ { on = 0 }
        on { gsub(/[ ,]/, ""); if (FILENAME == ARGV[1]) host[++n] = $0; else cuda[++m] = $0 }
        END {
            for (i = 1; i <= n; i++) {
                d = (cuda[i] - host[i]) / host[i]
                worst = d > worst ? d : -d > worst ? -d : worst
            }
            printf "%s 1 - %d losses agree (off by %.1e)\n", n && n == m && worst < 1e-3 ? "ok" : "not ok", n, worst
            exit !(n && n == m && worst < 1e-3)
        }' "$out/train-host.json" "$out/train-cuda.json"
}

check "kernels" kernels "$tests/cuda_kernels"
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || [ ! -x /usr/local/cuda/bin/compute-sanitizer ] || sanitizer=/usr/local/cuda/bin/compute-sanitizer
if [ "$gpus" = 0 ] || [ -z "$sanitizer" ]; then
    skip "kernels, compute-sanitizer" "$([ "$gpus" = 0 ] && echo no GPU || echo compute-sanitizer is not here)"
else
    check "kernels, memcheck" memcheck timeout 1500 "$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 1 "$tests/cuda_kernels"
    check "kernels, racecheck" racecheck timeout 900 "$sanitizer" --tool racecheck --report-api-errors no --error-exitcode 1 "$tests/cuda_agree" \
        staged --plans 1 --steps 1 --models all
fi
check "one rank" one "$tests/cuda_agree" staged --models all
check "staged, collectives, 3 ranks" staged-3 "$sockets" "$tests/cuda_collectives" 3 staged
for ranks in 2 4; do
    check "staged, $ranks ranks, sockets" "sockets-$ranks" "$sockets" "$tests/cuda_agree" $ranks staged
    if [ $packed = 1 ] || ! grep -q 'TOPT_HAVE_MPI:INTERNAL=ON' "$build/CMakeCache.txt"; then
        skip "staged, $ranks ranks, MPI" "built without MPI"
    else
        check "staged, $ranks ranks, MPI" "mpi-$ranks" mpiexec -n $ranks "$tests/cuda_agree" staged
    fi
done
if [ "$gpus" = 0 ]; then
    skip "NCCL" "no GPU"
else
    check "NCCL, $gpus rank$([ "$gpus" = 1 ] || echo s)" nccl "$sockets" "$tests/cuda_agree" "$gpus" nccl
    check "NCCL, collectives" collectives "$sockets" "$tests/cuda_collectives" "$gpus" nccl
fi
if [ "$gpus" = 0 ]; then
    skip "a GPT, host and GPU" "no GPU"
    skip "rates" "no GPU"
else
    check "a GPT, host and GPU" train train_both
    check "rates" rates "$tests/cuda_rates" -o "$out/rates.json"
    grep ' us ' "$logs/rates.log" | sed 's/^/  /' || true
    grep -h ' steps on ' "$logs/train.log" | sed 's/^/  /' || true
fi

say
printf '%s\n' "${rows[@]}" | tee "$out/summary.txt"
say
say "$passed passed, $failed failed, $skipped skipped; logs in $out"
[ $failed = 0 ] && [ $passed -gt 0 ]
