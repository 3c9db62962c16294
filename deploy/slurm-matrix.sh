#!/bin/bash
# slurm-matrix.sh - the plugins built against the Slurm of another Debian release, and their tests run with it.
#
#   slurm-matrix.sh FOLDER RELEASE            make FOLDER a system of that release (once), build in it, run the tests
#   slurm-matrix.sh FOLDER RELEASE TEST...    run these alone, as slurm_jobs
#
# Prints what fails and a row for docs/SLURM.md; ends with 1 where something failed.  FOLDER is kept and is used again: remove
# it by hand.  It takes some 1.5 GB, and some minutes the first time.  TOPT_MIRROR is where packages come from (as mmdebstrap
# takes it: an address, or a line of sources.list); where it isn't said, mmdebstrap's own.  TOPT_APT_OPTION is one more option
# of apt, as 'Acquire::Check-Valid-Until "false"' for a mirror that stands still.  TOPT_OTHER_PLUGIN is a spank_topt.so of
# another Slurm, to see that it does no harm.
# Needs root and mmdebstrap.  Of this machine nothing is changed: what is mounted or started is so for this script alone, since
# it has a mount and a process namespace of its own.
#
# The tests bring up clusters of their own (deploy/cluster.sh), so that nothing in FOLDER is configured for Slurm.
set -eu
usage()
{
    echo "usage: slurm-matrix.sh FOLDER RELEASE [TEST...] (see the file's top)" >&2
    exit 2
}
[ $# -ge 2 ] || usage
[ "$(id -u)" = 0 ] || { echo "slurm-matrix.sh: needs root" >&2 && exit 1; }
[ -n "${TOPT_MATRIX:-}" ] || exec env TOPT_MATRIX=1 unshare --mount --pid --fork --kill-child "$0" "$@"
root=$(realpath -m "$1") release=$2
shift 2
source=$(cd "$(dirname "$0")/.." && pwd)
other=${TOPT_OTHER_PLUGIN:+$(realpath "$TOPT_OTHER_PLUGIN")}

# Without recommended packages: they would be another system's worth.
packages=$(root=$source logs=$root/var/log install=0 && . "$source/deploy/lib.sh" &&
    IFS=, && echo "${packages_build[*]},${packages_slurm[*]},slurmrestd,ccache,python3,valgrind")

make_system()
{
    [ ! -e "$root/READY" ] || return 0
    [ -z "$(ls -A "$root" 2>/dev/null)" ] || { echo "slurm-matrix.sh: '$root' is neither empty nor of this script" >&2 && exit 1; }
    # shellcheck disable=SC2086 # a mirror that isn't said is no argument
    mmdebstrap --quiet --variant=apt --mode=root --include="$packages" --aptopt='APT::Install-Recommends "false"' \
        ${TOPT_APT_OPTION:+--aptopt="$TOPT_APT_OPTION"} --dpkgopt=force-unsafe-io "$release" "$root" ${TOPT_MIRROR:+"$TOPT_MIRROR"}
    : >"$root/READY"
}

in_it()
{
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CCACHE_DIR=/var/cache/topt \
        CMAKE_C_COMPILER_LAUNCHER=ccache TOPT_OTHER_PLUGIN="${other:+/srv/other/spank_topt.so}" "$@"
}

# slurmd and munged look at /proc, steps want a /dev with ptmx and shm, and sbatch's user is looked up by name.
mount_system()
{
    mount --bind "$root" "$root" # a namespace of mounts, as a test wants one, begins at a mount
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount --make-rslave "$root/sys"
    mount --make-rslave "$root/dev"
    mount -t tmpfs tmpfs "$root/run"
    grep -q "127.0.0.1.*$(uname -n)" "$root/etc/hosts" 2>/dev/null || printf '127.0.0.1 localhost %s\n' "$(uname -n)" >>"$root/etc/hosts"
}

# Tracked files, of which those that differ are written, so that only what changed is built again.
copy_source()
{
    local file
    mkdir -p "$root/srv/topt" "$root/srv/other" "$root/var/cache/topt"
    git -C "$source" ls-files | while IFS= read -r file; do
        cmp -s "$source/$file" "$root/srv/topt/$file" || install -D -m "$(stat -c %a "$source/$file")" "$source/$file" "$root/srv/topt/$file"
    done
    [ -z "$other" ] || install -m 755 "$other" "$root/srv/other/spank_topt.so"
}

# The programs, the plugins, and the tests of these; no other tests.
build()
{
    # shellcheck disable=SC2016
    in_it sh -euc 'cd /srv/topt && cmake -G Ninja -B build/release -DCMAKE_BUILD_TYPE=Release -DTOPT_CUDA=OFF
        ninja -C build/release -j "$(nproc)" $(ninja -C build/release -t targets all |
            grep -oE "^(bin/[a-z-]+|libexec/topt/[a-z-]+|lib/(spank|job_submit)_topt.so|tests/(slurm_[a-z_]+|model_make_onnx)):" | tr -d :)'
}

# The rows of ctest's table: name and result.
results()
{
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([a-z0-9_]*\) \.*[ *]*\([A-Za-z ]*[A-Za-z]\).*/\1 \2/p' "$1"
}

main()
{
    make_system
    mount_system
    copy_source
    version=$(in_it slurmctld -V | awk '{ print $2 }')
    log=$root/var/log/topt-matrix
    if ! build >"$log.build" 2>&1; then
        grep -E 'error|FAILED' -A3 "$log.build" | head -30
        echo "| $release | $version | does not build | | $(date +%F) |"
        exit 1
    fi
    # All but those that want a database, or most of an hour.
    only='^slurm_' but='^slurm_(accounts|random_500|simulated)$'
    [ $# = 0 ] || { only="^($(IFS='|' && echo "$*"))\$" && but=none; }
    in_it ctest --test-dir /srv/topt/build/release -V -R "$only" -E "$but" >"$log.tests" 2>&1 || true
    passed=$(grep -cE '^[0-9]+: +ok ' "$log.tests") || true
    failed=$(grep -cE '^[0-9]+: +not ok ' "$log.tests") || true
    ran=$(results "$log.tests" | grep -c ' Passed') || true
    bad=$(results "$log.tests" | grep -vE ' (Passed|Skipped)$' | cut -d' ' -f1) || true
    skipped=$(results "$log.tests" | grep ' Skipped$' | cut -d' ' -f1) || true
    grep -E '^[0-9]+: +not ok ' -A6 "$log.tests" | grep -vE '^[0-9]+: +ok ' || true
    echo "| $release | $version | $ran programs, $passed checks passed; failed: ${bad:-none}$([ "$failed" = 0 ] || echo " ($failed checks)");" \
        "skipped: ${skipped:-none} | $(date +%F) |" | tr '\n' ' ' && echo
    [ -z "$bad" ] && [ "$ran" -gt 0 ]
}

main "$@"
exit
