# shellcheck shell=bash disable=SC2034
# sys.sh - what the system tests of toptd share: start, ask, check.  Sourced.
set -u
command -v curl >/dev/null || { echo "1..0 # skipped: curl is not installed"; exit 77; }
toptd=$1
dir=$(mktemp -d /tmp/toptd-test-XXXXXX)
sock=$dir/s.sock
pid=
count=0
failed=0
export TSAN_OPTIONS="${TSAN_OPTIONS:-}:report_thread_leaks=0:atexit_sleep_ms=0" # it may leave a search behind
unset TOPT_URL TOPT_HW TOPT_CONFIG TOPT_WORKER

cleanup()
{
    [ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

ok() # ok STATUS TEXT
{
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        echo "#   status: ${status:-?}  body: $(head -c 400 "$dir/body" 2>/dev/null)"
        failed=$((failed + 1))
    fi
}

finish()
{
    echo "1..$count"
    [ "$failed" -eq 0 ] || { echo "# the daemon's log:"; sed 's/^/#   /' "$dir/log" | tail -30; }
    exit $((failed > 0))
}

# start ARGS...: toptd in the background, ready.
start()
{
    rm -f "$dir/port"
    "$toptd" --socket "$sock" --state "$dir/state" --listen 127.0.0.1:0 \
        --port-file "$dir/port" "$@" >>"$dir/log" 2>&1 &
    pid=$!
    for _ in $(seq 500); do
        [ -s "$dir/port" ] && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.02
    done
    port=$(cat "$dir/port" 2>/dev/null)
}

# stop SIGNAL: its exit status is the result.
stop()
{
    kill "-$1" "$pid"
    wait "$pid"
    local rc=$?
    pid=
    return $rc
}

# ask METHOD PATH [CURL ARGS...]: sets $status, fills $dir/body and $dir/head.
ask()
{
    local method=$1 path=$2
    shift 2
    status=$(curl -s -o "$dir/body" -D "$dir/head" -w '%{http_code}' -X "$method" \
        --max-time 60 --unix-socket "$sock" "$@" "http://localhost$path")
}

# check TEXT STATUS [PATTERN]: of the last answer.
check()
{
    local good=1
    [ "$status" = "$2" ] && { [ $# -lt 3 ] || grep -qE -- "$3" "$dir/body"; } && good=0
    ok $good "$1"
}

header() # header PATTERN
{
    grep -qiE -- "$1" "$dir/head"
}

metric()
{
    curl -s --unix-socket "$sock" http://localhost/metrics | sed -n "s/^$1 //p"
}

field() # field NAME: a string member of the last body
{
    sed -E 's/.*"'"$1"'":"([^"]*)".*/\1/' "$dir/body"
}

# topt_client ARGUMENTS...: $client asks as its user does; says PATTERN: of what it printed.
topt_client()
{
    status=-
    "$client" client "$@" >"$dir/body" 2>"$dir/err"
    status=$?
}
says() { cat "$dir/body" "$dir/err" | grep -qE -- "$1"; }
