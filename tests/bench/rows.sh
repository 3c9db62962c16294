#!/bin/sh
# rows.sh VALIDATION ROWS - a row that can't be read is refused by the number of its line and the cell that is wrong; each
# group's side is printed, as the SHA-256 of its name says.
validation=$1 rows=$2 number=0 status=0
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

check() { # check WHAT: did the command before end well?
    result=$?
    number=$((number + 1))
    [ $result -eq 0 ] && { echo "ok $number - $1"; return; }
    echo "not ok $number - $1"
    sed 's/^/# /' "$dir/said"
    status=1
}

# The second costed row of later.csv with one cell replaced (a column, its text), as line 3 of a file.
refused() { # refused COLUMN TEXT WORDS
    python3 - "$rows/later.csv" "$dir/sent.csv" "$1" "$2" <<'END'
import csv, sys
of, to, column, text = sys.argv[1:]
rows = list(csv.reader(open(of)))
good = [r for r in rows[1:] if r[rows[0].index("model")] == "Llama 3.1 8B" and r[rows[0].index("precision")] == "bf16"]
wrong = list(good[0])
wrong[rows[0].index(column)] = text
csv.writer(open(to, "w"), lineterminator="\n").writerows([rows[0], good[0], wrong])
END
    "$validation" --check "$dir/sent.csv" >"$dir/said" 2>&1
    [ $? -eq 1 ] && grep -q "^$dir/sent.csv:3: $1 .*$3" "$dir/said"
    check "$1 '$2' is refused by line and cell: $3"
}

"$validation" --check "$rows/later.csv" >"$dir/said" 2>&1
check "the file as it stands is read"
refused model 'Llama 9' 'models.json does not have it'
refused source '' 'repository:path'
refused hw h100 'no such profile'
refused measure days 'give s, tokens'
refused memory_kind most 'allocated'
refused outcome fine 'ran, oom'
refused needs 'more-time' 'no mechanism'
printf 'source,model\n' >"$dir/sent.csv"
"$validation" --check "$dir/sent.csv" >"$dir/said" 2>&1
[ $? -eq 1 ] && grep -q "^$dir/sent.csv:1: " "$dir/said"
check "columns that are not those of rows.h are refused"

"$validation" --sides >"$dir/said"
while read -r hash side name; do
    [ "$(printf %s "$name" | sha256sum | cut -d ' ' -f 1)" = "$hash" ] || exit 1
    case $side-$hash in judged-*[02468ace]) exit 1 ;; esac
done <"$dir/said" && grep -q ' judged ' "$dir/said" && grep -q ' seen ' "$dir/said"
check "a side for each of $(wc -l <"$dir/said") groups, and none that judges against the SHA-256 of its name"
sed 's/^/# /' "$dir/said"
echo "1..$number"
exit $status
