#!/bin/sh
# made.sh ROOT CPACK BUILD VERSION STATIC_LIBS - the archive is unpacked anywhere and plans there, each program needs the
# libraries that it may and a glibc that older distributions have, and the .deb files hold and need what they say.
root=$1 cpack=$2 build=$3 version=$4 held=$5
# shellcheck source=tests/tap.sh
. "$root/tests/tap.sh"
command -v objdump >/dev/null || { echo "1..0 # skipped: objdump (binutils) is not installed" && exit 77; }

"$cpack" --config "$build/CPackConfig.cmake" -B "$dir/made" >out 2>err
check "cpack makes packages of what is built"
mkdir prefix && tar xzf "made/topt-$version-$(uname -s)-$(uname -m).tar.gz" -C prefix --strip-components=1
check "the archive has one folder, which names version and machine"
topt=$dir/prefix/bin/topt
[ "$("$topt" --version)" = "topt $version" ]
check "topt starts where it was unpacked, and says its version"
"$topt" plan "$root/deploy/quickstart/llama-3.1-8b.json" --hw a100-80-dgx --batch 64 --seq 4096 >out 2>err &&
    grep -q '^fewest  *2 (1 node)' out
check "it plans"
"$topt" client --help >out 2>err && "$topt" sbatch --help >out 2>err && prefix/bin/toptd --help >out 2>err
check "the client, topt sbatch and the daemon start, too"
for file in share/man/man1/topt.1 share/man/man8/toptd.8 share/man/man8/spank_topt.8 share/bash-completion/completions/topt \
    share/zsh/site-functions/_topt share/topt/topt_torch.py share/doc/topt/copyright share/doc/topt/SLURM.md \
    lib/systemd/system/toptd.service lib/sysusers.d/topt.conf include/topt.h; do
    [ -s "prefix/$file" ] || [ "$file" = share/man/man8/spank_topt.8 ] || echo "$file"
done >err
[ ! -s err ]
check "man pages, completion, units, documents and the header are in it"
bash -n prefix/share/bash-completion/completions/topt 2>err && grep -q -- --min-efficiency prefix/share/bash-completion/completions/topt
check "completion knows the options"
grep -q '^ExecStart=toptd ' prefix/lib/systemd/system/toptd.service
check "the unit has the service manager look for toptd in its usual folders"

# What starts a program elsewhere: the symbols of glibc, and the names of libraries.
find prefix -type f \( -path '*/bin/*' -o -path '*/libexec/*' -o -name '*.so*' \) >programs
: >newer
while read -r program; do
    objdump -T "$program" 2>/dev/null | sed -n 's/.*(\{0,1\}GLIBC_2\.\([0-9]*\).*/\1/p' | sort -nu | awk -v name="$program" '$1 > 34 { print name, "GLIBC_2." $1 }'
done <programs >newer
glibc=$(getconf GNU_LIBC_VERSION | sed 's/.*2\.//')
if [ "$glibc" -le 36 ]; then
    cp newer err
    [ -s programs ] && [ ! -s newer ]
    check "no program needs a glibc newer than 2.34, which Rocky 9 has (Ubuntu 22.04 has 2.35)"
else
    echo "# built with glibc 2.$glibc: $(wc -l <newer) of the programs need newer symbols than 2.34; packages for older systems are built on Debian 12"
fi
needs() # PROGRAM LIBRARIES: no others but libc's own
{
    objdump -p "prefix/$1" | awk '$1 == "NEEDED" { print $2 }' |
        grep -vE "^(libc|libm|libz|libpthread|libdl|ld-linux[a-z0-9-]*)\.so\.[0-9]+$" | grep -vE "^lib($2)\.so" >err
    [ ! -s err ]
}
if [ "$held" != OFF ] && ! grep -qE '^TOPT_ARCHIVE_[A-Z0-9]*:.*NOTFOUND' "$build/CMakeCache.txt"; then
    needs libexec/topt/topt-solver none && needs libexec/topt/topt-sbatch none && needs libexec/topt/topt-rightsize none &&
        needs libexec/topt/topt-client curl && needs libexec/topt/toptd-worker seccomp &&
        needs bin/toptd 'microhttpd|systemd' && needs libexec/topt/topt-runtime 'mpi|openblas|hwloc'
    check "the planner needs libc, libm and libz alone, and no program more than README says"
    [ -s prefix/share/doc/topt/libraries/jansson ] || [ ! -d /usr/share/doc/libjansson-dev ]
    check "licences of the libraries that programs hold go with them"
fi

command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || finish
field() # PACKAGE FIELD
{
    dpkg-deb -f "made/$1_${version}_$2.deb" "$3"
}
architecture=$(dpkg --print-architecture)
for package in topt toptd libtopt-runtime libtopt-runtime-dev; do
    [ "$(field $package "$architecture" Package) $(field $package "$architecture" Version)" = "$package $version" ] &&
        field $package "$architecture" Depends | grep -q 'libc6 (>= ' || echo $package
done >err && [ "$(field topt-doc all Architecture)" = all ] && [ ! -s err ]
check "each .deb has its name and version, and needs the libraries that its programs do"
field toptd "$architecture" Depends | grep -q "topt (= $version)" && field topt "$architecture" Recommends | grep -qx topt-doc
check "packages of one build go together"
sed -n '/^Package: topt$/,/^$/s/^Description: //p' "$root/debian/control" >said
field topt "$architecture" Description | head -1 | diff said - >err
check "what they are is said as debian/control says it"
dpkg-deb -c "made/toptd_${version}_$architecture.deb" >out
for file in usr/bin/toptd usr/libexec/topt/toptd-worker usr/lib/systemd/system/toptd.socket usr/lib/sysusers.d/topt.conf; do
    grep -q "[.]/$file$" out || echo "$file"
done >err
dpkg-deb --ctrl-tarfile "made/toptd_${version}_$architecture.deb" | tar t | grep -q postinst && [ ! -s err ]
check "toptd comes with its units, its user and what its installation does"
if [ -f "made/slurm-spank-topt_${version}_$architecture.deb" ]; then
    field slurm-spank-topt "$architecture" Depends | grep -Eq 'slurm-client \(>= [0-9.]+\), slurm-client \(<< [0-9.]+\)' &&
        dpkg-deb --fsys-tarfile "made/slurm-spank-topt_${version}_$architecture.deb" >plugin.tar &&
        tar xOf plugin.tar ./etc/slurm/plugstack.conf.d/topt.conf >line && grep '^optional ' line >out &&
        tar tf plugin.tar | grep -q "^[.]$(awk '{ print $2 }' out)$" &&
        dpkg-deb --ctrl-tarfile "made/slurm-spank-topt_${version}_$architecture.deb" | tar xO ./conffiles | grep -qx /etc/slurm/plugstack.conf.d/topt.conf
    check "the plugin is for one release of Slurm; its line is a setting, and names the file in the package"
fi
head -1 "$root/debian/changelog" | grep -q "^topt ($version)"
check "dpkg-buildpackage makes the same version"
finish
