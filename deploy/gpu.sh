#!/usr/bin/env bash
# gpu.sh - build the CUDA backend and test it on this machine's GPUs.
#
#   deploy/gpu.sh [--out DIR] [--arch LIST]    build, test, measure
#   deploy/gpu.sh --pack DIR [--arch LIST]     build here, test elsewhere: DIR/gpu.sh [--out DIR]
#
#   --out DIR        where results and logs go (default: build/gpu-results)
#   --minutes N      all of it, building too, ends within so many (default: 60): each part gets at
#                    most what is left, and what does not fit is said
#   --arch LIST      GPU architectures to build for, as CMake takes them (default: this machine's
#                    GPUs; with --pack 75;80;90)
#   --pack DIR       put programs, the module and the libraries that they need (CUDA's and libc's
#                    left out) into DIR, for a machine with GPUs but without compilers or packages
#   --emulated DIR   build nothing, and test the emulated module of the build in DIR in the GPU's
#                    place, with small sizes: tries this script, and says nothing of any GPU
#   --no-install     never call apt: name what is missing and stop
#
# Needs nvcc and g++ to build, a GPU and CUDA's runtime libraries to test; neither network nor
# MPI.  What is tested, in this order:
#
#   kernels    every kernel against the host backend, f32, f64, bf16
#   one rank   plans of every test model against the host's losses
#   a GPT      of deploy/quickstart trained for 20 steps, host and GPU: losses and times
#   rates      of kernels at a GPT's sizes: rates.json
#   profile    of these GPUs, by topt profile: profile.json, for --hw, topt hw and toptd
#   NCCL       plans, and each collective, on as many ranks as there are GPUs
#   staged     the same on 2 to 4 ranks that share a GPU, over sockets, and over MPI where it is
#   sanitizer  kernels of uncut operators under compute-sanitizer, where CUDA's tools are: memcheck,
#              initcheck, racecheck
#
# summary.txt says what became of each.  Exit status: 0 where all that is here was tested and
# passed; 1 where something failed; 3 where nothing failed, but the time was over before the end;
# 77 where no GPU was seen.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out='' pack='' arch='' emulated='' minutes=60 install=1
while [ $# -gt 0 ]; do
    case $1 in
        --out | --pack | --arch | --minutes | --emulated)
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

[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || { echo "gpu.sh: --minutes is a number from 1 to 9999" >&2 && exit 2; }

# A packed folder has programs beside this script; a checkout has its root above.
packed=0 root=$(dirname "$here")
if [ -x "$here/bin/cuda_kernels" ]; then
    packed=1 root=$here
    [ -z "$pack$arch" ] || { echo "gpu.sh: this is a packed folder: it only tests" >&2 && exit 2; }
fi
build=$root/build/gpu
if [ -n "$emulated" ]; then
    if [ $packed = 1 ] || [ -n "$pack$arch" ]; then
        echo "gpu.sh: --emulated goes with --out and --minutes alone" >&2
        exit 2
    fi
    build=$(cd "$emulated" && pwd)
    [ -e "$build/tests/cuda/emulated/libtopt_rt_cuda.so" ] || { echo "gpu.sh: '$emulated' is no build with an emulated module" >&2 && exit 2; }
fi
[ -z "$out" ] || { mkdir -p "$out" && out=$(cd "$out" && pwd); }
[ -n "$out" ] || out=$root/build/gpu-results
logs=$out
mkdir -p "$out"
# shellcheck source=deploy/lib.sh
. "$here/lib.sh"
trap 'stop_step' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

passed=0 failed=0 skipped=0 cut=0
rows=()

left_seconds()
{
    echo $((minutes * 60 - SECONDS))
}

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

# At least LEAST seconds have to be left, and at most MOST are given.
check() # NAME LOG LEAST MOST COMMAND...
{
    local name=$1 log=$2 least=$3 most=$4 rc=0 why left
    shift 4
    left=$(left_seconds)
    if [ "$left" -lt "$least" ]; then
        cut=$((cut + 1))
        step_seconds=0
        add_row "$name" "NOT RUN: $left s were left, it takes $least and more"
        return 0
    fi
    [ "$left" -gt "$most" ] || most=$left
    step_limit=$most
    tail_lines=12 run_step "$name" "$log" or_skip "$@" || rc=$?
    why=$(sed -n 's/^1\.\.0 # skipped: //p' "$logs/$log.log" | tail -n 1)
    if [ $rc = 124 ]; then
        cut=$((cut + 1))
        add_row "$name" "STOPPED after $most s: $(grep -c '^ok ' "$logs/$log.log" || true) checks until then"
    elif [ $rc != 0 ]; then
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

if [ $packed = 0 ] && [ -z "$emulated" ]; then
    say "topt on GPUs: build in $build"
    command -v nvcc >/dev/null || export PATH=$PATH:/usr/local/cuda/bin
    command -v nvcc >/dev/null || fail "nvcc was not found: install CUDA, or test a packed folder (--pack)"
    command -v dpkg-query >/dev/null && need_packages "${packages_cuda[@]}"
    # a packed folder takes along as little as it can
    mpi=()
    [ -z "$pack" ] || mpi=(-DTOPT_MPI=OFF)
    step_limit=$(left_seconds)
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
    [ -z "$emulated" ] || export TOPT_MODULE_PATH=$build/tests/cuda/emulated
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OPENBLAS_NUM_THREADS=1
unset TOPT_RANK TOPT_RANKS TOPT_RENDEZVOUS TOPT_FAKE_MEMORY
[ -n "$emulated" ] || unset TOPT_FAKE_GPUS TOPT_NCCL
[ -z "$emulated" ] || export TOPT_FAKE_GPUS=${TOPT_FAKE_GPUS:-2}

# --- what is here

have_mpi=0
[ $packed = 1 ] || ! grep -q 'TOPT_HAVE_MPI:INTERNAL=ON' "$build/CMakeCache.txt" || have_mpi=1
if [ -n "$emulated" ]; then
    say "topt on an EMULATED GPU: this tries the script; nothing here is of a GPU"
elif command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=index,name,memory.total,driver_version --format=csv,noheader >"$out/gpus.txt" 2>/dev/null || : >"$out/gpus.txt"
    sed 's/^/  GPU /' "$out/gpus.txt"
fi
# What the module sees is what counts: a container may have GPUs and no nvidia-smi.
gpus=$("$tests/cuda_kernels" --count 2>/dev/null) || true
no_gpu=
if ! [[ $gpus =~ ^[1-9][0-9]*$ ]]; then
    no_gpu="no GPU: $(sed -n 's/^1\.\.0 # skipped: //p' <<<"$gpus" | head -n 1)"
    gpus=0
fi

# Sizes that take a GPU some minutes; an emulated one has to do with less.
plans=() agree=(--models all) rates=() profile=(--max-bytes 256MiB) steps=20
if [ -n "$emulated" ]; then
    plans=(--plans 1 --steps 2) agree=(--models all --plans 1 --steps 2) steps=2
    rates=(--batch 2 --seq 8 --width 16 --heads 2 --vocab 20) profile=(--max-product 32 --max-bytes 4KiB)
fi

# --- tests

# Ranks on GPUs of their own: over sockets, but the emulated NCCL is over MPI.
on_gpus() # PROGRAM ARGUMENTS...
{
    if [ -n "$emulated" ]; then
        TOPT_NCCL=$build/tests/cuda/emulated/libtopt_fake_nccl.so mpiexec -n "$gpus" "$@"
    else
        "$sockets" "$1" "$gpus" "${@:2}"
    fi
}

# The quick start's GPT on one device, host and GPU: losses that agree, and the time of a step.
train_both()
{
    local plan=$out/plan.json text=$out/text device
    "$tools/topt-solver" plan "$model" --hw h100-80-dgx --framework topt --precision f32 --gpus 1 -o "$plan" || return 1
    for i in $(seq 400); do
        echo "$i small crowds of numbers add themselves up over $((i * i % 97)) quiet machines."
    done >"$text"
    for device in host cuda; do
        "$tools/topt-runtime" run "$plan" --data "$text" --steps "$steps" --device $device --dtype f32 \
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

# All GPUs of this machine; what is odd in it is told, and a profile that can't be read fails.
measure_profile()
{
    rm -f "$out/profile.json"
    set -- "$tools/topt-runtime" profile --device cuda --nodes 1 --per-node "$gpus" --quiet "${profile[@]}" -o "$out/profile.json"
    if [ "$gpus" -gt 1 ]; then
        on_gpus "$@" || return 1
    else
        "$@" || return 1
    fi
    "$tools/topt-solver" hw check "$out/profile.json" || return 1
    echo "ok 1 - a profile"
}

sanitize() # TOOL
{
    "$sanitizer" --tool "$1" --report-api-errors no --error-exitcode 1 "$tests/cuda_kernels" --whole
}

if [ -n "$no_gpu" ]; then
    for part in kernels "one rank" "a GPT, host and GPU" rates profile NCCL staged sanitizer; do
        skip "$part" "$no_gpu"
    done
else
    check "kernels" kernels 10 900 "$tests/cuda_kernels"
    check "one rank" one 10 900 "$tests/cuda_agree" staged "${agree[@]}"
    check "a GPT, host and GPU" train 20 600 train_both
    check "rates" rates 10 300 "$tests/cuda_rates" "${rates[@]}" -o "$out/rates.json"
    check "profile" profile 20 900 measure_profile
    if [ -n "$emulated" ] && [ $have_mpi = 0 ]; then
        skip "NCCL" "the emulated one needs MPI"
    else
        check "NCCL, $gpus rank$([ "$gpus" = 1 ] || echo s)" nccl 20 600 on_gpus "$tests/cuda_agree" nccl "${plans[@]}"
        check "NCCL, collectives" collectives 10 300 on_gpus "$tests/cuda_collectives" nccl
    fi
    check "staged, collectives, 3 ranks" staged-3 10 300 "$sockets" "$tests/cuda_collectives" 3 staged
    for ranks in 2 4; do
        check "staged, $ranks ranks, sockets" "sockets-$ranks" 20 600 "$sockets" "$tests/cuda_agree" $ranks staged "${plans[@]}"
        if [ $have_mpi = 0 ]; then
            skip "staged, $ranks ranks, MPI" "built without MPI"
        else
            check "staged, $ranks ranks, MPI" "mpi-$ranks" 20 600 mpiexec -n $ranks "$tests/cuda_agree" staged "${plans[@]}"
        fi
    done
    sanitizer=$(command -v compute-sanitizer || true)
    [ -n "$sanitizer" ] || [ ! -x /usr/local/cuda/bin/compute-sanitizer ] || sanitizer=/usr/local/cuda/bin/compute-sanitizer
    for tool in memcheck initcheck racecheck; do
        if [ -n "$emulated" ]; then
            skip "kernels, $tool" "an emulated GPU has nothing for compute-sanitizer"
        elif [ -z "$sanitizer" ]; then
            skip "kernels, $tool" "compute-sanitizer is not here"
        else
            check "kernels, $tool" $tool 60 900 sanitize $tool
        fi
    done
    [ ! -e "$logs/rates.log" ] || grep ' us ' "$logs/rates.log" | sed 's/^/  /' || true
    [ ! -e "$logs/train.log" ] || grep -h ' steps on ' "$logs/train.log" | sed 's/^/  /' || true
    [ ! -e "$logs/profile.log" ] || sed -n '/^device/,/^inside\|^measured coll/p' "$logs/profile.log" | sed 's/^/  /'
fi

say
{
    [ -z "$emulated" ] || say "  EMULATED: nothing here is of a GPU"
    printf '%s\n' "${rows[@]}"
    [ ! -e "$out/profile.json" ] || say "  a profile of these GPUs: $out/profile.json (topt plan --hw FILE; topt client put-hw FILE)"
} | tee "$out/summary.txt"
say
if [ -n "$no_gpu" ]; then
    say "nothing was tested: skipped: $no_gpu"
    exit 77
fi
say "$passed passed, $failed failed, $skipped skipped, $cut not done in $minutes minutes; logs in $out"
[ $failed = 0 ] || exit 1
[ $cut = 0 ] || exit 3
