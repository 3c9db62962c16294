#!/bin/sh
# validation.sh VALIDATION SHEET DOCS - DOCS/VALIDATION.md, its picture and its page are what the programs write.
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
{ "$1" "$dir/validation.svg" "$dir/validation.html" && "$2"; } >"$dir/VALIDATION.md" 2>"$dir/said" ||
    { cat "$dir/said"; exit 1; }
number=0 status=0
for file in VALIDATION.md validation.svg validation.html; do
    number=$((number + 1))
    if cmp -s "$dir/$file" "$3/$file"; then
        echo "ok $number - docs/$file is up to date"
        continue
    fi
    echo "not ok $number - docs/$file is not what is predicted now; VALIDATION.md's head has the command"
    diff "$3/$file" "$dir/$file" | head -n 20 | sed 's/^/# /'
    status=1
done
echo 1..3
exit $status
