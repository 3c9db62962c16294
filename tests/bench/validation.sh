#!/bin/sh
# validation.sh PROGRAM DOCS - DOCS/VALIDATION.md and its picture are what the program writes.
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
"$1" "$dir/validation.svg" >"$dir/VALIDATION.md" || exit 1
number=0 status=0
for file in VALIDATION.md validation.svg; do
    number=$((number + 1))
    if cmp -s "$dir/$file" "$2/$file"; then
        echo "ok $number - docs/$file is up to date"
        continue
    fi
    echo "not ok $number - docs/$file is not what is predicted now; its head has the command"
    diff "$2/$file" "$dir/$file" | head -n 20 | sed 's/^/# /'
    status=1
done
echo 1..2
exit $status
