#!/bin/bash
# package-test.sh FOLDER - the packages in FOLDER (dpkg-buildpackage -b, or the target package) installed into a new
# Debian 12 by mmdebstrap, and the guide of docs/SLURM.md followed there under its own systemd, from nothing to a planned
# job, a restart, an update and away again.  Needs root, mmdebstrap and a mirror; some minutes.  Nothing of the machine is changed.
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
system=''
end()
{
    [ -z "$system" ] || { kill -9 "$system" && wait "$system"; } 2>/dev/null || true # unshare, and so all that it started
    rm -rf --one-file-system "$root"
}
trap end EXIT
mmdebstrap --quiet --variant=apt --mode=root --include=systemd,systemd-sysv,slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins,munge,curl,procps \
    bookworm "$root/r"
mkdir -p "$root/r/packages" "$root/r/opt" "$root/r/old"
cp "$packages"/*.deb "$root/r/packages/"
cp "$here/cluster.sh" "$here/quickstart/gpt-small.json" "$root/r/opt/"

# The new system's first process, in namespaces of its own but for the network.
cat >"$root/boot" <<'BOOT'
cd "$1"
groups=sys/fs/cgroup
mount --make-rprivate /
mount --bind . . && cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
    mount -t cgroup2 cgroup2 $groups
else # the machine has both
    mount -t tmpfs -o mode=755 tmpfs $groups
    mkdir $groups/unified $groups/systemd
    mount -t cgroup2 cgroup2 $groups/unified
    mount -t cgroup -o none,name=systemd cgroup $groups/systemd
fi
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for device in null zero full random urandom tty; do touch dev/$device && mount --bind /dev/$device dev/$device; done
pivot_root . old
umount -l /old
exec env -i container=topt PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init --log-target=null --show-status=false
BOOT
unshare -m -p -u -i -C --fork --kill-child sh -eu "$root/boot" "$root/r" >"$root/console" 2>&1 &
system=$!
in_it()
{
    nsenter -t "$(pgrep -P "$system")" -m -p -u -i -C -r -w /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        DEBIAN_FRONTEND=noninteractive "$@"
}
state=
for _ in $(seq 300); do
    state=$(in_it systemctl is-system-running 2>/dev/null || true)
    case $state in running | degraded) break ;; esac
    sleep 0.2
done
case $state in
    running | degraded) ;;
    *) cat "$root/console" && exit 1 ;;
esac

echo "# install"
in_it sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends /packages/topt_*.deb /packages/toptd_*.deb \
    /packages/slurm-spank-topt_*.deb /packages/libtopt-runtime_*.deb /packages/topt-doc_*.deb' >"$root/log" 2>&1 ||
    { tail -20 "$root/log" && exit 1; }
in_it sh -euc '
    id topt
    test -f /etc/slurm/plugstack.conf.d/topt.conf && grep -q include /etc/slurm/plugstack.conf
    test -f /usr/share/bash-completion/completions/topt
    topt --version
    systemctl is-active toptd.socket
    topt client status | head -1
    mkdir -p /etc/topt
    echo "hw=lab-cpu" >>/etc/topt/toptd.conf
    toptd --check-config
    systemctl restart toptd
    topt client status | head -1
    /opt/cluster.sh start /tmp/c --url unix:/run/topt/toptd.sock --plugin "$(dpkg -L slurm-spank-topt | grep /spank_topt.so)"
    export SLURM_CONF=/tmp/c/slurm.conf
    cd /tmp
    printf "#!/bin/sh\nsrun topt run \"\$TOPT_PLAN\" --data synthetic --steps 1\n" >job.sh
    chmod 755 job.sh
    sbatch --wait --topt-gpus=1 --topt-model=/opt/gpt-small.json --topt-batch=8 --topt-seq=64 --topt-framework=topt -o out job.sh
    cat out
    grep -q "^1 step on 1 rank: " out
    topt report 1
    worker=$(pgrep -x toptd-worker | head -1)
    test "$(sed -n "s/^Seccomp_filters:[[:space:]]*//p" /proc/$worker/status)" -gt \
        "$(sed -n "s/^Seccomp_filters:[[:space:]]*//p" /proc/$(systemctl show -p MainPID --value toptd)/status)"
    if journalctl -u toptd --no-pager 2>/dev/null | grep "closed to this process"; then exit 1; fi
    /opt/cluster.sh stop /tmp/c
'
echo "# it starts again by itself, however often it ends, and an update leaves on what was on"
in_it sh -euc '
    for i in 1 2 3 4 5 6 7; do
        systemctl kill -s KILL toptd.service
        sleep 0.3
        topt client status | head -1
    done
    systemctl -q enable --now topt-rightsize.timer
    was=$(systemctl show -p MainPID --value toptd)
    apt-get -qq install -y --reinstall /packages/toptd_*.deb >/tmp/update.log 2>&1 || { cat /tmp/update.log; exit 1; }
    systemctl is-active toptd.socket toptd.service topt-rightsize.timer
    test "$(systemctl show -p MainPID --value toptd)" != "$was"
    topt client status | head -1
    systemctl -q disable --now topt-rightsize.timer toptd.socket toptd.service
    apt-get -qq install -y --reinstall /packages/toptd_*.deb >/tmp/update.log 2>&1 || { cat /tmp/update.log; exit 1; }
    if systemctl is-active toptd.socket topt-rightsize.timer; then exit 1; fi
'
echo "# uninstall"
in_it sh -euc '
    apt-get -qq purge -y topt toptd slurm-spank-topt libtopt-runtime topt-doc >/tmp/purge.log 2>&1 || { cat /tmp/purge.log; exit 1; }
    for path in /usr/bin/topt /etc/slurm/plugstack.conf.d/topt.conf /var/lib/topt; do test ! -e $path; done
    test -z "$(find /usr /etc -path "*/topt*" ! -path "/etc/topt*" -print -quit)" || { find /usr /etc -path "*/topt*" && exit 1; }
    test -z "$(systemctl list-units --no-legend "topt*")"
'
echo "ok - installed, a job planned and run, started again, updated, uninstalled"
