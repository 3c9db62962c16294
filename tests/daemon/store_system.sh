#!/usr/bin/env bash
# store_system.sh TOPTD - toptd and its store from outside: no room, another program's lock, damage, a backup.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
command -v python3 >/dev/null || { echo "1..0 # skipped: python3 is not installed"; exit 77; }
text=(-H 'Accept: text/plain')
mini='/v1/plan?mode=mini-parallelism'

# --- a foreign lock stalls nobody who reads, and no answer
start --hw fake-hw
ask POST "$mini" -d '{"fake_bytes":1}'; check "a plan" 200 '"plan_id"'
plan=$(field plan_id)
! grep -q '"pinned"' "$dir/body"; ok $? "is pinned, which needs no word"
python3 - "$dir" <<'P' &
import os, sqlite3, sys, time
db = sqlite3.connect(sys.argv[1] + "/state/topt.db", isolation_level=None)
db.execute("BEGIN IMMEDIATE")
open(sys.argv[1] + "/locked", "w").close()
until = time.time() + 30
while not os.path.exists(sys.argv[1] + "/enough") and time.time() < until:
    time.sleep(0.02)
P
locker=$!
for _ in $(seq 200); do [ -e "$dir/locked" ] && break; sleep 0.02; done
began=$(date +%s%N)
for i in 1 2 3 4 5; do
    ask GET "/v1/plans/$plan"
    ask POST "$mini" -d "{\"fake_bytes\":1}"
done
took=$(( ($(date +%s%N) - began) / 1000000 ))
check "what is known is answered while another program holds the file" 200 '"plan_id"'
[ $took -lt 1500 ]; ok $? "at once ($took ms)"
ask POST "$mini&wait_ms=20000" -d '{"fake_bytes":2}'; check "a new answer is given, too" 200 '"pinned":false'
ask POST "$mini&wait_ms=20000" "${text[@]}" -d '{"fake_bytes":3}'; check "or as text" 200 '^TOPT_PINNED=0$'
ask POST "$mini&wait_ms=20000&memory_bytes=9" -d '{"fake_bytes":50}'; check "a refusal, too, which says that it is not kept" 422 '"pinned":false'
ask POST /v1/models -d '{"fake_bytes":4}'; check "what must be stored is refused" 503 '"busy"'
touch "$dir/enough"
wait "$locker"
ask POST "$mini" -d '{"fake_bytes":2}'; check "without the lock it is stored" 200
! grep -q '"pinned"' "$dir/body"; ok $? "and pinned"

# --- a backup beside it
"$toptd" --state "$dir/state" --backup-to "$dir/copy.db" >"$dir/second" 2>&1
status=$?
[ $status -eq 0 ] && [ -s "$dir/copy.db" ] && [ ! -e "$dir/copy.db.part" ]; ok $? "a backup beside a toptd that runs"
ask GET /livez; check "which runs on" 200
"$toptd" --state "$dir/none" --backup-to "$dir/none.db" >"$dir/second" 2>&1
[ $? -eq 1 ] && grep -q "none/topt.db" "$dir/second" && [ ! -e "$dir/none.db" ]; ok $? "of nothing there is none"
stop TERM; ok $? "it ends"
mkdir "$dir/restored" && cp "$dir/copy.db" "$dir/restored/topt.db"
start --hw fake-hw --state "$dir/restored"
ask GET "/v1/plans/$plan"; check "the copy has the plan" 200 '"format":"topt-plan/1"'
stop TERM; ok $? "it ends"

# --- no room: a limit on the size of files stands for a full disk
(
    ulimit -f 900 # blocks of 1024 bytes
    trap '' XFSZ
    exec "$toptd" --socket "$sock" --state "$dir/small" --hw fake-hw >>"$dir/log" 2>&1
) &
pid=$!
for _ in $(seq 300); do curl -s -o /dev/null --unix-socket "$sock" http://localhost/livez && break; sleep 0.05; done
ask POST "$mini" -d '{"fake_bytes":1}'; check "there is room for one" 200
plan=$(field plan_id)
large() # large N: a model of 300 kB
{
    { printf '{"fake_bytes":%s,"pad":"' "$1" && head -c 300000 /dev/zero | tr '\0' x && printf '"}'; } >"$dir/large.json"
}
for i in 11 12 13 14; do
    large $i
    ask POST "$mini&wait_ms=20000" --data-binary "@$dir/large.json"
    grep -q '"pinned":false' "$dir/body" && break
done
check "then there is none, and the answer is given" 200 '"pinned":false'
large 9
ask POST /v1/models --data-binary "@$dir/large.json"; check "what must be stored is refused" 507 '"no_room"'
ask GET "/v1/plans/$plan"; check "what was stored is there" 200
ask GET /readyz; check "and it is ready" 200
stop TERM; ok $? "it ends"

# --- damage
cp -r "$dir/state" "$dir/broken"
python3 - "$dir/broken/topt.db" <<'P'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(4096)
    f.write(b"\xff" * 12288)
P
before=$(cksum <"$dir/broken/topt.db")
"$toptd" --socket "$dir/x.sock" --state "$dir/broken" >"$dir/second" 2>&1
status=$?
[ $status -eq 1 ] && [ "$(grep -c damaged "$dir/second")" = 1 ] && tail -1 "$dir/second" | grep -q "broken/topt.db.*damaged"
ok $? "a damaged file is named in a line: $(cat "$dir/second")"
[ "$(cksum <"$dir/broken/topt.db")" = "$before" ]; ok $? "and left as it is"
finish
