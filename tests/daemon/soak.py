#!/usr/bin/env python3
"""soak.py TOPTD [HOURS [RATE]] - does a toptd that works for long keep its memory?

For HOURS (1) RATE requests a second (50), by a few clients: questions asked before and new ones, curves, lists, tasks,
reports of jobs, refusals, connections that are cut off.  The resident memory of toptd and of its workers, the files that it
has open and its threads are looked at every few seconds.  Caches, which are made small (--cache-bytes 32MiB), fill in the first half; from then on the mean of the last
quarter may be above that of the third by a fiftieth and 2 MiB.  Prints what was seen."""
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import kit
from kit import ok

TOPTD = sys.argv[1]
HOURS = float(sys.argv[2]) if len(sys.argv) > 2 else 1
RATE = float(sys.argv[3]) if len(sys.argv) > 3 else 50
CLIENTS = 4
statuses, lock = {}, threading.Lock()


def model(width):
    return json.dumps({"model_type": "llama", "hidden_size": 64 * width, "intermediate_size": 128 * width, "num_hidden_layers": 2,
                       "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1024, "max_position_embeddings": 256})


def turn(path, dice, known):
    """One request; its status."""
    kind = dice.random()
    if kind < 0.55: # asked before
        r, _ = kit.ask(path, "POST", f"/v1/plan?batch={dice.choice((8, 16, 32))}&seq=128&name=warm", model(dice.randrange(1, 9)))
    elif kind < 0.75: # new
        r, body = kit.ask(path, "POST", f"/v1/plan?batch=16&seq=128&name=cold&memory_bytes={dice.randrange(1 << 28, 1 << 30)}",
                          model(dice.randrange(1, 200)))
        if r.status == 200:
            a = json.loads(body)
            known.append((a["plan_id"], a["model_id"]))
            del known[:-50]
    elif kind < 0.80 and known:
        r, _ = kit.ask(path, "GET", f"/v1/models/{dice.choice(known)[1]}/curve?batch=16&seq=128&max_gpus=4", None, 60,
                       Accept_Encoding=dice.choice(("gzip", "identity")))
    elif kind < 0.85:
        r, _ = kit.ask(path, "GET", dice.choice(("/v1/plans", "/v1/models", "/v1/tasks", "/metrics", "/openapi.json", "/v1/observations",
                                                 "/v1/corrections")))
    elif kind < 0.90 and known:
        r, _ = kit.ask(path, "POST", "/v1/observations", json.dumps({"job": dice.randrange(1, 10000), "plan_id": dice.choice(known)[0],
                                                                     "step_ns": dice.randrange(1000, 10 ** 9)}))
    elif kind < 0.93 and known:
        r, _ = kit.ask(path, "GET", "/v1/plans/" + dice.choice(known)[0])
    elif kind < 0.95: # longer than who asks waits
        r, _ = kit.ask(path, "POST", "/v1/plan?wait_ms=0&framework=topt&space=full&batch=16&seq=128&gpus=4&mode=mini-time",
                       model(dice.randrange(1, 200)))
    elif kind < 0.97:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"[:dice.randrange(1, 70)])
        return "cut off"
    else:
        r, _ = kit.ask(path, *dice.choice((("GET", "/v1/plans/p-0"), ("POST", "/v1/plan?batch=x", "{}"), ("POST", "/v1/plan", "{"),
                                           ("PUT", "/v1/plan"), ("GET", "/nosuch"))))
    return r.status


def client(path, seed, until):
    dice, known = random.Random(seed), []
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            status = turn(path, dice, known)
        except OSError as e:
            status = type(e).__name__
        with lock:
            statuses[status] = statuses.get(status, 0) + 1
        time.sleep(max(0, CLIENTS / RATE - (time.monotonic() - began)))


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("VmRSS")) * 1024


def children(pid):
    return [int(p) for t in glob.glob(f"/proc/{pid}/task/*/children") for p in open(t).read().split()]


def look(pid):
    """Bytes of toptd, bytes of its workers, files, threads."""
    workers = children(pid)
    return (resident(pid), sum(resident(w) for w in workers), len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task")))


def main():
    folder = tempfile.mkdtemp(prefix="toptd-soak-")
    path = folder + "/s"
    with open(folder + "/log", "w") as log:
        process = subprocess.Popen([TOPTD, "--socket", path, "--state", folder + "/state", "--hw", "lab-cpu", "--log-level", "warning",
                                    "--search-limit", "20", "--cache-bytes", "32MiB"], stderr=log)
        while not os.path.exists(path):
            time.sleep(0.05)
        seconds = HOURS * 3600
        until, seen = time.monotonic() + seconds, []
        threads = [threading.Thread(target=client, args=(path, i, until)) for i in range(CLIENTS)]
        for t in threads:
            t.start()
        step = max(1, min(10, seconds / 200))
        while time.monotonic() < until:
            time.sleep(step)
            try:
                seen.append(look(process.pid))
            except FileNotFoundError: # a worker was started anew just now
                pass
            if len(seen) % 30 == 0:
                print(f"# {seen[-1][0] >> 20} MiB, workers {seen[-1][1] >> 20} MiB, {seen[-1][2]} files, {seen[-1][3]} threads, "
                      f"{sum(statuses.values())} requests", flush=True)
        for t in threads:
            t.join()
        process.send_signal(signal.SIGTERM)
        status = process.wait()
    quarter = len(seen) // 4
    mean = lambda rows, k: sum(r[k] for r in rows) / max(1, len(rows))
    print(f"# {seconds / 60:.0f} minutes, {sum(statuses.values())} requests: {statuses}")
    for k, name, slack in ((0, "memory of toptd", 2 << 20), (1, "memory of its workers", 16 << 20), (2, "open files", 8), (3, "threads", 1)):
        before, after = mean(seen[2 * quarter:3 * quarter], k), mean(seen[3 * quarter:], k)
        scale, unit = (1 << 20, " MiB") if k < 2 else (1, "")
        ok(after <= before * 1.02 + slack, f"{name}: {before / scale:.1f}{unit} in the third quarter, {after / scale:.1f}{unit} in the last")
    ok(not any(isinstance(s, int) and s >= 500 and s != 503 for s in statuses), "nothing failed", statuses)
    ok(status == 0, "it ends well", status)
    with open(folder + "/log") as log:
        print("".join("# " + line for line in log.readlines()[-20:]), end="")
    shutil.rmtree(folder)
    return kit.finish()


sys.exit(main())
