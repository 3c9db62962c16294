#!/usr/bin/env bash
# service_test.sh TOPTD - how toptd gets along with a service manager: sockets that are handed over,
# readiness, reloading, settings checked before a start.  Python plays the manager.
# shellcheck source-path=SCRIPTDIR source=sys.sh
. "$(dirname "$0")/sys.sh"
command -v python3 >/dev/null || { echo "1..0 # skipped: python3 is not installed"; exit 77; }

# --- settings are checked
printf 'workers = 2\nhw = fake-hw\n' >"$dir/good.conf"
"$toptd" --check-config --config "$dir/good.conf" --socket "$sock" --state "$dir/state" >"$dir/body" 2>&1
status=$?
[ $status -eq 0 ] && grep -q "can be read; socket $sock, state $dir/state" "$dir/body"
ok $? "settings that can be read"
[ ! -e "$dir/state" ]; ok $? "nothing is made meanwhile"
printf 'workers = 2\nworkesr = 3\n' >"$dir/bad.conf"
"$toptd" --check-config --config "$dir/bad.conf" >"$dir/body" 2>&1
status=$?
[ $status -eq 2 ] && grep -q 'bad.conf line 2: .*workesr' "$dir/body"; ok $? "a slip is named with its line"
printf 'check-config = 1\n' >"$dir/bad.conf"
"$toptd" --config "$dir/bad.conf" >"$dir/body" 2>&1
[ $? -eq 2 ]; ok $? "--check-config is no setting of a file"

printf 'gpu fake-hw\n' >"$dir/map"
"$toptd" --check-config --site-map "$dir/map" >"$dir/body" 2>&1
status=$?
[ $status -eq 2 ] && grep -q -- '--site-map' "$dir/body"; ok $? "a table of the site that can't be read: $(cat "$dir/body")"

printf 'gpu * fake-hw\nold * moon\n' >"$dir/map"
"$toptd" --check-config --site-map "$dir/map" --state "$dir/state" >"$dir/body" 2>&1
status=$?
[ $status -eq 2 ] && grep -q -- "--site-map: partition 'old': unknown hardware 'moon'" "$dir/body"
ok $? "a table that names a profile which is not there: $(tail -1 "$dir/body")"
"$toptd" --check-config --hw moon --state "$dir/state" >"$dir/body" 2>&1
status=$?
[ $status -eq 2 ] && grep -q -- "--hw: unknown hardware 'moon'" "$dir/body"; ok $? "and a default that is not there"
[ ! -e "$dir/state" ]; ok $? "nothing is made for that either"

# --- SIGHUP
printf 'hw = fake-hw\nlog-level = warning\n' >"$dir/live.conf"
start --config "$dir/live.conf" --site-map "$dir/map"
grep -q "partition 'old' in .*map': unknown hardware 'moon'" "$dir/log" && ! grep -q "partition 'gpu'" "$dir/log"
ok $? "a profile of the site's table that isn't there is named at the start"
ask GET /livez
grep -q 'GET /livez' "$dir/log" && quiet=1 || quiet=0
ok $quiet "few words at log-level warning"
printf 'hw = other-hw\nlog-level = info\nworkers = 7\n' >"$dir/live.conf"
kill -HUP "$pid"
for _ in $(seq 100); do grep -q 'settings were read again' "$dir/log" && break; sleep 0.05; done
grep -q 'settings were read again; --workers changes at the next start only' "$dir/log"
ok $? "settings are read again, and what must wait is named"
ask GET /v1/hardware; check "the default is another" 200 '"default":"other-hw"'
grep -q 'GET /v1/hardware' "$dir/log"; ok $? "and the log says more"
printf 'hw = other-hw\nlog-level = info\nuser-documents = 3\n' >"$dir/live.conf"
reload() # reload: until it has
{
    local was
    was=$(grep -c 'settings were read again' "$dir/log")
    kill -HUP "$pid"
    for _ in $(seq 100); do [ "$(grep -c 'settings were read again' "$dir/log")" -gt "$was" ] && break; sleep 0.05; done
}
reload
for n in 1 2 3; do ask POST /v1/models -d "{\"fake_bytes\":$n}"; check "model $n of three" 201; done
ask POST /v1/models -d '{"fake_bytes":4}'; check "a fourth is one too many" 413 'you keep 3 models and plans, and no more are kept of one user: .topt client forget'
ask POST '/v1/plan?mode=mini-parallelism&batch=8' -d '{"fake_bytes":4}'; check "a question is answered" 200 '"feasible":true'
worker=$(pgrep -P "$pid" | head -1)
if grep -qE '__(asan|tsan)_init' "$(dirname "$toptd")/../libexec/topt/toptd-worker" || ! command -v pgrep >/dev/null; then
    ok 0 "a worker process is confined # skipped: a sanitizer, or no pgrep"
else
    grep -q 'NoNewPrivs:.*1' "/proc/$worker/status" && grep -q 'Seccomp:.*2' "/proc/$worker/status"
    ok $? "a worker process is confined: $(grep -E 'NoNewPrivs|Seccomp' "/proc/$worker/status" | tr '\n' ' ')"
fi
ask GET /v1/plans; check "its plan is kept" 200 '"id":"p-'
ask GET /v1/models; [ "$(grep -o '"id"' "$dir/body" | wc -l)" = 2 ]; ok $? "with its model, and of the three the last"
printf 'hw = other-hw\nlog-level = info\n' >"$dir/live.conf"
reload
plan='/v1/plan?batch=8&seq=8&slurm_partition='
ask POST "${plan}new" -H 'Content-Type: application/octet-stream' --data-binary '{"n":1}'
check "a partition that the table does not name is refused" 422 "no profile for partition 'new'"
curl -s --unix-socket "$sock" http://localhost/v1/hardware -d '{"format":"topt-hw/1","name":"moon"}' >/dev/null
"$toptd" --check-config --site-map "$dir/map" --state "$dir/state" >"$dir/body" 2>&1
ok $? "a profile that was registered is known to --check-config, beside the toptd that runs"
printf 'gpu * fake-hw\nnew * fake-hw\nolder * mars\n' >"$dir/map"
kill -HUP "$pid"
for _ in $(seq 100); do grep -q "partition 'older'" "$dir/log" && break; sleep 0.05; done
grep -q "partition 'older' in .*map': unknown hardware 'mars'" "$dir/log"; ok $? "the table is read again, and what is not there named"
ask POST "${plan}new" -H 'Content-Type: application/octet-stream' --data-binary '{"n":1}'
check "and jobs of its new partition are planned" 200 '"feasible":true'
printf 'gpu fake-hw\n' >"$dir/map"
kill -HUP "$pid"
for _ in $(seq 100); do grep -q "table stays as it was" "$dir/log" && break; sleep 0.05; done
grep -q "table stays as it was: .*map:1: a line is" "$dir/log"; ok $? "a table that can't be read changes nothing"
ask POST "${plan}new" -H 'Content-Type: application/octet-stream' --data-binary '{"n":2}'
check "the one before still holds" 200 '"feasible":true'
printf 'hw = other-hw\nlog-level = loud\n' >"$dir/live.conf"
kill -HUP "$pid"
for _ in $(seq 100); do grep -q 'stay as they were' "$dir/log" && break; sleep 0.05; done
grep -q "stay as they were: .*unknown --log-level 'loud'" "$dir/log"; ok $? "a bad file changes nothing"
ask GET /livez; check "and ends nothing" 200
stop TERM; ok $? "it ends as ever"

# --- sockets that are handed over, and what the manager is told
"$toptd" --help | grep -q check-config; ok $? "--help names --check-config"
ldd "$toptd" | grep -q libsystemd || {
    ok 0 "handed-over sockets # skipped: built without libsystemd"
    finish
}
cat >"$dir/manager.py" <<'EOF'
import os, signal, socket, subprocess, sys, time
toptd, folder = sys.argv[1:]
listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listening.bind(folder + "/handed.sock")
listening.listen(16)
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.bind(folder + "/notify")
told.settimeout(10)

def ask():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.settimeout(10)
    s.connect(folder + "/handed.sock")
    s.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
    return s.recv(4096)

def wait_for(word):
    end = time.time() + 10
    while time.time() < end:
        message = told.recv(4096).decode()
        if word in message:
            return True
    return False

early = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) # before anybody runs
early.connect(folder + "/handed.sock")
early.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
def start():
    return subprocess.Popen(
        ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", toptd, "--socket", folder + "/own.sock",
         "--state", folder + "/state9", "--hw", "fake-hw"],
        env=dict(os.environ, LISTEN_FDS="1", NOTIFY_SOCKET=folder + "/notify"),
        pass_fds=[3], stderr=subprocess.DEVNULL)

child = start()
print("ready_%s" % (wait_for("READY=1")))
early.settimeout(10)
print("early_%s" % (b" 200 " in early.recv(4096)))
print("asked_%s" % (b"200" in ask()))
print("own_%s" % (os.path.exists(folder + "/own.sock")))
print("alive_%s" % (wait_for("WATCHDOG=1")))
child.send_signal(signal.SIGHUP)
print("reloading_%s" % (wait_for("RELOADING=1")))
print("again_%s" % (wait_for("READY=1")))
child.send_signal(signal.SIGTERM)
print("stopping_%s" % (wait_for("STOPPING=1")))
print("status_%s" % (child.wait(10)))
print("kept_%s" % (os.path.exists(folder + "/handed.sock")))
between = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
print("waits_%s" % (between.connect_ex(folder + "/handed.sock") == 0))
between.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
child = start()
between.settimeout(10)
print("served_%s" % (wait_for("READY=1") and b" 200 " in between.recv(4096)))
child.terminate()
print("over_%s" % (child.wait(10)))
EOF
python3 "$dir/manager.py" "$toptd" "$dir" >"$dir/body" 2>&1
status=$?
while read -r line text; do
    grep -qx "$line" "$dir/body"; ok $? "$text"
done <<'EOF'
ready_True the manager is told that it is ready
early_True who asked before it ran is answered
asked_True so is who asks later
own_False no socket of its own is made
alive_True it says that it is alive
reloading_True that it reads its settings again
again_True and when it has
stopping_True and that it stops
status_0 it ends with 0
kept_True and leaves the socket that is not its own
waits_True who asks while none runs is not refused
served_True and is answered by the next one
over_0 which ends, too
EOF
finish
