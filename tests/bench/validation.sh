#!/bin/sh
# validation.sh PROGRAM DOCUMENT - docs/VALIDATION.md is what the program writes.
if "$1" | cmp -s - "$2"; then
    echo "ok 1 - docs/VALIDATION.md is up to date"
else
    echo "not ok 1 - docs/VALIDATION.md is not what is predicted now:"
    echo "# build the target validation and run tests/validation >docs/VALIDATION.md"
    "$1" | diff "$2" - | head -n 20 | sed 's/^/# /'
    status=1
fi
echo 1..1
exit ${status:-0}
