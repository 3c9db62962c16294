#!/usr/bin/env bash
# test.sh - build topt in every way it is meant to be built, and run its tests.
#
#   deploy/test.sh [--quick] [--slow] [--no-install]
#
#   --quick        a first answer, in some ten minutes: the release build, its unit tests, and the
#                  programs as people start them (on ranks, in a private Slurm)
#   --slow         the tests labelled slow too
#   --no-install   never call apt: name what is missing and stop
#
# On a bare Debian 12 it installs what it needs (as root, or with sudo); a second run builds
# only what changed.  Builds and logs go to build/.  Runs:
#
#   release   gcc, optimised; all tests, and the only one that runs those in Slurm
#   asan      clang with address and undefined behaviour sanitizers; unit and MPI tests
#   tsan      gcc with the thread sanitizer: what has threads, and nothing else is built
#   bare      gcc without MPI, CUDA and Slurm; tests of the runtime and of the CUDA backend, since all
#             else is compiled as in release
#   cuda      the CUDA backend's module, where nvcc is; its tests where a GPU is
#
# It takes half an hour on two cores that others used, too (30 November 2026).  Warnings are errors in each.  All but release try fewer random
# problems (tests/sizes.h).  What two builds compile alike is compiled once where ccache is, whose files lie
# in build/ccache unless CCACHE_DIR says where.
# On a quiet machine each test ends in a tenth of its time-out; those that took longer are named.
#
# The last line says how many tests passed, failed and were skipped, over all runs; a test
# that is skipped is listed with its reason.  A run that does not build counts as one
# failed test.  Exit status 0 only where nothing failed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/build/logs
install=1 quick=0 slow=0
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=1 ;;
        --slow) slow=1 ;;
        --no-install) install=0 ;;
        --help | -h)
            sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
            exit 0
            ;;
        *)
            echo "test.sh: '$1' is no option; try --help" >&2
            exit 2
            ;;
    esac
    shift
done
# shellcheck source=deploy/lib.sh
. "$root/deploy/lib.sh"
trap 'stop_step' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

passed=0 failed=0 skipped=0
summary=() failures=() skips=() longest=()
cores=$(nproc)
# System tests wait for Slurm, for watchdogs and for each other half of their time, so one more of them runs than there are cores.
more=$((cores + 1))

# --- what the tests run in

# Many ranks on few cores, as root or not, in a container or not; no test reads the user's
# own settings.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
export CTEST_OUTPUT_ON_FAILURE=1 CLICOLOR=0
unset TOPT_URL SLURM_CONF CTEST_PARALLEL_LEVEL MAKEFLAGS

# After packages are installed: what two builds have alike is compiled once.
share_objects()
{
    command -v ccache >/dev/null || return 0
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER:-ccache}
    export CCACHE_DIR=${CCACHE_DIR:-$root/build/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
}

# Does a program built with these flags run here?  (Sanitizers want things of the kernel
# that some containers refuse.)
runs_with() # FLAGS [PREFIX...]
{
    local flags=$1 program=$root/build/probe
    shift
    mkdir -p "$root/build"
    printf '#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }\n' |
        gcc -x c "-fsanitize=$flags" -o "$program" - 2>/dev/null && "$@" "$program" >/dev/null 2>&1
}

# --- counting

# A test's output, from ctest's log.
output_of() # LOG TEST
{
    awk -v name="$2" '
        $2 == "Testing:" { mine = ($3 == name); head = 0 }
        !mine { next }
        /^<end of output>/ { exit }
        head == 2 { print }
        /^Output:/ && !head { head = 1; next }
        /^-----/ && head == 1 { head = 2 }' "$1"
}

# The line that says why a test was skipped, or the last one.
skip_reason() # LOG TEST
{
    output_of "$1" "$2" | awk '
        NF { last = $0 }
        tolower($0) ~ /skip/ { why = $0 }
        END { print why != "" ? why : last }' |
        sed -E 's/^1\.\.0 *# *//; s/^skip(ped)?[: ]*//I'
}

# The end of a failed test's output, less what went well.
show_failure() # LOG TEST
{
    output_of "$1" "$2" | grep -v '^ok ' | tail -n 25 | cut -c1-300 | sed 's/^/    | /' || true
}

count_tests() # RUN CTEST-OUTPUT LAST-TEST-LOG
{
    local run=$1 name result p=0 f=0 s=0
    while read -r name result; do
        case $result in
            Passed) p=$((p + 1)) ;;
            Skipped | Disabled)
                s=$((s + 1))
                skips+=("$run: $name: $(skip_reason "$3" "$name")")
                ;;
            *)
                f=$((f + 1))
                failures+=("$run: $name ($result)")
                say "  $run: $name: $result"
                show_failure "$3" "$name"
                ;;
        esac
    done < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) [. ]*(\*\*\*)?/\1 /p' "$2" |
        sed -E 's/^([^ ]+) .*\(Disabled\).*/\1 Disabled/; s/ +[0-9.]+ sec.*$//; s/  +/ /g')
    counted=$((p + f + s))
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    counts="$p passed, $f failed, $s skipped"
}

# Name the tests that took more than a tenth of their time-out: here, or on a slower machine, they
# may run out of it.
note_long_tests() # RUN CTEST-OUTPUT BUILD-FOLDER
{
    local run=$1 name took most
    while read -r name took most; do
        longest+=("$run: $name: $took s of $most")
    done < <({
        ctest --test-dir "$3" --show-only=json-v1 | jq -r '.tests[] | .name as $name |
            .properties[]? | select(.name == "TIMEOUT") | "\($name) \(.value)"'
        sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec.*/\1 took \2/p' "$2"
    } | awk 'NF == 2 { most[$1] = $2 }
        NF == 3 && $1 in most && $3 > most[$1] / 10 { print $1, $3, most[$1] }')
}

add_row() # NAME SECONDS RESULT
{
    summary+=("$(printf '  %-34s %7s  %s' "$1" "$(seconds_text "$2")" "$3")")
}

# --- runs

# Where a run builds: what differs in a single part has the folder of another.
declare -A shares=([cuda]=bare)

folder_of() # RUN
{
    printf '%s' "${shares[$1]:-$1}"
}

one_failure() # NAME RESULT
{
    failed=$((failed + 1))
    failures+=("$1: $2")
    add_row "$1" "$step_seconds" "FAILED: $2"
}

build_run() # RUN PRESET [CMAKE ARGS...]
{
    local run=$1 preset=$2
    shift 2
    if run_step "$run: build" "$run-build" build_preset "$preset" "$(folder_of "$run")" "$@"; then
        add_row "$run: build" "$step_seconds" ok
    else
        one_failure "$run: build" "does not build"
        return 1
    fi
}

# Run one build's tests; the exit status of ctest counts where no test is to blame.
test_run() # RUN WHAT CTEST ARGS...
{
    local run=$1 what=$2 rc=0 before=$failed folder log
    folder=$root/build/$(folder_of "$run")
    log=$run-$(tr -cs "[:alnum:]\n" - <<<"$what")
    shift 2
    tail_lines=0 run_step "$run: $what" "$log" \
        "${prefix[@]}" ctest --test-dir "$folder" --timeout 600 "$@" || rc=$?
    cp "$folder/Testing/Temporary/LastTest.log" "$logs/$log-details.log" 2>/dev/null || true
    count_tests "$run" "$logs/$log.log" "$logs/$log-details.log"
    note_long_tests "$run" "$logs/$log.log" "$folder"
    if [ $rc != 0 ] && [ "$failed" = "$before" ]; then
        tail -n 5 "$logs/$log.log"
        one_failure "$run: $what" "ctest ended with status $rc"
    else
        add_row "$run: $what" "$step_seconds" "$counts"
    fi
    [ "$counted" -gt 0 ] || say "    (no tests: see $logs/$log.log)"
}

# Labels that a run leaves out; 'slow' unless asked for.
without() # LABEL...
{
    local list=("$@")
    [ $slow = 1 ] || list+=(slow)
    (IFS='|' && printf '^(%s)$' "${list[*]}")
}

release_run()
{
    build_run release release -DTOPT_CUDA=OFF -DTOPT_WERROR=ON || return 0
    if [ $quick = 1 ]; then
        test_run release "unit tests" -j "$cores" -LE "$(without property house mpi slurm sys)"
        test_run release "system tests" -j "$more" -L '^sys$' -LE "$(without)" -E "$not_quick"
        return 0
    fi
    test_run release "unit tests" -j "$cores" -LE "$(without mpi slurm sys)"
    test_run release "MPI, system, Slurm tests" -j "$more" -L '^(mpi|slurm|sys)$' -LE "$(without)"
}
# System tests that a first answer does without: of what seldom happens, and of a GPU that there isn't.
not_quick='^(slurm_outage|cuda_run)$'

asan_run()
{
    local leaks=1
    if ! ASAN_OPTIONS=detect_leaks=1 runs_with address; then
        leaks=0
        say "  asan: leaks can't be looked for here (no ptrace), all else is"
    fi
    # lld links a sanitized program in half the time that GNU ld takes.
    local linker=()
    ! command -v ld.lld >/dev/null || linker=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld)
    build_run asan asan -DCMAKE_C_COMPILER=clang -DTOPT_CUDA=OFF "${linker[@]}" || return 0
    export ASAN_OPTIONS=detect_leaks=$leaks:abort_on_error=0:strict_string_checks=1
    export UBSAN_OPTIONS=print_stacktrace=1
    export LSAN_OPTIONS="suppressions='$root/tests/lsan.supp':print_suppressions=0"
    test_run asan "unit tests" -j "$cores" -LE "$(without mpi slurm house numbers pages)"
    # Open MPI leaves behind what can't be told from ours once its plugins are unloaded; the
    # runtime's own leaks show in its tests in a single process.
    export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:strict_string_checks=1
    test_run asan "MPI tests" -j "$more" -L '^mpi$' -LE "$(without)"
    unset ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
}

# Newer kernels place programs where the thread sanitizer of gcc 12 can't work; switching
# the randomising off for the tests helps.
tsan_run()
{
    if runs_with thread; then
        prefix=()
    elif runs_with thread setarch "$(uname -m)" -R; then
        prefix=(setarch "$(uname -m)" -R)
    else
        skipped=$((skipped + 1))
        skips+=("tsan: all: the thread sanitizer does not run on this kernel")
        add_row "tsan" 0 "skipped: the thread sanitizer does not run on this kernel"
        return 0
    fi
    local build_only=(--target tests_threads) # build_preset sees it
    build_run tsan tsan -DTOPT_MPI=OFF -DTOPT_CUDA=OFF -DTOPT_SLURM=OFF || return 0
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    test_run tsan "threaded parts" -j "$cores" -L '^threads$' -LE "$(without)"
    unset TSAN_OPTIONS
    prefix=()
}

# MPI and Slurm are options of the runtime and of the plugin.  The same commands compile everything else in release, which has
# tested it.  The emulated kernels, random problems and broken documents depend on neither option.
bare=(-DTOPT_MPI=OFF -DTOPT_SLURM=OFF -DTOPT_WERROR=ON "-DTOPT_TEST_SKIP=property;fuzz" "-DTOPT_TEST_FOLDERS=cuda;runtime")
alike='^cuda_kernels_emulated'
bare_run()
{
    build_run bare release "${bare[@]}" -DTOPT_CUDA=OFF || return 0
    test_run bare "unit tests" -j "$cores" -LE "$(without slurm house numbers pages)" -E "$alike"
}

# Without a GPU the backend's sources are tested by the other runs, on the CPU; here they have to
# pass nvcc.
cuda_run()
{
    if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
        skipped=$((skipped + 1))
        skips+=("cuda: module: no nvcc")
        add_row "cuda" 0 "skipped: no nvcc"
        return 0
    fi
    local build_only=(--target topt_rt_cuda cuda_kernels) # build_preset sees it
    build_run cuda release "${bare[@]}" -DTOPT_CUDA=ON || return 0
    test_run cuda "module" -R '^cuda_kernels_gpu$'
}

say "topt's tests: $([ $quick = 1 ] && echo "a first answer of the release build" || echo "five builds") on $cores cores; logs in $logs"
need_packages "${packages_build[@]}" "${packages_slurm[@]}" "${packages_check[@]}" ||
    fail "installing packages failed: see $logs/packages.log"

share_objects
prefix=()
release_run
if [ $quick = 0 ]; then
    asan_run
    tsan_run
    bare_run
    cuda_run
fi

say
say "Summary ($(seconds_text $SECONDS)):"
printf '%s\n' "${summary[@]}"
if [ ${#skips[@]} -gt 0 ]; then
    say "Skipped:"
    printf '  %s\n' "${skips[@]}"
fi
if [ ${#longest[@]} -gt 0 ]; then
    say "Took more than a tenth of their time-out (a busy machine, or tests to make smaller):"
    printf '  %s\n' "${longest[@]}"
fi
if [ ${#failures[@]} -gt 0 ]; then
    say "Failed (details in $logs):"
    printf '  %s\n' "${failures[@]}"
fi
say
say "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
