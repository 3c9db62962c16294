# planner.sh - after lib.sh: what answers at $url is a toptd of the test's own, not a stand-in.
# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh gives and takes these

start_planner()
{
    "$TOPTD" --socket "$work/toptd.sock" --state "$work/state" --hw lab-cpu >"$work/log" 2>&1 7>&- &
    planner=$!
    local left=200
    while ! curl -s --unix-socket "$work/toptd.sock" http://localhost/readyz >/dev/null && [ $left -gt 0 ]; do
        left=$((left - 1))
        sleep 0.05
    done
    url=unix:$work/toptd.sock
}

stop_planner()
{
    [ -z "$planner" ] || { kill "$planner" && wait "$planner"; }
    planner=
}
