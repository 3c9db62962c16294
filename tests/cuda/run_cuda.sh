#!/bin/sh
# run_cuda.sh - topt run on the CUDA device as people start it, and what it says where it can't.
# usage: run_cuda.sh TOPT_RUNTIME MAKE_PLAN EMULATED-FOLDER [MPIEXEC]
runtime=$1 make_plan=$2 emulated=$3 mpiexec=$4
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
unset TOPT_RENDEZVOUS
run() { # run PLAN OPTIONS...
    plan=$1
    shift
    "$runtime" run "$plan" --data text --steps 8 "$@"
}
losses() { # losses FILE: from a report on standard output
    sed -n '/"losses"/,/]/p' "$1"
}

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
for gpus in 1 2; do
    "$make_plan" gpt $gpus 7 1 plan$gpus- >out 2>err
    check "a plan for $gpus devices"
done
run plan1-0.json --dtype f64 --json >on-host 2>err
check "on the host"

export TOPT_MODULE_PATH="$dir"
refused 1 'no libtopt_rt_cuda.so in' run plan1-0.json --device cuda
check "no module"
echo nothing >libtopt_rt_cuda.so
refused 1 "can't be loaded" run plan1-0.json --device cuda
check "a module that is none"
ln -sf "$emulated/libtopt_fake_cuda.so" libtopt_rt_cuda.so
refused 1 'is no backend of topt' run plan1-0.json --device cuda
check "another library"
ln -sf "$emulated/libtopt_rt_old.so" libtopt_rt_cuda.so
refused 1 'interface 1, this is' run plan1-0.json --device cuda
check "a module of another version"

export TOPT_MODULE_PATH="$emulated"
TOPT_FAKE_GPUS=-1 refused 1 'no NVIDIA driver here' run plan1-0.json --device cuda
check "no driver"
TOPT_FAKE_GPUS=0 refused 1 'no GPU here' run plan1-0.json --device cuda
check "no GPU"
refused 2 'host or cuda' run plan1-0.json --device gpu
check "an unknown device"
refused 2 "unknown --comm 'fast'" run plan1-0.json --comm fast
check "an unknown communicator"
refused 2 'device cuda' run plan1-0.json --comm nccl
check "NCCL without GPUs"
refused 2 'nccl or staged' run plan1-0.json --device cuda --comm mpi
check "MPI between GPUs"

run plan1-0.json --dtype f64 --device cuda --json >out 2>err && [ -n "$(losses out)" ] &&
    [ "$(losses out | cut -c1-14)" = "$(losses on-host | cut -c1-14)" ]
check "one GPU trains as the host"
# gradients of rows are kept on the host alone; of the plans for two devices the second keeps some
"$make_plan" recommender 1 7 1 rows1- >out 2>err && "$make_plan" recommender 2 7 4 rows2- >out 2>err
check "plans for tables with sparse gradients"
rows="the plan keeps gradients of rows of tables, which is done on CPUs only; run with --device host"
refused 1 "^topt run: $rows" "$runtime" run rows1-0.json --data synthetic --steps 2 --device cuda
check "gradients of rows"
"$runtime" run rows1-0.json --data synthetic --steps 2 >out 2>err && grep -q '^2 steps on 1 rank' out
check "... which the host has"
TOPT_FAKE_MEMORY=1000 refused 1 'are free; plan for more devices' run plan1-0.json --device cuda
check "a plan that the GPU has no room for"
run plan1-0.json --dtype bf16 --optimizer adam --device cuda >out 2>err
check "in bf16, with adam"
"$runtime" profile --device cuda --max-product 32 --quiet -o hw.json >out 2>err && grep -q '"bf16"' hw.json &&
    ! grep -q shared_cores hw.json
check "a GPU's profile"
refused 2 'did you mean cuda' "$runtime" profile --device cud -o hw.json
check "a profile of an unknown device"
if [ -n "$mpiexec" ]; then
    "$mpiexec" -n 2 "$runtime" profile --device cuda --max-product 32 --max-bytes 2KiB -o two.json >out 2>err &&
        grep -q '^2 ranks on 1 node: .* 4 curves' out
    check "two GPUs' profile, with NCCL's curves"
    for comm in auto nccl staged; do
        "$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --steps 8 --dtype f64 \
            --device cuda --comm $comm --overlap --bucket 2KiB --json >out 2>err && [ -n "$(losses out)" ] &&
            [ "$(losses out | cut -c1-14)" = "$(losses on-host | cut -c1-14)" ]
        check "two GPUs, $comm"
    done
    grep -q "warning: --overlap: nothing runs beside what computes over 'staged'" err
    check "... by way of the hosts' memory nothing overlaps, which is said"
    TOPT_FAKE_GPUS=1 refused 1 'use the same GPU' "$mpiexec" -n 2 "$runtime" run plan2-0.json \
        --data text --device cuda
    check "two ranks on one GPU: one line"
    TOPT_FAKE_GPUS=1 "$mpiexec" -n 2 "$runtime" run plan2-0.json --data text --steps 2 --device cuda \
        --comm staged >out 2>err
    check "... unless they are told to"
    refused 1 "^topt run: $rows" "$mpiexec" -n 2 "$runtime" run rows2-1.json --data synthetic --steps 2 --device cuda --comm staged
    check "gradients of rows on two GPUs: one line"
    TOPT_NCCL=/nowhere refused 1 'use --comm staged' "$mpiexec" -n 2 "$runtime" run plan2-0.json \
        --data text --device cuda
    check "no NCCL: one line"
fi

export TOPT_RANKS=2 TOPT_RENDEZVOUS="127.0.0.1:$((20000 + $$ % 20000))"
TOPT_RANK=1 "$runtime" run plan2-0.json --data text --steps 8 --dtype f64 --device cuda --comm staged \
    >/dev/null 2>err1 &
TOPT_RANK=0 run plan2-0.json --dtype f64 --device cuda --comm staged --json >out 2>err && wait $! &&
    [ "$(losses out | cut -c1-14)" = "$(losses on-host | cut -c1-14)" ]
check "two GPUs without MPI"
TOPT_RANK=2 refused 1 'TOPT_RANK has to be' run plan2-0.json
check "a rank that there is not"
TOPT_RENDEZVOUS=here TOPT_RANK=0 refused 1 'not HOST:PORT' run plan2-0.json
check "no address"
finish
