# shellcheck shell=sh
# tap.sh - what scripts that test from the command line share: an empty folder to be in, which
# goes when the script ends, and checks that print TAP.  Sourced; ends with finish.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
n=0 failed=0
check() { # check TEXT: the last command succeeded
    status=$?
    n=$((n + 1))
    if [ $status -eq 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        failed=1
        sed 's/^/# /' out err 2>/dev/null
    fi
}
refused() { # refused STATUS PATTERN COMMAND...: fails so, saying so in one line
    want=$1 pattern=$2
    shift 2
    "$@" >out 2>err
    got=$?
    [ $got -eq "$want" ] && [ "$(grep -c '^topt ' err)" -eq 1 ] && grep -q -e "$pattern" err
}
finish() { # the plan, and the exit status of all checks
    echo "1..$n"
    exit $failed
}
