#!/bin/bash
# cluster.sh - a real, private Slurm on this machine: two nodes of four GPUs that are only
# names, for trying topt and for its system tests.
#
#   cluster.sh start DIR [--url URL] [--plugin FILE] [--plugin-args 'timeout_ms=.. ..']
#                        [--owner PID] [--nodes FILE] [--accounting ROOT] [--job-submit FILE] [--stepd FILE] [--force]
#   cluster.sh stop DIR          end the daemons, the jobs and whatever they left running
#   cluster.sh env DIR           shell lines: eval "$(cluster.sh env DIR)"
#   cluster.sh run DIR [options as for start] -- COMMAND ARGS...
#                                start, run COMMAND in it, stop; exits as COMMAND does
#
# Everything lives in DIR: slurm.conf, logs, state, a munged of its own with a key of its
# own.  Nothing under /etc or /run is touched and no service is enabled, so several such
# clusters can stand side by side.  Needs root and, on Debian 12:
#   apt install slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
#
# --url and --plugin put topt's SPANK plugin into plugstack.conf (--plugin alone takes the
# plugin's default URL; --url alone looks for the plugin in the build folders).
# --nodes: a file with other nodes, n1 to n6, and partitions: lines "n1 CPUs=.. Gres=gpu:a100:4" and "PartitionName=.."; a
# GPU's type is any word, and a node has at most four.  Its other lines KEY=.. are slurm.conf's, after those above.
# --accounting: with a slurmdbd and a MariaDB of its own, which enforces limits.  ROOT is "/" where slurmdbd,
# mariadb-server-core and slurm-wlm-mysql-plugin are installed, or a folder that their packages were unpacked into
# (dpkg -x), with those they need.
# --job-submit: the controller loads this job_submit/topt.
# --stepd: this is run as slurmstepd, as a script that starts it under a debugger.
# --owner stops the cluster when process PID is gone, however it ended.
# --force: do it although this machine has a configured Slurm.
#
# How virtual nodes work: Debian's slurmd is built with multiple-slurmd support, so one host
# runs `slurmd -N n1` and `slurmd -N n2` on two ports.  TmpFS has %n in it since PMIx would
# otherwise mix the two nodes' files, and the task prolog keeps Open MPI from its shared
# memory transport, whose segment names collide for the same reason, and on the loopback
# interface, since Open MPI 5 finds no way between two nodes of one address otherwise.
set -u
PATH=$PATH:/usr/sbin:/sbin
me=cluster.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die()
{
    echo "$me: $*" >&2
    exit 1
}

usage()
{
    echo "$me: $*; usage: cluster.sh start|stop|env|run DIR [options] (see the file's top)" >&2
    exit 2
}

# --- processes: each line of DIR/pids is "PID START-TIME NAME", so that a process id which
# --- was given to somebody else in the meantime is never signalled.

start_time() # PID
{
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # Fields are counted after the command name, which may hold blanks.
    set -- ${stat##*) }
    [ "$1" != Z ] && echo "${20}"
}

alive() # PID START-TIME
{
    [ "$(start_time "$1")" = "$2" ]
}

remember() # PID NAME
{
    local start
    start=$(start_time "$1") || return 1
    echo "$1 $start $2" >>"$dir/pids"
}

descendants() # PID: its children, their children and so on
{
    local child
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        descendants "$child"
        echo "$child"
    done
}

# Wait until the given check fails, for at most so many hundredths of a second.
wait_while() # HUNDREDTHS COMMAND...
{
    local left=$1
    shift
    while "$@"; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 5))
        sleep 0.05
    done
}

end_process() # PID START-TIME
{
    alive "$1" "$2" || return 0
    kill "$1" 2>/dev/null
    wait_while 500 alive "$1" "$2" || kill -KILL "$1" 2>/dev/null
}

# --- stopping

any_job()
{
    [ -n "$(timeout 2 squeue -h -o %i 2>/dev/null)" ]
}

# All daemons carry TOPT_CLUSTER_STEP=DIR in their environment, and steps inherit it from
# their slurmd: what outlived its parent, or whose DIR was removed, is found by that.
end_left()
{
    local file pid child
    for file in $(grep -lzxF "TOPT_CLUSTER_STEP=$dir" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}
        pid=${pid%/environ}
        for child in $(descendants "$pid"); do
            kill -KILL "$child" 2>/dev/null
        done
        kill -KILL "$pid" 2>/dev/null
    done
}

stop_cluster()
{
    if [ ! -f "$dir/pids" ]; then
        end_left
        return 0
    fi
    export SLURM_CONF=$dir/slurm.conf
    local pid start name
    if grep -q ' slurmctld$' "$dir/pids" && any_job; then
        timeout 5 squeue -h -o %i 2>/dev/null | xargs -r timeout 5 scancel 2>/dev/null
        wait_while 300 any_job
    fi
    # Last started first; the watcher of --owner among them, unless this is the watcher.
    while read -r pid start name; do
        [ "$pid" = "$$" ] || [ "$pid" = "$BASHPID" ] || [ "$pid" = "${TOPT_CLUSTER_WATCHER:-}" ] ||
            end_process "$pid" "$start"
    done < <(tac "$dir/pids")
    end_left
    rm -f "$dir/pids"
}

# --- starting

configured_slurm()
{
    local file
    if [ -n "${SLURM_CONF:-}" ] && [ -f "$SLURM_CONF" ] &&
        [ ! -f "$(dirname "$SLURM_CONF")/.topt-cluster" ]; then
        echo "$SLURM_CONF"
        return 0
    fi
    for file in /etc/slurm/slurm.conf /etc/slurm-llnl/slurm.conf /usr/local/etc/slurm.conf; do
        [ -f "$file" ] && echo "$file" && return 0
    done
    return 1
}

check_host()
{
    local file tool
    [ "$(id -u)" = 0 ] || die "a private Slurm needs root (slurmd starts jobs for their users)"
    for tool in slurmctld slurmd munged sbatch srun scontrol sinfo squeue; do
        command -v "$tool" >/dev/null ||
            die "'$tool' is not installed (apt install slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge)"
    done
    [ ${#dir} -le 60 ] || die "'$dir' is too long for the sockets made in it: at most 60 characters"
    if file=$(configured_slurm) && [ "$force" = 0 ]; then
        die "a Slurm is configured here already ($file): use that one, or --force a private one beside it"
    fi
}

find_plugin()
{
    local file
    for file in "$here"/../build/{release,dev}/lib/spank_topt.so \
        /usr/{local/,}lib/{,x86_64-linux-gnu/}{slurm,slurm-wlm}/spank_topt.so; do
        [ -f "$file" ] && realpath "$file" && return 0
    done
    die "no spank_topt.so found: build it, or name it with --plugin"
}

listening() # PORT
{
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Eight ports in a row below the ephemeral range, with nobody listening: of the controller, six nodes and slurmdbd.
choose_ports()
{
    local i busy
    for _ in 1 2 3 4 5 6 7 8 9; do
        port=$((17000 + (RANDOM % 1900) * 8)) busy=0
        for i in 0 1 2 3 4 5 6 7; do
            ! listening $((port + i)) || busy=1
        done
        [ $busy = 1 ] || return 0
    done
    die "no eight free ports found"
}

# The names of the nodes.
node_names()
{
    if [ -n "$nodes" ]; then
        sed -n 's/^\(n[1-6]\) .*/\1/p' "$nodes"
    else
        printf 'n1\nn2\n'
    fi
}

# Lines of gres.conf: device files are required; these exist everywhere and nobody minds.
node_devices()
{
    local devices=(/dev/null /dev/zero /dev/full /dev/random) name type count list
    sed -n 's/^\(n[1-6]\) .*Gres=gpu:\([a-z0-9]*\):\([1-4]\).*/\1 \2 \3/p' "$nodes" | while read -r name type count; do
        list=$(IFS=,; echo "${devices[*]:0:count}")
        echo "NodeName=$name Name=gpu Type=$type File=$list"
    done
}

write_config()
{
    local host version
    host=$(uname -n)
    host=${host%%.*}
    cat >"$dir/slurm.conf" <<CONF
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
SlurmctldPort=$port
StateSaveLocation=$dir/ctld
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
PlugStackConfig=$dir/plugstack.conf
TaskProlog=$dir/taskprolog.sh
TmpFS=$dir/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=1
SchedulerParameters=batch_sched_delay=0
JobRequeue=0
SlurmdParameters=config_overrides
GresTypes=gpu
CONF
    if [ -n "$job_submit" ]; then
        mkdir -p "$dir/plugins"
        cp "$job_submit" "$dir/plugins/" || die "can't copy '$job_submit' into '$dir'"
        printf 'JobSubmitPlugins=topt\nPluginDir=%s:%s\n' "$dir/plugins" \
            "$(dirname "$(find /usr/lib /usr/local/lib -name select_cons_tres.so 2>/dev/null | head -1)")" >>"$dir/slurm.conf"
    fi
    [ -z "$accounting" ] || cat >>"$dir/slurm.conf" <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((port + 7))
AccountingStoragePass=$dir/munge/socket
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
CONF
    if [ -n "$nodes" ]; then
        local n
        for n in $(node_names); do
            sed -n "s/^$n \(.*\)/NodeName=$n NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + ${n#n})) \1/p" "$nodes"
        done >>"$dir/slurm.conf"
        sed -n '/^[A-Z][A-Za-z]*=/p' "$nodes" >>"$dir/slurm.conf"
    else
        cat >>"$dir/slurm.conf" <<CONF
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + 2)) CPUs=16 RealMemory=4000 Gres=gpu:4
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    fi
    {
        echo AutoDetect=off
        if [ -n "$nodes" ]; then
            node_devices
        else
            echo "Name=gpu File=/dev/null,/dev/zero,/dev/full,/dev/random"
        fi
    } >"$dir/gres.conf"
    version=$(slurmctld -V | tr -dc '0-9.\n' | cut -d. -f1,2)
    case $version in
        2[0-3].*) ;;
        *) echo "CgroupPlugin=disabled" >"$dir/cgroup.conf" ;;
    esac
    printf '#!/bin/sh\necho "export OMPI_MCA_btl=self,tcp"\necho "export OMPI_MCA_btl_tcp_if_include=lo"\n' >"$dir/taskprolog.sh"
    chmod 755 "$dir/taskprolog.sh"
    : >"$dir/plugstack.conf"
    if [ -n "$plugin" ]; then
        # A copy: the path may hold blanks, which the file can't say, or lie in a home
        # folder, where other users' sbatch can't read it.
        cp "$plugin" "$dir/spank_topt.so" || die "can't copy the plugin into '$dir'"
        chmod 755 "$dir/spank_topt.so"
        echo "optional $dir/spank_topt.so ${url:+url=$url} $plugin_args" >"$dir/plugstack.conf"
    fi
}

make_folders()
{
    mkdir -p "$dir" || die "can't make '$dir'"
    chmod 755 "$dir"
    mkdir -p "$dir"/{ctld,log,munge}
    rm -rf "$dir"/ctld/* "$dir"/spool/n*/*
    local n
    for n in $(node_names); do
        mkdir -p "$dir/spool/$n" "$dir/tmp/$n"
        chmod 1777 "$dir/tmp/$n"
    done
    : >"$dir/pids"
    : >"$dir/.topt-cluster"
}

start_munged()
{
    local run=
    [ -s "$dir/munge/key" ] || head -c 128 /dev/urandom >"$dir/munge/key"
    chmod 755 "$dir/munge"
    chmod 600 "$dir/munge/key"
    # As munge, unless DIR lies where that user can't go: below /root, for one.
    if id munge >/dev/null 2>&1; then
        chown -R munge "$dir/munge"
        run="setpriv --reuid=munge --regid=$(id -g munge) --clear-groups"
        $run test -w "$dir/munge" 2>/dev/null || { run= && chown -R root "$dir/munge"; }
    fi
    # --force: the folders above DIR are the user's choice and may not please munged.
    TOPT_CLUSTER_STEP=$dir $run munged --foreground --force --num-threads=2 --key-file="$dir/munge/key" \
        --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
        --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" \
        </dev/null >"$dir/log/munged.out" 2>&1 9>&- &
    remember $! munged || return 1
    no_munge() { [ ! -S "$dir/munge/socket" ]; }
    wait_while 300 no_munge
}

start_daemon() # NAME COMMAND...
{
    local name=$1
    shift
    env -u SLURM_JOB_ID TOPT_CLUSTER_STEP="$dir" "$@" </dev/null >"$dir/log/$name.out" 2>&1 9>&- &
    remember $! "$name"
}

# The database, and slurmdbd with one user's account for who starts it.
start_accounting()
{
    local share=$accounting/usr/share/mysql plugins
    plugins=$accounting/usr/lib/x86_64-linux-gnu/slurm-wlm:/usr/lib/x86_64-linux-gnu/slurm-wlm
    [ -x "$accounting/usr/sbin/mariadbd" ] && [ -x "$accounting/usr/sbin/slurmdbd" ] ||
        die "--accounting: '$accounting' has no usr/sbin/mariadbd and usr/sbin/slurmdbd"
    rm -rf "$dir/db" && mkdir -p "$dir/db"
    in_accounting() { LD_LIBRARY_PATH=$accounting/usr/lib/x86_64-linux-gnu MYSQL_UNIX_PORT=$dir/db.sock "$@"; }
    {
        printf 'create database mysql;\nuse mysql;\n'
        cat "$share/mysql_system_tables.sql" "$share/mysql_system_tables_data.sql"
    } | in_accounting "$accounting/usr/sbin/mariadbd" --no-defaults --bootstrap --datadir="$dir/db" \
        --lc-messages-dir="$share" --user=root >"$dir/log/bootstrap.out" 2>&1
    in_accounting start_daemon mariadbd "$accounting/usr/sbin/mariadbd" --no-defaults --datadir="$dir/db" \
        --socket="$dir/db.sock" --skip-networking --skip-grant-tables --lc-messages-dir="$share" --user=root \
        --innodb-buffer-pool-size=16M || return 1
    no_database() { [ ! -S "$dir/db.sock" ]; }
    wait_while 1500 no_database || return 1
    cat >"$dir/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
DbdHost=localhost
DbdPort=$((port + 7))
SlurmUser=root
LogFile=$dir/log/slurmdbd.log
PidFile=$dir/slurmdbd.pid
PluginDir=$plugins
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
CONF
    chmod 600 "$dir/slurmdbd.conf"
    SLURM_CONF=$dir/slurmdbd.conf in_accounting start_daemon slurmdbd "$accounting/usr/sbin/slurmdbd" -D || return 1
    no_slurmdbd() { ! listening $((port + 7)); }
    wait_while 1500 no_slurmdbd || return 1
    sacctmgr -iQ add cluster lab >"$dir/log/sacctmgr.out" 2>&1
    sacctmgr -iQ add account lab >>"$dir/log/sacctmgr.out" 2>&1
    sacctmgr -iQ add user "$(id -un)" account=lab >>"$dir/log/sacctmgr.out" 2>&1
}

# Idle in the eyes of the controller, twice over.
not_idle()
{
    [ "$(timeout 2 sinfo -h -N -o '%N %T' 2>/dev/null | sort -u | grep -c ' idle$')" != "$(node_names | wc -l)" ]
}

all_alive()
{
    local pid start name
    while read -r pid start name; do
        alive "$pid" "$start" || return 1
    done <"$dir/pids"
}

waiting_for_idle()
{
    all_alive && not_idle
}

start_once()
{
    choose_ports
    make_folders
    write_config
    start_munged || return 1
    [ -z "$accounting" ] || start_accounting || return 1
    start_daemon slurmctld slurmctld -D -f "$dir/slurm.conf" || return 1
    local node
    for node in $(node_names); do
        start_daemon "slurmd-$node" slurmd -D -N "$node" -f "$dir/slurm.conf" ${stepd:+-d "$stepd"} || return 1
    done
    wait_while 1500 waiting_for_idle && all_alive
}

watch_owner()
{
    local start
    start=$(start_time "$owner") || die "--owner: there is no process $owner"
    (
        export TOPT_CLUSTER_WATCHER=$BASHPID
        while alive "$owner" "$start"; do
            sleep 1
        done
        exec "$here/$me" stop "$dir"
    ) </dev/null >/dev/null 2>&1 9>&- &
    remember $! watcher
}

start_cluster()
{
    check_host
    if [ -f "$dir/pids" ]; then
        die "'$dir' holds a cluster already: cluster.sh stop $dir"
    fi
    [ -n "$url" ] && [ -z "$plugin" ] && { plugin=$(find_plugin) || exit 1; }
    [ -z "$plugin" ] || [ -f "$plugin" ] || die "--plugin: there is no '$plugin'"
    export SLURM_CONF=$dir/slurm.conf
    trap 'stop_cluster; exit 130' INT TERM HUP
    # Only one start at a time chooses ports and binds them.
    exec 9<"$here/$me"
    flock -w 60 9 2>/dev/null
    for _ in 1 2 3; do
        if start_once; then
            exec 9>&-
            [ -z "$owner" ] || watch_owner
            trap - INT TERM HUP
            return 0
        fi
        stop_cluster
    done
    tail -n 5 "$dir"/log/* >&2
    die "Slurm did not come up in '$dir': its last words are above, all of them in $dir/log"
}

show_env()
{
    echo "export SLURM_CONF='$dir/slurm.conf' OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo"
    [ -z "$url" ] || echo "export TOPT_URL='$url'"
}

run_in_cluster()
{
    owner=$$
    start_cluster
    trap 'stop_cluster' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    eval "$(show_env)"
    "$@"
}

[ $# -ge 2 ] || usage "a command and a folder are needed"
command=$1
dir=$(realpath -m "$2")
shift 2
url='' plugin='' plugin_args='' owner='' nodes='' accounting='' job_submit='' stepd='' force=0
while [ $# -gt 0 ]; do
    case $1 in
        --url | --plugin | --plugin-args | --owner | --nodes | --accounting | --job-submit | --stepd)
            [ $# -ge 2 ] || usage "'$1' needs a value"
            ;;&
        --url) url=$2 && shift 2 ;;
        --plugin) plugin=$(realpath -m "$2") && shift 2 ;;
        --plugin-args) plugin_args=$2 && shift 2 ;;
        --owner) owner=$2 && shift 2 ;;
        --nodes) nodes=$2 && shift 2 ;;
        --accounting) accounting=$2 && shift 2 ;;
        --job-submit) job_submit=$(realpath -m "$2") && shift 2 ;;
        --stepd) stepd=$(realpath -m "$2") && shift 2 ;;
        --force) force=1 && shift ;;
        --)
            shift
            break
            ;;
        *) usage "'$1' is unknown" ;;
    esac
done
case $command in
    start)
        start_cluster
        echo "$me: $(node_names | wc -l) nodes with GPUs are up; eval \"\$($0 env $dir)\" and use sbatch, srun, salloc"
        ;;
    stop)
        stop_cluster
        ;;
    env)
        [ -f "$dir/slurm.conf" ] || die "there is no cluster in '$dir'"
        [ -n "$url" ] || url=$(sed -n 's/.* url=\([^ ]*\).*/\1/p' "$dir/plugstack.conf")
        show_env
        ;;
    run)
        [ $# -ge 1 ] || usage "'run' needs -- and a command"
        run_in_cluster "$@"
        ;;
    *)
        usage "'$command' is not a command"
        ;;
esac
