#!/usr/bin/env python3
"""many_test.py TOPTD [CONNECTIONS] - thousands of open connections cost little memory, and nobody waits for them.

CONNECTIONS (4000) of many users, 60 each, on each of which something was asked, stay open and silent; what toptd grew by is
said, and must be at most 40 KiB a connection.  Then one more user asks.  Needs root, to be other users."""
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import kit
from kit import ok

TOPTD = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
EACH, MOST = 60, 40 << 10
REQUEST = b"GET /v1/hardware HTTP/1.1\r\nHost: localhost\r\n\r\n"


def hold(path, uid, n, told):
    """As that user: so many connections, one request on each; then silence."""
    pid = os.fork()
    if pid:
        return pid
    os.setgid(uid)
    os.setgroups([])
    os.setuid(uid)
    held, good = [], 0
    for _ in range(n):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect(path)
        s.sendall(REQUEST)
        good += s.recv(12).endswith(b"200")
        s.recv(65536)
        held.append(s)
    os.write(told, b"%d\n" % good)
    time.sleep(600)
    os._exit(0)


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("VmRSS")) << 10


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if os.getuid() != 0 or hard < COUNT + 512:
        print(f"1..0 # skipped: needs root, and {COUNT + 512} open files (there may be {hard})")
        return 77
    folder = tempfile.mkdtemp(prefix="toptd-many-")
    os.chmod(folder, 0o755)
    path, users = folder + "/s", (COUNT + EACH - 1) // EACH
    with open(folder + "/log", "w") as log:
        server = subprocess.Popen([TOPTD, "--socket", path, "--state", folder + "/state", "--hw", "lab-cpu", "--log-level", "warning",
                                   "--connections", str(COUNT + COUNT // 4), "--idle-timeout", "600"], stderr=log)
    while server.poll() is None and not os.path.exists(path):
        time.sleep(0.02)
    kit.ask(path, "GET", "/v1/hardware")
    before = resident(server.pid)
    hear, told = os.pipe()
    holders = [hold(path, 62000 + i, min(EACH, COUNT - EACH * i), told) for i in range(users)]
    os.close(told)
    text = ""
    while text.count("\n") < users:
        piece = os.read(hear, 4096).decode()
        if not piece:
            break
        text += piece
    good = sum(map(int, text.split()))
    ok(good == COUNT, f"{good} connections of {users} users are open, each was answered")
    grown = resident(server.pid) - before
    ok(grown <= COUNT * MOST, f"they take {grown / COUNT / 1024:.1f} KiB each: {before >> 20} MiB, then {(before + grown) >> 20} MiB")
    threads = len(os.listdir(f"/proc/{server.pid}/task"))
    ok(threads < 40, f"and no threads of their own: {threads}")
    times = []
    for _ in range(200):
        began = time.monotonic()
        r, _ = kit.ask(path, "GET", "/v1/hardware")
        times.append(time.monotonic() - began)
    times.sort()
    ok(r.status == 200 and times[100] < 0.1, f"one more is answered in {times[100] * 1e3:.1f} ms in the middle, "
       f"{times[197] * 1e3:.1f} ms at the 99th percentile")
    for pid in holders:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for _ in range(500):
        if len(os.listdir(f"/proc/{server.pid}/fd")) < 100:
            break
        time.sleep(0.02)
    ok(len(os.listdir(f"/proc/{server.pid}/fd")) < 100, "all are given back when their clients go")
    server.terminate()
    ok(server.wait(20) == 0, "it ends well")
    shutil.rmtree(folder)
    return kit.finish()


sys.exit(main())
