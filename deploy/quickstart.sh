#!/usr/bin/env bash
# quickstart.sh - see topt at work on this machine: one script submitted three times, which
# gets 1, 2 and 4 GPUs, since each time a GPU has less memory.
#
#   deploy/quickstart.sh [--state DIR] [--keep] [--no-install] [--force]
#
#   --state DIR    where everything is kept (default: a new folder in /tmp, removed at the end)
#   --keep         do not remove that folder
#   --no-install   never call apt: name what is missing and stop
#   --force        run although this machine has a configured Slurm (it is not touched)
#
# On a bare Debian 12 it installs what it needs (as root, or with sudo), builds topt, then
#
#   1  measures this machine: kernels and collectives of MPI ranks that play GPUs
#   2  starts toptd, the planner, with that profile
#   3  starts a private Slurm of two nodes with four GPUs each (GPUs that are only names)
#   4  submits deploy/quickstart/train.sh under three memory limits and waits for it
#   5  compares what was predicted with what was measured
#   6  asks for the throughput of a large model on a large cluster
#
# Whatever it started is stopped again, however it ends.  A second run builds only what
# changed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
install=1 state='' keep=0 force='' built=0
arguments=("$@")
while [ $# -gt 0 ]; do
    case $1 in
        --state)
            [ $# -ge 2 ] || { echo "quickstart.sh: --state needs a folder" >&2 && exit 2; }
            state=$(realpath -m "$2") keep=1
            shift
            ;;
        --keep) keep=1 ;;
        --no-install) install=0 ;;
        --force) force=--force ;;
        --built) built=1 ;; # started again by itself, as root
        --help | -h)
            sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
            exit 0
            ;;
        *)
            echo "quickstart.sh: '$1' is no option; try --help" >&2
            exit 2
            ;;
    esac
    shift
done
logs=$root/build/logs
# shellcheck source=deploy/lib.sh
. "$root/deploy/lib.sh"

here=$root/deploy/quickstart
bin=$root/build/release/bin
small=$here/gpt-small.json batch=8 seq=64
large=$here/llama-3.1-8b.json large_hw=a100-80-dgx
# What one GPU is said to have.  With the least memory, training this model takes 14.2 MiB on one
# GPU, 7.2 on two, 5.3 on three and 3.7 on four (topt plan): so one, two and four are needed.
limits=(40MiB 12MiB 5MiB)
steps=60
toptd_pid=

# --- cleaning up, however this ends

finish()
{
    local rc=$?
    trap '' INT TERM HUP
    stop_step
    if [ -n "$state" ] && [ -d "$state/slurm" ]; then
        "$root/deploy/cluster.sh" stop "$state/slurm" || true
    fi
    if [ -n "$toptd_pid" ]; then
        kill "$toptd_pid" 2>/dev/null || true
        wait "$toptd_pid" 2>/dev/null || true
    fi
    if [ -n "$state" ] && [ -d "$state" ]; then
        if [ "$rc" != 0 ] || [ $keep = 1 ]; then
            say "Everything this run wrote is in $state"
        else
            rm -rf "$state"
        fi
    fi
    exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- helpers

title() # TEXT
{
    printf '\n%s\n' "$*"
}

# Wait until a command succeeds, for so many tenths of a second.
wait_for() # TENTHS COMMAND...
{
    local left=$1
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        sleep 0.1
    done
}

mib() # BYTES
{
    awk -v b="$1" 'BEGIN { printf "%.1f MiB", b / 1048576 }'
}

ms() # NANOSECONDS
{
    awk -v t="$1" 'BEGIN { printf "%.1f ms", t / 1e6 }'
}

configured_slurm()
{
    local file
    for file in "${SLURM_CONF:-}" /etc/slurm/slurm.conf /etc/slurm-llnl/slurm.conf; do
        [ -z "$file" ] || [ ! -f "$file" ] || { echo "$file" && return 0; }
    done
    return 1
}

# --- the parts

prepare()
{
    title "Preparing (logs in $logs)"
    if conf=$(configured_slurm) && [ -z "$force" ]; then
        fail "a Slurm is configured here ($conf), and this is for machines without one; --force runs a private one beside it"
    fi
    if [ $built = 0 ]; then
        need_packages "${packages_build[@]}" "${packages_slurm[@]}" ||
            fail "installing packages failed: see $logs/packages.log"
        run_step "build" quickstart-build build_preset release release -DTOPT_CUDA=OFF ||
            fail "building failed: see $logs/quickstart-build.log"
    fi
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "a private Slurm needs root: run this as root, or install sudo"
        say "  going on as root, with sudo: a private Slurm needs it"
        trap - EXIT
        exec sudo --preserve-env=TERM,COLUMNS bash "$0" --built "${arguments[@]}"
    fi
    if [ -z "$state" ]; then
        state=$(mktemp -d /tmp/topt-quickstart.XXXXXX)
    fi
    mkdir -p "$state"
    chmod 755 "$state"
    logs=$state/log
    export PATH=$bin:$PATH TOPT_URL=unix:$state/toptd.sock
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
    cd "$state"
}

measure()
{
    title "1. Measuring this machine: ranks of MPI play GPUs"
    run_step "topt profile" profile mpirun -n 8 topt profile \
        --nodes 2 --per-node 4 --name this-machine -o "$state/hw.json" ||
        fail "measuring failed: see $logs/profile.log"
}

start_toptd()
{
    title "2. Starting toptd"
    setpriv --pdeathsig TERM toptd --state "$state/store" --socket "$state/toptd.sock" \
        </dev/null >"$logs/toptd.log" 2>&1 &
    toptd_pid=$!
    wait_for 100 curl -fsS --unix-socket "$state/toptd.sock" http://localhost/readyz || {
        tail -n 5 "$logs/toptd.log"
        fail "toptd did not come up: see $logs/toptd.log"
    }
    topt client add-hw "$state/hw.json"
}

start_slurm()
{
    title "3. Starting a private Slurm: two nodes, four GPUs each"
    run_step "slurmctld, slurmd, slurmd" slurm "$root/deploy/cluster.sh" start "$state/slurm" \
        --url "$TOPT_URL" --plugin "$root/build/release/lib/spank_topt.so" --owner $$ $force ||
        fail "Slurm did not come up: see $logs/slurm.log"
    eval "$("$root/deploy/cluster.sh" env "$state/slurm")"
    sinfo -o '  %N: %D nodes, %G each, %T' -h
}

job_ended() # JOB
{
    [ -z "$(squeue -h -j "$1" -o %i 2>/dev/null)" ]
}

job_field() # JOB FIELD
{
    scontrol show job -o "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

train() # LIMIT: submits, waits, and adds the job to 'jobs'
{
    local job gpus nodes
    say
    say "\$ sbatch --topt-mode=mini-parallelism --topt-model=gpt-small.json --topt-batch=$batch --topt-seq=$seq --topt-memory=$1 --topt-framework=topt train.sh"
    job=$(STEPS=$steps sbatch --parsable --output="$state/job-%j.out" \
        --topt-mode=mini-parallelism --topt-model="$small" --topt-batch="$batch" \
        --topt-seq="$seq" --topt-memory="$1" --topt-framework=topt "$here/train.sh" 2> >(tee "$logs/sbatch-$1.log" | sed 's/^/  /' >&2)) ||
        fail "sbatch refused the job"
    nodes=$(job_field "$job" NumNodes)
    gpus=$(job_field "$job" TresPerNode)
    gpus=$((${nodes%-*} * ${gpus##*:}))
    run_step "job $job: $gpus GPU(s) on ${nodes%-*} node(s)" "job-$job" wait_for 1800 job_ended "$job" ||
        fail "job $job did not end within three minutes: see $state/job-$job.out"
    if [ "$(job_field "$job" JobState)" != COMPLETED ] || [ ! -f "$state/report-$job.json" ]; then
        tail -n 10 "$state/job-$job.out" | sed 's/^/    | /'
        fail "job $job failed: see $state/job-$job.out"
    fi
    jobs+=("$job") job_gpus+=("$gpus") job_limits+=("$1")
}

jobs=() job_gpus=() job_limits=()
train_all()
{
    local limit
    title "4. Submitting one script three times, which trains by topt run; a GPU has less memory each time"
    for limit in "${limits[@]}"; do
        train "$limit"
    done
}

# --- what came of it

# One row of the table, from the job's report.
show_row() # LIMIT GPUS JOB
{
    local report=$state/report-$3.json plan=$state/plan-$3.json
    topt client get-plan "$(jq -r .plan "$report")" -o "$plan" 2>>"$logs/client.log" ||
        fail "toptd does not know the plan of job $3: see $logs/client.log"
    printf '  %-9s %4s %6s   %9s %9s   %8s %8s   %.3f -> %.3f  %s\n' "${1%MiB} MiB" "$2" \
        "$(jq .nodes "$report")" \
        "$(mib "$(jq .predicted.memory_bytes "$report")")" "$(mib "$(jq .peak_bytes "$report")")" \
        "$(ms "$(jq .predicted.time_ns "$report")")" "$(ms "$(jq .median_step_ns "$report")")" \
        "$(jq '.losses[0]' "$report")" "$(jq '.losses[-1]' "$report")" \
        "$(jq -r .strategy "$plan")"
}

bad=0
verdict() # GOOD TEXT
{
    if [ "$1" = 1 ]; then
        say "  ok: $2"
    else
        say "  NOT SO: $2"
        bad=1
    fi
}

# The largest relative difference of the first 50 losses between the jobs.
largest_difference()
{
    jq -s '[.[].losses[:50]] as $all | [range(0; $all[0] | length) as $i | $all[] | .[$i] as $loss
        | ($loss - $all[0][$i]) / $all[0][$i] | fabs] | max' "$state"/report-*.json
}

check_all()
{
    local i peak limit within=1 worst good
    [ "${job_gpus[*]}" = "1 2 4" ] && good=1 || good=0
    verdict $good "with less memory a GPU, the same script got 1, 2 and 4 GPUs (it got ${job_gpus[*]})"
    for i in "${!jobs[@]}"; do
        peak=$(jq .peak_bytes "$state/report-${jobs[i]}.json")
        limit=$((${job_limits[i]%MiB} << 20))
        [ "$peak" -le "$limit" ] || within=0
    done
    verdict $within "no rank ever held more than its limit"
    worst=$(largest_difference)
    good=$(jq -n "if $worst <= 1e-5 then 1 else 0 end")
    verdict "$good" "the losses agree, whatever the plan: largest relative difference in 50 steps $(printf '%.1e' "$worst")"
}

compare()
{
    local i
    title "5. Predicted and measured: the same $steps steps on the same English text"
    printf '  %-9s %4s %6s   %19s   %17s   %-14s  %s\n' "a GPU has" GPUs nodes \
        "memory: plan, run" "step: plan, run" loss strategy
    for i in "${!jobs[@]}"; do
        show_row "${job_limits[i]}" "${job_gpus[i]}" "${jobs[i]}"
    done
    say
    check_all
}

large_curve()
{
    local options=(--hw "$large_hw" --batch 256 --seq 4096 --framework pytorch --counts pow2
        --max-gpus 256)
    title "6. Asking toptd about a larger model on a larger cluster, trained by PyTorch"
    say "\$ topt client curve $(basename "$large") ${options[*]}"
    run_step "search" curve topt client curve "$large" "${options[@]}" ||
        fail "toptd did not answer: see $logs/curve.log"
    cat "$logs/curve.log"
}

say "topt's quick start"
prepare
measure
start_toptd
start_slurm
train_all
compare
large_curve
title "Done in $(seconds_text $SECONDS).  Stopping what was started."
[ $bad = 0 ]
