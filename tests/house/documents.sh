#!/usr/bin/env bash
# documents.sh ROOT TOPT - what the documents name is there: files they link to, scripts of
# deploy/, and every subcommand of topt.
set -euo pipefail
cd "$1"
topt=$2

documents=(README.md NEWS.md CONTRIBUTING.md docs/*.md docs/notes/*.md docs/man/*)
bad=0 checked=0
complain()
{
    echo "not ok - $*"
    bad=1
}

for document in "${documents[@]}"; do
    folder=$(dirname "$document")
    while IFS= read -r link; do
        checked=$((checked + 1))
        [ -e "$folder/$link" ] || complain "$document links to $link, which is not there"
    done < <(grep -oE '\]\([^)#: ]+' "$document" | sed 's/^](//' | sort -u)
    while IFS= read -r path; do
        checked=$((checked + 1))
        [ -e "$path" ] || complain "$document names $path, which is not there"
    done < <(grep -oE '(build/[a-z]+/|:)?\b(deploy|docs|tests|hw)/[A-Za-z0-9_./-]+[A-Za-z0-9_]' "$document" |
        grep -vE '^(build/|:)' | sort -u) # what is built is not there yet, another repository's never is
done

subcommands=$(cat "${documents[@]}" | sed 's/\\fR//g; s/\\fB//g; s/\\-/-/g' |
    grep -oE '(^|[`$ ("])topt [a-z]+( [a-z][a-z-]*)?' | sed -E 's/^[^t]*topt //' | sort -u)
while read -r name second; do
    "$topt" --help | grep -qE "^ +$name\b" || continue # "topt answers" in prose
    [ "$name" = client ] || [ "$name" = hw ] || second=
    checked=$((checked + 1))
    # shellcheck disable=SC2086 # an empty word is no argument
    "$topt" "$name" $second --help >/dev/null 2>&1 || complain "topt $name $second --help fails"
done <<<"$subcommands"
[ $bad = 1 ] || echo "ok - $checked links, files and commands"
exit $bad
