#!/bin/sh
# stage.sh STAGING BUILD MULTIARCH - what packages have beside what cmake installs: completion, the plugin's line, and units
# where systemd looks for them.
set -eu
staging=$1 build=$2 multiarch=$3
here=$(dirname "$0")

# cmake puts them beside libraries.
for folder in systemd sysusers.d tmpfiles.d; do
    [ ! -d "$staging/usr/lib/$multiarch/$folder" ] || mv "$staging/usr/lib/$multiarch/$folder" "$staging/usr/lib/"
done
mkdir -p "$staging/usr/share/bash-completion/completions" "$staging/usr/share/zsh/vendor-completions" \
    "$staging/etc/slurm/plugstack.conf.d"
sh "$here/../deploy/completion.sh" "$build/bin/topt" bash >"$staging/usr/share/bash-completion/completions/topt"
sh "$here/../deploy/completion.sh" "$build/bin/topt" zsh >"$staging/usr/share/zsh/vendor-completions/_topt"
cat >"$staging/etc/slurm/plugstack.conf.d/topt.conf" <<CONF
# topt sizes jobs that ask with --topt-...; words after the file: spank_topt(8).
optional /usr/lib/$multiarch/slurm/spank_topt.so url=unix:/run/topt/toptd.sock
CONF
find "$staging/usr/share/man" -type f ! -name '*.gz' -exec gzip -9n {} +
