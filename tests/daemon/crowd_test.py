#!/usr/bin/env python3
"""crowd_test.py TOPTD [SECONDS] - one user takes all it can get; another's submissions are planned.

One uid keeps 20 of the largest searches, 200 connections (half-sent requests, clients that read nothing) and as
many tasks as it is given going.  Another uid asks 200 questions as sbatch does, each of another model, none asked
before.  All must be planned.  How long they took is said, not judged.  100 more come 25 at a time, each with the three
seconds that sbatch gives it.  Then 1,000 times the same cold question from
20 uids: one search, 1,000 answers.  Needs root, to be other users."""
import collections
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import kit
from kit import ok

BAD, GOOD = 4242, 4343
TOPTD = sys.argv[1]


def ask(path, method, target, body="", text=False, timeout=60):
    r, said = kit.ask(path, method, target, body, timeout, Accept="text/plain" if text else "application/json")
    return r.status, said.decode(), r.getheader("Retry-After")


def model(width, layers=8):
    return json.dumps({"model_type": "llama", "hidden_size": 64 * width, "intermediate_size": 192 * width,
                       "num_hidden_layers": layers, "num_attention_heads": width, "num_key_value_heads": width,
                       "vocab_size": 32000, "max_position_embeddings": 4096})


def as_user(uid, work):
    """Run work() in a process of that user; its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setgid(uid)
        os.setgroups([])
        os.setuid(uid)
        work()
        os._exit(0)
    except BaseException as e: # whatever it was, this process ends here
        print("# " + repr(e), file=sys.stderr)
        os._exit(1)


# --- the one who takes all

def half_sent(path, stop):
    while not stop.is_set():
        try:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.settimeout(5)
            s.connect(path)
            kind = random.randrange(3)
            if kind == 0: # headers that never end
                s.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
                while not stop.is_set():
                    time.sleep(0.3)
                    s.sendall(b"x")
            elif kind == 1: # a body that never ends
                s.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{")
                while not stop.is_set():
                    time.sleep(0.3)
                    s.sendall(b" ")
            else: # answers that nobody reads
                for _ in range(50):
                    s.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
                stop.wait(5)
            s.close()
        except OSError:
            time.sleep(0.05)


def large_search(path, n, stop):
    seed = n
    while not stop.is_set():
        seed += 1000
        try:
            status, body, _ = ask(path, "POST", "/v1/plan?mode=profiling&space=full&framework=topt&batch=512&seq=1024"
                                  "&wait_ms=0", model(8 + seed % 97, 24))
            if status == 202 and n % 2:
                ask(path, "GET", "/v1/tasks/" + json.loads(body)["task"] + "?wait_ms=2000")
            elif status != 202:
                time.sleep(0.05)
        except (OSError, ValueError, http.client.HTTPException):
            time.sleep(0.05)


def bad_user(path):
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threads = [threading.Thread(target=half_sent, args=(path, stop), daemon=True) for _ in range(200)]
    threads += [threading.Thread(target=large_search, args=(path, n, stop), daemon=True) for n in range(20)]
    for t in threads:
        t.start()
    stop.wait(600)
    os._exit(0)


# --- the one who submits

def submit(path, n):
    """As the plugin does: again within the deadline when told to.  (status, seconds)."""
    began = time.time()
    status = 0
    while time.time() - began < 30:
        try:
            status, body, again = ask(path, "POST", f"/v1/plan?mode=mini-parallelism&batch=64&seq=1024&name=m{n}",
                                      model(100 + n), text=True)
            if status not in (429, 503) or not again:
                break
        except (OSError, http.client.HTTPException):
            status = -1
        time.sleep(0.05)
    return status, time.time() - began


def good_user(path, out):
    results = []
    for n in range(200):
        results.append(submit(path, n))
    with open(out, "w") as f:
        json.dump(results, f)


def crowd(path, folder):
    """The same cold question, 50 times from each of 20 users."""
    def fifty(uid):
        def work():
            statuses = collections.Counter()
            lock = threading.Lock()

            def one():
                end = time.time() + 120
                while time.time() < end:
                    try:
                        status, body, _ = ask(path, "POST", "/v1/plan?mode=mini-parallelism&batch=64&seq=2048"
                                              "&wait_ms=60000", model(320), timeout=100)
                    except (OSError, http.client.HTTPException):
                        status = -1
                    if status in (200, 422):
                        break
                    time.sleep(0.2)
                with lock:
                    statuses[status] += 1
            threads = [threading.Thread(target=one) for _ in range(50)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            with open(f"{folder}/crowd-{uid}", "w") as f:
                json.dump(statuses, f)
        return work
    pids = [as_user(uid, fifty(uid)) for uid in range(5000, 5020)]
    for pid in pids:
        os.waitpid(pid, 0)
    total = collections.Counter()
    for uid in range(5000, 5020):
        with open(f"{folder}/crowd-{uid}") as f:
            total.update({int(k): v for k, v in json.load(f).items()})
    return total


def burst(path):
    """100 questions that nobody asked before, 25 at a time: how many are planned within sbatch's three seconds."""
    waiting, planned, lock = list(range(100)), [], threading.Lock()

    def one():
        while True:
            with lock:
                if not waiting:
                    return
                n = waiting.pop()
            end, status = time.time() + 3, 0
            while time.time() < end:
                try:
                    status, _, again = ask(path, "POST", f"/v1/plan?batch=64&seq=4096&name=b{n}", model(32 + n % 10, 24 + n // 10), text=True,
                                           timeout=max(0.05, end - time.time()))
                    if status not in (429, 503) or not again:
                        break
                except (OSError, http.client.HTTPException):
                    status = -1
                time.sleep(0.05)
            with lock:
                planned.append(status)
    threads = [threading.Thread(target=one) for _ in range(25)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return collections.Counter(planned)


def metric(path, name):
    _, text, _ = ask(path, "GET", "/metrics")
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith((name + " ", name + "{")))


def main():
    if os.getuid() != 0:
        print("1..0 # skipped: only root can be other users")
        return 77
    folder = tempfile.mkdtemp(prefix="toptd-crowd-")
    os.chmod(folder, 0o777)
    path = folder + "/s"
    with open(folder + "/log", "w") as log:
        server = subprocess.Popen([TOPTD, "--socket", path, "--state", folder + "/state", "--hw", "a100-80-dgx",
                                   "--log-level", "warning", "--share-answers", "yes"], stdout=log, stderr=log)
    while server.poll() is None and not os.path.exists(path):
        time.sleep(0.02)
    before = metric(path, "topt_searches_total")
    total = crowd(path, folder)
    ok(total[200] == 1000, "1,000 times the same cold question from 20 users: all are answered", total)
    searches = metric(path, "topt_searches_total") - before
    ok(searches == 1, f"{searches:.0f} search for all")
    planned = burst(path)
    ok(planned[200] >= 90, f"of 100 cold questions, 25 at a time, {planned[200]} are planned within 3 s", planned)
    bad = as_user(BAD, lambda: bad_user(path))
    time.sleep(3)
    began = time.time()
    good = as_user(GOOD, lambda: good_user(path, folder + "/good"))
    _, code = os.waitpid(good, 0)
    took = time.time() - began
    ok(code == 0, "who submits comes to an end")
    with open(folder + "/good") as f:
        results = json.load(f)
    statuses = collections.Counter(status for status, _ in results)
    ok(statuses[200] == 200, "200 submissions beside one who takes all are planned", statuses)
    times = sorted(seconds for _, seconds in results)
    print(f"# a submission took {times[100] * 1000:.0f} ms in the middle, {times[197] * 1000:.0f} ms at the 99th percentile, "
          f"{times[-1] * 1000:.0f} ms at most; {took:.0f} s for all")
    print(f"# connections {metric(path, 'topt_connections'):.0f}, running {metric(path, 'topt_searches_running'):.0f}, "
          f"waiting {metric(path, 'topt_queue_length'):.0f}, tasks {metric(path, 'topt_tasks'):.0f}")
    status, _, _ = ask(path, "GET", "/readyz")
    ok(status in (200, 503), "and the server is there")
    os.kill(bad, signal.SIGKILL)
    os.waitpid(bad, 0)
    server.terminate()
    try:
        code = server.wait(20)
    except subprocess.TimeoutExpired:
        code = "does not end"
        server.kill()
    ok(code == 0, "it ends well", code)
    return kit.finish()


sys.exit(main())
