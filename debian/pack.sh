#!/bin/sh
# pack.sh PACKAGE BUILD - one package: what cmake installs of its component.
set -eu
package=$1 build=$2
root=$PWD/debian/packages/$package
rm -rf "$root"
mkdir -p "$root/DEBIAN"
DESTDIR=$root cmake --install "$build" --component "$package"
[ -f "$root/usr/share/doc/$package/copyright" ] || { echo "$package: this build has no such component" >&2; exit 1; }
[ ! -d "$root/usr/share/man" ] || find "$root/usr/share/man" -type f -exec gzip -9n {} +
gzip -9nc debian/changelog >"$root/usr/share/doc/$package/changelog.gz"
for script in postinst prerm postrm; do
    [ ! -f "debian/$package.$script" ] || install -m755 "debian/$package.$script" "$root/DEBIAN/$script"
done
[ ! -d "$root/etc" ] || (cd "$root" && find etc -type f | sed 's,^,/,') >"$root/DEBIAN/conffiles"
find "$root" -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' -o -path '*/libexec/*' \) >debian/elf
if [ -s debian/elf ]; then
    xargs strip --strip-unneeded <debian/elf
    # shellcheck disable=SC2046 # paths of ours hold no blanks
    dpkg-shlibdeps -T"debian/$package.substvars" $(sed 's/^/-e/' debian/elf) 2>/dev/null
fi
rm -f debian/elf
if [ "$package" = slurm-spank-topt ]; then
    slurm=$(dpkg-query -W -f '${Version}' libslurm-dev | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
    next=$(echo "$slurm" | awk -F. '{ printf "%s.%02d", $1, $2 + 1 }')
    echo "slurm:Depends=slurm-client (>= $slurm), slurm-client (<< $next)" >>"debian/$package.substvars"
fi
shared=$(find "$root/usr/lib" -maxdepth 2 -name '*.so.[0-9]' 2>/dev/null | sed 's,.*/,,')
for library in $shared; do
    echo "${library%.so.*} ${library##*.} $package (>= $(dpkg-parsechangelog -S Version))" >>"$root/DEBIAN/shlibs"
    echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
done
touch "debian/$package.substvars"
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
dpkg-gencontrol -p"$package" -P"$root" -T"debian/$package.substvars"
dpkg-deb --root-owner-group --build "$root" ..
