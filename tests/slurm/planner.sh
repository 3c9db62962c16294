# planner.sh - lib.sh for tests of Slurm and toptd: what answers at $url is a toptd of the test's own, not a stand-in.  A test
# that starts it later sets planner_waits=1 and calls start_toptd.
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh gives and takes these
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need_slurm
[ -x "${TOPTD:-}" ] && [ -x "${TOPT:-}" ] || skip_all "toptd is not built"
planner='' planner_waits=''

start_planner()
{
    url=unix:$work/toptd.sock
    [ -n "$planner_waits" ] || start_toptd --hw lab-cpu
}

# Until it answers.
start_toptd() # [options of toptd]
{
    "$TOPTD" --socket "$work/toptd.sock" --state "$work/state" "$@" >>"$work/log" 2>&1 7>&- &
    planner=$!
    local left=200
    while ! curl -s --unix-socket "$work/toptd.sock" http://localhost/readyz >/dev/null && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
    chmod 666 "$work/toptd.sock"
}

stop_toptd()
{
    [ -z "$planner" ] || { kill "$planner" && wait "$planner"; }
    planner=
}

stop_planner()
{
    stop_toptd
}
