# shellcheck shell=bash
# chroot.sh - a folder inside a chroot with PyTorch 2, for as long as a script trains there.
#
# Sourced, never run.  use_chroot CHROOT NAME makes the folder and mounts /proc and /dev where
# they are not mounted yet; at the caller's end all of that is undone.  Sets:
#   work     the folder, from outside
#   inside   the same, from inside

chroot_mounted=()

leave_chroot()
{
    rm -rf "$work"
    for m in "${chroot_mounted[@]}"; do
        umount "$m"
    done
}

use_chroot() # CHROOT NAME
{
    work=$(mktemp -d "$1/tmp/$2.XXXXXX") || exit 1
    # shellcheck disable=SC2034 # the caller's
    inside=${work#"$1"}
    trap leave_chroot EXIT
    for m in proc dev; do
        mountpoint -q "$1/$m" && continue
        mount --bind "/$m" "$1/$m" || exit 1
        chroot_mounted+=("$1/$m")
    done
}
