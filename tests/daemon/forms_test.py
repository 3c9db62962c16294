#!/usr/bin/env python3
"""forms_test.py TOPTD-FAKE - the forms of replies, and what may be kept of them.

What is named by its content has an ETag, may be kept for ever, and is a 304 for who has it and may read it; long replies are
compressed for who takes that; curves have lines for spreadsheets; of an answer one may ask for members alone.  An answer
that was cut short by its deadline is not given again.  Documents can be given up.  A munged that hangs keeps nobody waiting
who does not need it."""
import gzip
import json
import os
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

FAKE = sys.argv[1]
STRANGER = 61077


class Server:
    def __init__(self, *settings):
        self.folder = tempfile.mkdtemp(prefix="toptd-forms-")
        os.chmod(self.folder, 0o755)
        self.socket, self.port_file = self.folder + "/s", self.folder + "/port"
        self.log = open(self.folder + "/log", "w+")
        env = {k: v for k, v in os.environ.items() if not k.startswith("TOPT_")}
        self.process = subprocess.Popen([FAKE, "--socket", self.socket, "--state", self.folder + "/state", "--hw", "fake-hw",
                                         "--listen", "127.0.0.1:0", "--port-file", self.port_file, *settings],
                                        stdout=self.log, stderr=self.log, env=env)
        for _ in range(1000):
            if os.path.exists(self.port_file) or self.process.poll() is not None:
                break
            time.sleep(0.02)

    def ask(self, method, target, body=None, **headers):
        r, data = kit.ask(self.socket, method, target, body, **headers)
        if r.getheader("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        is_json = "json" in (r.getheader("Content-Type") or "") and data
        return r, json.loads(data) if is_json else data.decode()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)
        return status


def status_for(uid, server, target, *more):
    """The status that another user is answered."""
    out = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "curl", "-s", "-o", "/dev/null", "-w",
                          "%{http_code}", "--unix-socket", server.socket, *more, "http://localhost" + target],
                         capture_output=True, text=True, check=False)
    return out.stdout


def check_tags(server):
    _, a = server.ask("POST", "/v1/plan?batch=8&mode=mini-parallelism", '{"fake_bytes":5000}')
    addresses = [f"/v1/plans/{a['plan_id']}", f"/v1/models/{a['model_id']}"]
    server.ask("POST", "/v1/hardware", '{"format":"topt-hw/1","name":"lab"}')
    _, listed = server.ask("GET", "/v1/hardware")
    addresses.append("/v1/hardware/" + [h["id"] for h in listed["hardware"] if h["name"] == "lab"][0])
    for address in addresses:
        r, doc = server.ask("GET", address)
        tag, cache = r.getheader("ETag"), r.getheader("Cache-Control")
        ok(r.status == 200 and tag and "immutable" in cache and "private" in cache, f"{address[:14]}... may be kept", (tag, cache))
        r, doc = server.ask("GET", address, If_None_Match=f'"x", W/{tag}')
        ok(r.status == 304 and doc == "" and r.getheader("ETag") == tag, "which who has it is told", (r.status, doc))
        r, doc = server.ask("GET", address, If_None_Match='"x"')
        ok(r.status == 200 and doc, "who has another is given it", r.status)
    r, _ = server.ask("GET", "/v1/hardware/lab")
    ok(not r.getheader("ETag"), "what is named by a name may change")
    r, _ = server.ask("GET", "/v1/plans")
    ok(not r.getheader("ETag") and r.getheader("Cache-Control") == "private, no-store", "so may a list")
    if os.getuid() == 0 and shutil.which("setpriv") and shutil.which("curl"):
        tag = a["plan_id"]
        ok(status_for(STRANGER, server, addresses[0], "-H", f'If-None-Match: "{tag}"') == "404",
           "who may not read it is not told that it is the same")
    return a


def check_gzip(server):
    r, plain = kit.ask(server.socket, "GET", "/openapi.json")
    ok(not r.getheader("Content-Encoding") and "Accept-Encoding" in r.getheader("Vary"), "a long reply, as it is")
    for value, is_packed in (("gzip", True), ("br, gzip;q=0.5", True), ("*", True), ("gzip;q=0", False), ("br", False), ("xgzip", False)):
        r, data = kit.ask(server.socket, "GET", "/openapi.json", Accept_Encoding=value)
        packed = r.getheader("Content-Encoding") == "gzip"
        ok(packed == is_packed and (gzip.decompress(data) if packed else data) == plain and (len(data) < len(plain)) == packed,
           f"Accept-Encoding: {value}", (packed, len(data), len(plain)))
    r, data = kit.ask(server.socket, "GET", "/livez", Accept_Encoding="gzip")
    ok(data == b"ok\n", "a short one is not worth it")


def check_csv(server, a):
    target = f"/v1/models/{a['model_id']}/curve?batch=8"
    r, text = server.ask("GET", target, Accept="text/csv")
    lines = text.split("\r\n")
    ok(r.status == 200 and r.getheader("Content-Type").startswith("text/csv") and lines[0].startswith("gpus,nodes,feasible,time_ns") and
       lines[1].startswith("1,,true,10,") and lines[2:] == [""], "a curve as lines", text)
    r, _ = server.ask("GET", target, Accept="application/json, text/csv")
    ok("json" in r.getheader("Content-Type"), "who would rather have JSON gets that")
    r, doc = server.ask("POST", "/v1/plan?batch=8&mode=mini-parallelism", '{"fake_bytes":5000}', Accept="text/csv")
    ok(r.status == 406 and doc["errors"][0]["error"] == "not_acceptable", "a plan has no such form", doc)


def check_fields(server):
    target, body = "/v1/plan?batch=8&mode=mini-parallelism", '{"fake_bytes":5000}'
    _, whole = server.ask("POST", target, body)
    r, doc = server.ask("POST", target + "&fields=gpus,strategy,nosuch", body)
    ok(r.status == 200 and doc == {"fields": "gpus,strategy,nosuch", "gpus": whole["gpus"], "strategy": whole["strategy"]},
       "members that are asked for", doc)
    _, doc = server.ask("POST", target + "&fields=plan", body)
    ok(doc["plan"] == whole["plan"] and len(doc) == 2, "the plan, too", doc)
    question = json.dumps({"model": {"fake_bytes": 5000}, "batch": 8, "mode": "mini-parallelism"})
    r, doc = server.ask("POST", "/v1/plan?fields=gpus", question, Content_Type="application/json")
    ok(r.status == 200 and doc["gpus"] == whole["gpus"] and len(doc) == 2, "of a question in JSON", doc)
    r, doc = server.ask("POST", "/v1/plan?wait_ms=10&fields=gpus&framework=topt&mode=mini-parallelism", '{"fake_ms":900}')
    ok(r.status == 202, "of one that takes longer", doc)
    r, doc = server.ask("GET", r.getheader("Location") + "?wait_ms=20000&fields=gpus,nodes")
    ok(doc["state"] == "done" and set(doc["result"]) == {"fields", "gpus", "nodes"}, "of its task", doc)
    for wrong in ("", "a,,b", "GPUS", "gpus,", "a" * 60, ",".join(["gpus"] * 50)):
        r, doc = server.ask("POST", target + "&fields=" + wrong, body)
        ok(r.status == 400 and doc["errors"][0]["source"] == "fields", f"no fields: '{wrong[:12]}'", doc)


def check_stopped(server):
    target, body = "/v1/plan?batch=8&framework=topt&mode=mini-parallelism&wait_ms=30000", '{"fake_ms":60000,"fake_bytes":1}'
    for turn in "a search that is cut short answers with the best so far", "and is searched again when it is asked again":
        began = time.monotonic()
        r, doc = server.ask("POST", target, body)
        ok(r.status == 200 and doc.get("stopped") is True and doc["plan_id"] and time.monotonic() - began > 0.5, turn, doc)
    r, plan = server.ask("GET", "/v1/plans/" + doc["plan_id"])
    ok(r.status == 200 and plan == doc["plan"], "its plan is kept", r.status)


def check_disown(server, a):
    for kind, name in (("plans", a["plan_id"]), ("models", a["model_id"])):
        statuses = [server.ask("DELETE", f"/v1/{kind}/{name}")[0].status for _ in range(2)]
        ok(statuses == [204, 404], f"of {kind} one can be given up, once", statuses)
    ok(server.ask("DELETE", "/v1/plans/" + a["model_id"])[0].status == 404, "under its own address")
    r, doc = server.ask("GET", "/metrics")
    ok('topt_refusals_total{reason="not_found",role="admin"}' in doc, "refusals are counted by who asked")


def check_order():
    """Of a user's searches the one that is expected to be cheapest goes first."""
    server = Server("--workers", "1")
    _, m = server.ask("POST", "/v1/models?name=m", '{"fake_ms":20000}')
    tasks = []
    for target in (f"framework=topt&space=full&gpus=2&model_id={m['id']}&mode=mini-time",
                   f"framework=topt&space=full&model_id={m['id']}&mode=mini-parallelism",
                   f"framework=topt&space=canonical&gpus=2&model_id={m['id']}&mode=mini-time"):
        r, doc = server.ask("POST", "/v1/plan?wait_ms=100&" + target)
        tasks.append(doc["task"])
    _, listed = server.ask("GET", "/v1/tasks")
    ahead = {t["task"]: (t["state"], t["ahead"]) for t in listed["tasks"]}
    ok([ahead[t] for t in tasks] == [("running", 0), ("queued", 1), ("queued", 0)], "a cheaper search overtakes a dearer one", ahead)
    for t in tasks:
        server.ask("DELETE", "/v1/tasks/" + t)
    server.end()


def hang(path, stop):
    """A munged that takes connections and never answers."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        os.chmod(path, 0o777)
        s.listen(64)
        s.settimeout(0.2)
        held = []
        while not stop.is_set():
            try:
                held.append(s.accept()[0])
            except TimeoutError:
                pass


def check_munged(folder):
    stop = threading.Event()
    thread = threading.Thread(target=hang, args=(folder + "/munged", stop))
    thread.start()
    server = Server("--auth", "munge", "--munge-socket", folder + "/munged")
    if server.process.poll() is not None:
        ok(True, "built without MUNGE: # skip")
    else:
        clients = []
        for _ in range(16):
            c = socket.create_connection(("127.0.0.1", int(open(server.port_file).read())))
            c.sendall(b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: MUNGE MUNGE:AwQFAAA:\r\n\r\n")
            clients.append(c)
        time.sleep(0.5)
        began = time.monotonic()
        r, _ = server.ask("GET", "/v1/models")
        took = time.monotonic() - began
        ok(r.status == 200 and took < 1, "while munged hangs, the Unix socket answers", f"{r.status} in {took:.1f} s")
        r, _ = server.ask("POST", "/v1/plan?mode=mini-parallelism", '{"fake_bytes":4}')
        ok(r.status == 200, "questions, too", r.status)
        for c in clients:
            c.close()
    server.process.kill()
    server.end()
    stop.set()
    thread.join()


def main():
    folder = tempfile.mkdtemp(prefix="toptd-forms-")
    server = Server("--search-limit", "1")
    try:
        a = check_tags(server)
        check_gzip(server)
        check_csv(server, a)
        check_fields(server)
        check_stopped(server)
        check_disown(server, a)
        ok(server.end() == 0, "it ends well")
        check_order()
        check_munged(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return kit.finish()


sys.exit(main())
