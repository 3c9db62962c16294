#!/usr/bin/env bash
# format.sh ROOT - every C file is as .clang-format says (version 14; others differ).
set -euo pipefail
cd "$1"

tool=$(command -v clang-format-14 || true)
if [ -z "$tool" ]; then
    echo "1..0 # skipped: clang-format-14 is not installed"
    exit 77
fi
bad=0
while IFS= read -r file; do
    if ! "$tool" --style=file "$file" | cmp -s - "$file"; then
        echo "not ok - $file (clang-format-14 -i $file)"
        bad=1
    fi
done < <(find common solver runtime daemon slurm_plugin tests -name '*.[ch]' | sort)
[ $bad = 1 ] || echo "ok - all formatted"
exit $bad
