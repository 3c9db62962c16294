#!/usr/bin/env bash
# fields.sh ROOT DOCUMENT [write] - what documents say of a question's fields is what their table says.
#
# In docs/REST.md, docs/SLURM.md and man pages it stands between two comments, "fields: begin" and "fields: end", as the
# program DOCUMENT (toptd-document) prints it; with "write" it is put there (cmake --build ... --target fields).
set -euo pipefail
cd "$1"
document=$2 mode=${3:-check}
bad=0

region() # region FILE PRINTED: the file with that between its two comments
{
    awk -v printed="$2" '
        /fields: end/ { within = 0; ended++ }
        !within { print }
        /fields: begin/ { within = 1; begun++; while ((getline line <printed) > 0) print line }
        END { if (begun != 1 || ended != 1) exit 1 }' "$1"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for pair in rest:docs/REST.md slurm:docs/SLURM.md client:docs/man/topt-client.1 sbatch:docs/man/spank_topt.8; do
    file=${pair#*:}
    "$document" "${pair%%:*}" >"$work/printed"
    if ! region "$file" "$work/printed" >"$work/whole"; then
        echo "not ok - $file has no one pair of lines with 'fields: begin' and 'fields: end'"
        bad=1
    elif [ "$mode" = write ]; then
        cmp -s "$work/whole" "$file" || cp "$work/whole" "$file"
    elif ! diff -u "$file" "$work/whole" >"$work/diff"; then
        sed 's/^/# /' "$work/diff"
        echo "not ok - $file differs from the table of fields; cmake --build FOLDER --target fields writes it"
        bad=1
    else
        echo "ok - $file says what the table of fields says"
    fi
done
exit $bad
