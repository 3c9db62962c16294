# shellcheck shell=bash
# lib.sh - what test.sh and quickstart.sh share: packages, steps with a log and a time.
#
# Sourced, never run.  The caller sets:
#   root    the project's folder
#   logs    where each step's output goes (made here when it is missing)
#   install 1 to install missing packages, 0 to only name them
# Functions print; only 'fail' exits.
: "${root:?}" "${logs:?}" "${install:?}"

# What building takes on Debian 12; no recommended packages are needed.
# shellcheck disable=SC2034
packages_build=(
    gcc libc6-dev cmake ninja-build pkg-config
    libjansson-dev nettle-dev libmicrohttpd-dev libsqlite3-dev libcurl4-openssl-dev
    libopenmpi-dev openmpi-bin libopenblas-dev zlib1g-dev libpcre2-dev libutf8proc-dev libhwloc-dev
    coinor-libcbc-dev libonnx-dev protobuf-c-compiler libprotobuf-c-dev libsystemd-dev libseccomp-dev
    libmunge-dev libslurm-dev slurm-wlm-basic-plugins-dev
)
# What a private Slurm on this machine takes, and the quick start's tables.
# shellcheck disable=SC2034
packages_slurm=(
    slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
    procps util-linux hostname jq curl
)
# What the CUDA backend takes beside CUDA itself, and its tests.
# shellcheck disable=SC2034
packages_cuda=(
    g++ gcc libc6-dev cmake ninja-build pkg-config
    libjansson-dev nettle-dev libmicrohttpd-dev libsqlite3-dev libcurl4-openssl-dev
    libopenblas-dev libmunge-dev
)
# What only the tests take.
# shellcheck disable=SC2034
packages_check=(
    clang libclang-rt-dev lld ccache clang-format-14 sqlite3 python3 python3-jsonschema openapi-specification
    python3-prometheus-client python3-scipy libonnx-testdata python3-torch chromium valgrind
)

# Daemons that those packages bring; this project starts its own and never the system's.
package_services=(munge slurmctld slurmd)

running_pid=  # process group of the step in progress
policy_saved= # where an existing policy-rc.d waits while apt runs; "none" where there was none

say()
{
    printf '%s\n' "$*"
}

fail() # WHAT...
{
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

seconds_text() # SECONDS
{
    if [ "$1" -ge 60 ]; then
        printf '%dm%02ds' $(($1 / 60)) $(($1 % 60))
    else
        printf '%ds' "$1"
    fi
}

# --- steps

# End the step in progress and put back what apt's guard moved; for the caller's traps.
stop_step()
{
    if [ -n "$running_pid" ]; then
        kill -TERM -- "-$running_pid" 2>/dev/null || true
        wait "$running_pid" 2>/dev/null || true
        running_pid=
    fi
    allow_services
}

# What a build or a test run is at, for people who wait: its last line, cut to fit.
last_line() # FILE
{
    tail -c 400 "$1" 2>/dev/null | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c1-60 || true
}

# Show that a step lives: on a terminal one line kept up to date, else one now and then.
show_progress() # NAME START LOG
{
    local passed=$((SECONDS - $2))
    if [ -t 1 ]; then
        printf '\r\033[K  %-34s %7s  %s' "$1" "$(seconds_text $passed)" "$(last_line "$3")"
    elif [ $passed -gt 0 ] && [ $((passed % 30)) = 0 ]; then
        printf '    ... %s: %s so far; %s\n' "$1" "$(seconds_text $passed)" "$(last_line "$3")"
    fi
}

# End a process group: asked to, and five seconds later made to.
end_group() # PID
{
    local by=$((SECONDS + 5))
    kill -TERM -- "-$1" 2>/dev/null || true
    while [ $SECONDS -lt $by ] && kill -0 -- "-$1" 2>/dev/null; do
        sleep 0.1
    done
    kill -KILL -- "-$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Run a command with its output in a log.  Prints a line with the time it took; on failure
# the end of the log and where the whole is.  Returns the command's status.  The command
# gets a process group of its own, so that interrupting ends all of it; after 'step_limit'
# seconds, where that is set, it is ended too, and the status is 124.
step_seconds=0 step_limit=
run_step() # NAME LOG-NAME COMMAND...
{
    local name=$1 log=$logs/$2.log start=$SECONDS rc=0 shown=-1
    shift 2
    mkdir -p "$logs"
    : >"$log"
    set -m
    "$@" </dev/null >"$log" 2>&1 &
    running_pid=$!
    set +m
    while kill -0 "$running_pid" 2>/dev/null; do
        if [ $SECONDS != $shown ]; then
            shown=$SECONDS
            show_progress "$name" "$start" "$log"
        fi
        if [ -n "$step_limit" ] && [ $((SECONDS - start)) -ge "$step_limit" ]; then
            end_group "$running_pid"
            rc=124
            break
        fi
        sleep 0.1
    done
    [ $rc = 124 ] || wait "$running_pid" || rc=$?
    running_pid=
    step_seconds=$((SECONDS - start))
    [ ! -t 1 ] || printf '\r\033[K'
    if [ $rc = 0 ]; then
        printf '  %-34s %7s  ok\n' "$name" "$(seconds_text $step_seconds)"
    else
        printf '  %-34s %7s  FAILED; all of it in %s\n' "$name" \
            "$(seconds_text $step_seconds)" "$log"
        tail -n "${tail_lines:-25}" "$log" | cut -c1-300 | sed 's/^/    | /'
    fi
    return $rc
}

# --- packages

as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

missing_packages() # NAME...
{
    local name
    for name in "$@"; do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$name"
    done
}

# While packages are installed, nothing they bring may be started...
forbid_services()
{
    local file=/usr/sbin/policy-rc.d
    if [ -e $file ] || [ -L $file ]; then
        policy_saved=$file.topt-saved
        as_root mv $file $policy_saved
    else
        policy_saved=none
    fi
    printf '#!/bin/sh\nexit 101\n' | as_root tee $file >/dev/null
    as_root chmod 755 $file
}

allow_services()
{
    [ -n "$policy_saved" ] || return 0
    as_root rm -f /usr/sbin/policy-rc.d
    [ "$policy_saved" = none ] || as_root mv "$policy_saved" /usr/sbin/policy-rc.d
    policy_saved=
}

# ... nor started at the next boot: switch off the units that were not there before.
disable_new_services() # NAME...
{
    local unit
    for unit in "$@"; do
        as_root deb-systemd-helper disable "$unit.service" >/dev/null 2>&1 || true
        as_root update-rc.d "$unit" disable >/dev/null 2>&1 || true
    done
}

apt_install() # NAME...
{
    local options=(-o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "${options[@]}" update &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
            "${options[@]}" install "$@"
}

# Make sure that the named packages are there.
need_packages() # NAME...
{
    local missing new=() unit rc=0
    missing=$(missing_packages "$@")
    if [ -z "$missing" ]; then
        say "  packages: all $# are there"
        return 0
    fi
    [ "$install" = 1 ] || fail "packages are missing: ${missing}(--no-install was given)"
    command -v apt-get >/dev/null || fail "packages are missing: ${missing}(and this is no Debian: install their like)"
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        fail "packages are missing: ${missing}(run this as root, or install sudo)"
    fi
    for unit in "${package_services[@]}"; do
        [ -e "/lib/systemd/system/$unit.service" ] || new+=("$unit")
    done
    say "  packages to install: $missing"
    [ "$(id -u)" = 0 ] || sudo true
    forbid_services
    # shellcheck disable=SC2086 # the names are to be split
    run_step "install packages" packages apt_install $missing || rc=$?
    allow_services
    [ ${#new[@]} = 0 ] || disable_new_services "${new[@]}"
    return $rc
}

# --- building

# Configure a preset (quick where nothing changed) and build what is not up to date.
build_only=() # --target NAME...: not all of a build
build_preset() # PRESET FOLDER [CMAKE ARGS...]
{
    local preset=$1 folder=$root/build/$2
    shift 2
    cd "$root" || return 1
    cmake --preset "$preset" -B "$folder" "$@" && cmake --build "$folder" "${build_only[@]}" -- -k 0
}
