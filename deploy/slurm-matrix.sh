#!/bin/bash
# slurm-matrix.sh [bookworm|trixie|forky]... - the plugins built against the Slurm of a Debian release, and the tests of jobs,
# outages and job_submit run with it, in a new system by mmdebstrap.  Prints a row of docs/SLURM.md's table each.  Needs root,
# mmdebstrap and a mirror ($TOPT_MIRROR, else http://deb.debian.org/debian); some minutes a release; nothing of the machine changes.
set -eu
[ -n "${TOPT_MATRIX:-}" ] || exec env TOPT_MATRIX=1 unshare -m "$0" "$@"
[ $# -gt 0 ] || set -- bookworm trixie forky
source=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d /tmp/topt-matrix.XXXXXX)
end()
{
    for folder in dev proc sys; do
        umount -R -l "$root/r/$folder" 2>/dev/null || true
    done
    rm -rf --one-file-system "$root"
}
trap end EXIT

packages=slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins,libslurm-dev,munge,libmunge-dev,cmake,ninja-build,gcc,libc6-dev
packages+=,pkg-config,libjansson-dev,nettle-dev,zlib1g-dev,libmicrohttpd-dev,libsqlite3-dev,libcurl4-openssl-dev,libpcre2-dev
packages+=,python3-minimal,procps,util-linux,bsdutils,git,hostname

one() # RELEASE
{
    local version passed=0 failed=0 log=$root/log name
    mmdebstrap --quiet --variant=apt --mode=root --include="$packages" "$1" "$root/r" "${TOPT_MIRROR:-http://deb.debian.org/debian}"
    mkdir -p "$root/r/source"
    git -C "$source" archive HEAD | tar -x -C "$root/r/source"
    for folder in dev proc sys; do
        mount --rbind "/$folder" "$root/r/$folder"
        mount --make-rslave "$root/r/$folder"
    done
    in_it() { chroot "$root/r" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
    version=$(in_it slurmctld -V | awk '{ print $2 }')
    in_it sh -euc 'mkdir -p /run/munge && cd /source && cmake -G Ninja -B build/release -DCMAKE_BUILD_TYPE=Release -DTOPT_CUDA=OFF &&
        ninja -C build/release spank_topt job_submit_topt' >"$log" 2>&1 || { tail -30 "$log" && echo "| $1 | $version | does not build | |" && return; }
    for name in jobs outage submit; do
        in_it env TOPT_PLUGIN=/source/build/release/lib/spank_topt.so TOPT_JOB_SUBMIT=/source/build/release/lib/job_submit_topt.so \
            bash "/source/tests/slurm/test_$name.sh" >"$log.$name" 2>&1 || true
        passed=$((passed + $(grep -c '^ok' "$log.$name"))) failed=$((failed + $(grep -c '^not ok' "$log.$name")))
        grep -A4 '^not ok' "$log.$name" || tail -3 "$log.$name"
    done
    echo "| $1 | $version | $passed of $((passed + failed)) checks | $(date +%F) |"
    for folder in dev proc sys; do
        umount -R -l "$root/r/$folder"
    done
    rm -rf --one-file-system "$root/r"
}

for release; do
    one "$release"
done
