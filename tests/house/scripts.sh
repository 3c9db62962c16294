#!/usr/bin/env bash
# scripts.sh ROOT - every shell script parses, and ShellCheck has nothing to say where it is
# installed.
set -euo pipefail
cd "$1"

scripts=(.ci/run) bad=0
while IFS= read -r file; do
    scripts+=("$file")
done < <(find deploy tests slurm_plugin daemon runtime solver -name '*.sh' | sort)
for file in "${scripts[@]}"; do
    bash -n "$file" || { echo "not ok - $file does not parse" && bad=1; }
done
if command -v shellcheck >/dev/null; then
    shellcheck -x -S warning .ci/run deploy/*.sh deploy/*/*.sh || { echo "not ok - shellcheck" && bad=1; }
fi
[ $bad = 1 ] || echo "ok - ${#scripts[@]} scripts"
exit $bad
