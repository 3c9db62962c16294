#!/bin/bash
# package-test.sh FOLDER - the packages in FOLDER (dpkg-buildpackage -b) installed into a new Debian 12 by mmdebstrap, and
# the guide of docs/SLURM.md followed there, from nothing to a planned job.  Needs root, mmdebstrap and a mirror; some
# minutes.  Nothing of the machine is changed.
set -eu
[ $# = 1 ] && [ -n "$(ls "$1"/toptd_*.deb 2>/dev/null)" ] || {
    echo "usage: package-test.sh FOLDER-WITH-PACKAGES" >&2
    exit 2
}
# What is mounted is so for this script alone.
[ -n "${TOPT_PACKAGE_TEST:-}" ] || exec env TOPT_PACKAGE_TEST=1 unshare -m "$0" "$@"
packages=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d /tmp/topt-packages.XXXXXX)
end()
{
    for folder in dev proc sys; do
        umount -R -l "$root/r/$folder" 2>/dev/null || true
    done
    rm -rf --one-file-system "$root"
}
trap end EXIT
mmdebstrap --quiet --variant=apt --mode=root --include=slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins,munge,curl,procps \
    bookworm "$root/r"
mkdir -p "$root/r/packages" "$root/r/opt"
cp "$packages"/*.deb "$root/r/packages/"
cp "$here/cluster.sh" "$here/quickstart/gpt-small.json" "$root/r/opt/"
for folder in dev proc sys; do
    mount --rbind "/$folder" "$root/r/$folder"
    mount --make-rslave "$root/r/$folder"
done
in_it() { DEBIAN_FRONTEND=noninteractive chroot "$root/r" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }

echo "# install"
in_it sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends systemd-standalone-sysusers systemd-standalone-tmpfiles \
    /packages/topt_*.deb /packages/toptd_*.deb /packages/slurm-spank-topt_*.deb /packages/libtopt-runtime_*.deb /packages/topt-doc_*.deb' >"$root/log" 2>&1 ||
    { tail -20 "$root/log" && exit 1; }
in_it sh -euc '
    id topt
    test -f /etc/slurm/plugstack.conf.d/topt.conf && grep -q include /etc/slurm/plugstack.conf
    test -f /usr/share/bash-completion/completions/topt
    topt --version
    setpriv --reuid=topt --regid=topt --clear-groups toptd --state /var/lib/topt --socket /run/topt/toptd.sock --hw lab-cpu >/tmp/toptd.log 2>&1 &
    planner=$!
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        ! curl -s --unix-socket /run/topt/toptd.sock http://localhost/readyz >/dev/null || break
        sleep 0.2
    done
    mkdir -p /run/munge /tmp
    /opt/cluster.sh start /tmp/c --url unix:/run/topt/toptd.sock --plugin /usr/lib/*/slurm/spank_topt.so
    export SLURM_CONF=/tmp/c/slurm.conf
    cd /tmp
    printf "#!/bin/sh\nsrun topt run \"\$TOPT_PLAN\" --data synthetic --steps 1\n" >job.sh
    chmod 755 job.sh
    sbatch --wait --topt-mode=mini-time --topt-gpus=1 --topt-model=/opt/gpt-small.json --topt-batch=8 --topt-seq=64 --topt-framework=topt -o out job.sh
    cat out
    grep -q "^1 steps on 1 rank" out
    topt report 1
    /opt/cluster.sh stop /tmp/c
    kill "$planner"
'
echo "# uninstall"
in_it sh -euc '
    apt-get -qq purge -y topt toptd slurm-spank-topt libtopt-runtime topt-doc >/tmp/purge.log 2>&1 || { cat /tmp/purge.log; exit 1; }
    ! test -e /usr/bin/topt && ! test -e /etc/slurm/plugstack.conf.d/topt.conf && ! test -e /etc/slurm/plugstack.conf && ! test -e /var/lib/topt
    test -z "$(find /usr /etc -path "*/topt*" -print -quit)" || { find /usr /etc -path "*/topt*" && exit 1; }
'
echo "ok - installed, a job planned and run, uninstalled"
