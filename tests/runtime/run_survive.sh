#!/bin/sh
# run_survive.sh - what happens to a run whose ranks are killed, stopped, or have no room.
# usage: run_survive.sh TOPT_RUNTIME MAKE_PLAN MPIEXEC [mpi|sockets]
runtime=$1 make_plan=$2 mpiexec=$3 over=$4
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

yes 'a small crowd of numbers adds itself up over four quiet machines. ' | head -30 >text
"$make_plan" gpt 4 7 1 plan >out 2>err
check "a plan for 4 devices"

# one rank, which leaves its process id; $limit is tried by rank 1 alone
cat >rank.sh <<'END'
rank=${TOPT_RANK:-$OMPI_COMM_WORLD_RANK}
echo $$ >"pid.$rank"
[ "$rank" != 1 ] || [ -z "$limit" ] || ulimit -v "$limit"
exec "$@"
END

now() { date +%s%N | cut -c 1-13; }

# ranks ARGUMENTS...: 4 of them, until the last has ended; its status
ranks() {
    if [ "$over" = sockets ]; then
        export TOPT_RANKS=4 TOPT_RENDEZVOUS="127.0.0.1:$port"
        for rank in 3 2 1; do
            TOPT_RANK=$rank sh rank.sh "$runtime" run plan0.json --data text "$@" &
        done
        TOPT_RANK=0 sh rank.sh "$runtime" run plan0.json --data text "$@"
        ended=$?
        wait
        return $ended
    fi
    "$mpiexec" -n 4 sh rank.sh "$runtime" run plan0.json --data text "$@"
}
port=$((20000 + $$ % 20000))

alive() {
    for pid in $(cat pid.[0-3]); do
        if [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; then
            return 0
        fi
    done
    return 1
}
# all_gone MOST: does every rank end in so many ms after $began?
all_gone() {
    while alive; do
        [ $(($(now) - began)) -lt "$1" ] || return 1
        sleep 0.1
    done
}

# hurt SIGNAL RANK: start, hurt a rank after a few steps, wait for the end; sets $took (ms)
hurt() {
    rm -f pid.* report err # what an earlier run said is not of this one
    port=$((port + 1))
    ranks --steps 100000000 --watchdog 3 --report report >out 2>err &
    job=$!
    while ! grep -aq 'step [1-9]' err; do
        sleep 0.2
        kill -0 $job 2>/dev/null || break
    done
    kill -"$1" "$(cat "pid.$2")"
    began=$(now)
    wait $job
    status=$?
    took=$(($(now) - began))
}
# ended MOST PATTERN: in time, unhappily, in one line, with a report of the steps so far
ended() {
    echo "# $over: ended after $took ms, status $status: $(grep -a '^topt ' err)"
    [ $took -lt "$1" ] && [ $status -ne 0 ] && [ "$(grep -ac '^topt ' err)" -eq 1 ] &&
        grep -aq "^topt run: .*$2" err && grep -q "\"ended\": \".*$2" report &&
        grep -q '"losses": \[' report && all_gone "$1"
}

hurt KILL 2
ended 10000 'rank 2 (process [0-9]* on .*) has ended without a word'
check "a rank that is killed"
hurt KILL 0
ended 10000 'rank 0 (process [0-9]* on .*) has ended without a word'
check "... rank 0"
hurt STOP 1
ended 15000 'rank 1 (process .*) is stopped or cut off: silent for 3 s.*ranks 0, 2 and 3 wait at the [a-z-]* of '
check "a rank that is stopped: what waits for it is named"
hurt STOP 0
ended 16000 'rank 0 (process .*) is stopped or cut off'
check "... rank 0"

# a rank without memory says so in one line, and all end (MPI itself needs more than that)
if [ "$over" = sockets ]; then
    export limit=130000
    port=$((port + 1))
    began=$(now)
    refused 1 'memory' ranks --steps 100000000 --watchdog 3 --report report
    check "a rank that has no memory"
    all_gone 10000
    check "... ends all in $(($(now) - began)) ms: $(grep -a '^topt ' err)"
    unset limit
fi

port=$((port + 1))
refused 1 "can't write '/dev/full': No space left" ranks --steps 2 --report /dev/full
check "a report to a full disk fails before the first step"
finish
