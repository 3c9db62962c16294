#!/usr/bin/env bash
# tutorial.sh TOPT ROOT - the commands of docs/TUTORIAL.md do what it says: each ends well, and files that it writes are there.
set -euo pipefail
topt=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/deploy/quickstart/llama-3.1-8b.json" "$work/config.json"
cp "$root/deploy/quickstart/pretrain_gpt3.sh" "$work"
sed -n '/^    {"architectures"/,/}$/{p;/}$/q}' "$root/docs/TUTORIAL.md" >"$work/gpt.json"
cd "$work"
n=0 bad=0
while IFS= read -r line; do
    n=$((n + 1))
    read -ra words <<<"$line"
    if "$topt" "${words[@]:1}" >out 2>err </dev/null && [ ! -s err ]; then
        echo "ok $n - $line"
    else
        echo "not ok $n - $line"
        sed 's/^/# /' err
        bad=1
    fi
    for ((i = 0; i < ${#words[@]}; i++)); do
        [ "${words[i]}" != -o ] || [ -e "${words[i + 1]}" ] || { echo "not ok - $line wrote nothing" && bad=1; }
    done
done < <(sed -n 's/^    \$ \(topt .*\)$/\1/p' "$root/docs/TUTORIAL.md")
[ "$n" -ge 10 ] || { echo "not ok - only $n commands were found" && bad=1; }
grep -q fully_shard run/topt_apply.py || { echo "not ok - topt_apply.py shards nothing" && bad=1; }
echo "1..$n"
exit $bad
