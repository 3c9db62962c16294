# lib.sh - what the system tests of the Slurm plugin share: a private Slurm, a planner that
# says what it is told to, and checks in TAP.  Sourced with TOPT_PLUGIN set to spank_topt.so.
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cluster=$source_dir/deploy/cluster.sh
checks=0 failures=0

skip_all() # WHY
{
    echo "1..0 # skipped: $*"
    exit 77
}

ok() # TEXT COMMAND...
{
    local text=$1
    shift
    checks=$((checks + 1))
    if "$@"; then
        echo "ok $checks - $text"
    else
        failures=$((failures + 1))
        echo "not ok $checks - $text"
        echo "#   failed: $*"
    fi
}

is() # GOT WANTED TEXT
{
    ok "$3" [ "$1" = "$2" ]
    [ "$1" = "$2" ] || printf '#   got  %q\n#   want %q\n' "$1" "$2"
}

like() # TEXT-TO-SEARCH WANTED-PART TEXT
{
    case $1 in
        *"$2"*) ok "$3" true ;;
        *)
            ok "$3" false
            printf '#   %q\n#   lacks %q\n' "$1" "$2"
            ;;
    esac
}

finish()
{
    echo "1..$checks"
    [ "$failures" = 0 ]
    exit
}

need_slurm()
{
    [ "$(id -u)" = 0 ] || skip_all "a private Slurm needs root"
    local tool
    for tool in slurmctld slurmd munged sbatch srun salloc python3; do
        PATH=$PATH:/usr/sbin command -v $tool >/dev/null || skip_all "'$tool' is not installed"
    done
    [ -f "${TOPT_PLUGIN:-}" ] || skip_all "spank_topt.so is not built"
    TOPT_PLUGIN=$(realpath "$TOPT_PLUGIN")
}

# The planner, at $url: one that says what it is told to.  A test may have another.
start_planner()
{
    mkfifo "$work/hold"
    python3 "$source_dir/tests/slurm/fake_toptd.py" "$work" <"$work/hold" &
    exec 7>"$work/hold"
    local left=600
    while [ ! -f "$work/url" ] && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
    url=$(cat "$work/url")
}

stop_planner()
{
    exec 7>&-
}

# The plugin's deadline where no outage is tested: a busy machine answers late.
patience=timeout_ms=60000

# $work, $answer, $SLURM_CONF, $url; all of it goes when the test ends.  Where $nodes is set the cluster has these nodes and
# partitions, as deploy/cluster.sh --nodes reads them.
start_all() # [options for cluster.sh]
{
    unset LD_PRELOAD SLURM_JOB_ID TOPT_URL
    export -n TOPT_PLUGIN TOPT_MPI_HELLO TOPT_JOB_SUBMIT TOPT_ACCOUNTING TOPT_OTHER_PLUGIN
    work=$(mktemp -d /tmp/topt-slurm.XXXXXX) && chmod 755 "$work"
    trap 'stop_all' EXIT
    trap 'exit 1' INT TERM HUP
    answer=$work/answer
    if [ -n "${nodes:-}" ]; then
        echo "$nodes" >"$work/nodes"
        set -- "$@" --nodes "$work/nodes"
    fi
    start_planner || exit 1
    "$cluster" start "$work/c" --url "$url" --plugin "$TOPT_PLUGIN" --plugin-args "$patience" --owner $$ --force "$@" \
        7>&- || exit 1
    eval "$("$cluster" env "$work/c")"
    unset TOPT_URL
    cd "$work" || exit 1
    echo '{"model_type":"test"}' >config.json
}

stop_all()
{
    stop_planner
    "$cluster" stop "$work/c"
    cd /
    rm -rf "$work"
}

# The planner answers with this plan from now on.
plan() # NODES GPUS-PER-NODE
{
    cat >"$answer" <<ANSWER
200
TOPT_PLAN_ID=p-0123456789abcdef
TOPT_GPUS=$(($1 * $2))
TOPT_NODES=$1
TOPT_GPUS_PER_NODE=$2
TOPT_MEMORY_BYTES=1048576
TOPT_PEAK_BYTES=1000000
TOPT_TIME_NS=2500000
TOPT_SPACE=full
TOPT_STRATEGY=data parallel
TOPT_WHY=needs 1 MiB a GPU on $(($1 * $2))
ANSWER
}

# The planner answers with this error from now on.
error() # STATUS NAME DESCRIPTION [NEAREST]
{
    printf '%s\nERROR=%s\nDESCRIPTION=%s\n' "$1" "$2" "$3" >"$answer"
    [ -z "${4:-}" ] || echo "NEAREST=$4" >>"$answer"
}

field() # JOB NAME: as scontrol shows it
{
    scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -1
}

# "nodes/tasks/GPUs per node" of a job; while it waits, "2-2" nodes are 2.  From 23.11 on gres/gpu is what was gres:gpu.
shape() # JOB
{
    echo "$(field "$1" NumNodes | sed 's/^\([0-9]*\)-\1$/\1/')/$(field "$1" NumTasks)/$(field "$1" TresPerNode | sed 's/gres\//gres:/g')"
}

wait_job() # JOB
{
    local left=1200 # a minute, on a busy machine
    while squeue -h -j "$1" -o %T 2>/dev/null | grep -qE 'PENDING|RUNNING|COMPLETING|CONFIGURING'; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.05
    done
}

# The states of nodes, each once, when nothing of what ended is completing there any more.
settled_nodes()
{
    local left=240 # two minutes, on a busy machine
    while sinfo -h -N -o %T | grep -q completing && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.5
    done
    sinfo -h -N -o %T | sort -u
}

# A submitted job has this shape, says so, and is not one that can never start.
gets() # SHAPE PART TEXT OPTIONS...
{
    local want=$1 part=$2 text=$3 job
    shift 3
    # shellcheck disable=SC2068
    job=$(sbatch --parsable --hold $@ --wrap env 2>err)
    is "$(shape "$job")" "$want" "$text: $(head -1 err)"
    like "$(cat err)" "$part" "$text: it says so"
    scontrol release "$job"
    sleep 0.2
    squeue -h -j "$job" -t PENDING -o %r 2>/dev/null | grep -qE 'BadConstraints|PartitionConfig|PartitionNodeLimit' &&
        ok "$text: it can run" false
    scancel "$job"
}

refused() # PART TEXT OPTIONS...
{
    local part=$1 text=$2 rc
    shift 2
    # shellcheck disable=SC2068
    sbatch --parsable $@ --wrap env >jobs 2>err
    rc=$?
    is "$rc/$(wc -l <err)/$(cat jobs)" "1/1/" "$text: refused with one line"
    like "$(cat err)" "$part" "$text: $(cat err)"
}
