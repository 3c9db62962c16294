#!/usr/bin/env python3
"""metrics_test.py SOURCES TOPTD-FAKE - what toptd tells Prometheus, and what is drawn and alerted on it.

/metrics is strict OpenMetrics, or the older text, as it is asked for; its numbers add up; its labels have few
values, whatever clients send.  Every metric, label and value that deploy/grafana and deploy/prometheus name is
there.  A parser of others (python3-prometheus-client) and promtool are asked too where they are installed.
"""

import collections
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import kit
from kit import ok

SOURCES, FAKE = sys.argv[1:3]
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
SAMPLE = re.compile(r'([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+|\+Inf|NaN)')
LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')


def ask(path, method, target, body="", accept="*/*"):
    """Status, type and text of one request on a connection of its own."""
    r, text = kit.ask(path, method, target, body.encode(), Accept=accept)
    return r.status, r.getheader("Content-Type") or "", text.decode()


def parse(text, openmetrics):
    """Families of an exposition: {name: (type, [(sample, labels, value)])}; ValueError where it is not strict."""
    families, name = {}, None
    if openmetrics:
        if not text.endswith("\n# EOF\n"):
            raise ValueError("it does not end with # EOF")
        text = text[:-len("# EOF\n")]
    if not text.endswith("\n") or "\n\n" in text or "# EOF" in text:
        raise ValueError("a line is empty, without its end, or an early # EOF")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, said = line.split(" ", 3)[2:]
            if name in families or not said:
                raise ValueError(f"{name}: a second time, or without help")
            families[name] = [None, []]
        elif line.startswith("# TYPE "):
            if line.split()[2] != name or families[name][0]:
                raise ValueError(f"{line}: after {name}")
            families[name][0] = line.split()[3]
        else:
            m = SAMPLE.fullmatch(line)
            if not m or not name:
                raise ValueError(f"no sample: {line}")
            labels = dict(LABEL.findall(m[2] or ""))
            if ",".join(f'{k}="{v}"' for k, v in labels.items()) != (m[2] or ""):
                raise ValueError(f"labels: {line}")
            families[name][1].append((m[1], labels, float(m[3])))
    return families


SUFFIXES = {"counter": {"_total"}, "gauge": {""}, "info": {"_info"}, "histogram": {"_bucket", "_count", "_sum"}}


def check_samples(families, openmetrics):
    wrong = []
    for name, (kind, samples) in families.items():
        suffixes = SUFFIXES[kind] if openmetrics or kind == "histogram" else {""}
        wrong += [f"{name}: {s}" for s, _, _ in samples if s[:len(name)] != name or s[len(name):] not in suffixes]
        seen = [(s, tuple(sorted(labels.items()))) for s, labels, _ in samples]
        wrong += [f"{name}: twice {k}" for k, n in collections.Counter(seen).items() if n > 1]
        if kind != "histogram":
            continue
        series = collections.defaultdict(lambda: ([], {}))
        for s, labels, value in samples:
            rest = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
            if s.endswith("_bucket"):
                series[rest][0].append((float(labels["le"]), value))
            else:
                series[rest][1][s[len(name):]] = value
        for rest, (buckets, sums) in series.items():
            if buckets != sorted(buckets) or [v for _, v in buckets] != sorted(v for _, v in buckets):
                wrong.append(f"{name}{rest}: buckets do not grow")
            if buckets[0][0] != 0.001 or buckets[-2][0] != 600 or buckets[-1] != (float("inf"), sums["_count"]):
                wrong.append(f"{name}{rest}: buckets from 1 ms to 600 s, and all of the count")
    return wrong


def total(families, family, sample, **want):
    return sum(v for s, labels, v in families.get(family, [0, []])[1]
               if s == sample and all(labels.get(k) == x for k, x in want.items()))


# --- what is asked of Prometheus

def expressions():
    """Where an expression stands, and the expression."""
    board = json.load(open(SOURCES + "/deploy/grafana/topt.json"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield "grafana: " + panel["title"], target["expr"]
    rules = open(SOURCES + "/deploy/prometheus/topt-rules.yml").read()
    for alert, expr in re.findall(r"- alert: (\w+)\n +expr: (?:>\n)?((?:.|\n)*?)\n +(?:for|labels):", rules):
        yield "alert " + alert, expr


def check_expressions(families, sources):
    """Names, labels and values of labels that an expression has and /metrics does not."""
    there = collections.defaultdict(set)
    for _, samples in families.values():
        for s, labels, _ in samples:
            there[s] |= set(labels)
    words = set(re.findall(r'"([^"\n]*)"', sources))
    count = 0
    for where, expr in expressions():
        wrong = []
        for name, labels in re.findall(r"\b(topt_\w+)\b(?:\{([^}]*)\})?", expr):
            if name not in there:
                wrong.append(f"there is no {name}")
                continue
            for label, values in re.findall(r'(\w+)=~?"([^"]*)"', labels):
                if label in ("instance", "job"):
                    continue
                if label not in there[name]:
                    wrong.append(f"{name} has no label {label}")
                for value in values.split("|"):
                    known = value in words or (label == "route" and f'X({value.split()[0]}, "{value.split()[1]}"' in sources)
                    if not known:
                        wrong.append(f"{name}: {label} is never {value}")
            if name.endswith("_bucket") and "le" not in re.split(r"\W+", "".join(re.findall(r"by \(([^)]*)\)", expr))):
                wrong.append(f"{name} is summed without le")
        count += 1
        if wrong:
            ok(False, where, "\n".join(wrong))
    ok(count >= 15, f"{count} expressions of the board and the alerts name what there is")


def check_tools(text):
    try:
        from prometheus_client.openmetrics import parser
    except ImportError:
        ok(True, "read by others # SKIP python3-prometheus-client is not installed")
    else:
        try:
            names = {f.name for f in parser.text_string_to_metric_families(text)}
            ok("topt_request_seconds" in names, f"python3-prometheus-client reads {len(names)} families")
        except ValueError as e:
            ok(False, "python3-prometheus-client reads it", e)
    promtool = shutil.which("promtool")
    if not promtool:
        ok(True, "rules # SKIP promtool is not installed (package prometheus)")
        return
    rules = subprocess.run([promtool, "check", "rules", SOURCES + "/deploy/prometheus/topt-rules.yml"],
                           capture_output=True, text=True, check=False)
    ok(rules.returncode == 0, "promtool takes the rules", rules.stdout + rules.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump({"groups": [{"name": "board", "rules": [
            {"record": f"panel:{i}", "expr": expr.replace("$__rate_interval", "5m").replace("$instance", ".*")}
            for i, (_, expr) in enumerate(expressions())]}]}, file) # which is YAML
        file.flush()
        board = subprocess.run([promtool, "check", "rules", file.name], capture_output=True, text=True, check=False)
    ok(board.returncode == 0, "and the board's expressions", board.stdout + board.stderr)


def check_recipe(folder):
    """The units of deploy/prometheus: their port is forwarded to the socket, as a user of no role."""
    activate = shutil.which("systemd-socket-activate")
    lines = open(SOURCES + "/deploy/prometheus/topt-metrics.service").read().splitlines()
    start = [line.split("=", 1)[1] for line in lines if line.startswith("ExecStart=")][0]
    if os.geteuid() or not activate or not os.path.exists(start.split()[0]):
        ok(True, "Prometheus over the Unix socket # SKIP needs root and systemd-socket-proxyd")
        return
    path = folder + "/open"
    os.chmod(folder, 0o755)
    servers = [subprocess.Popen([FAKE, "--socket", path, "--state", folder + "/open-state", "--hw", "fake-hw", "--open-metrics", "yes",
                                 "--log-level", "error"])]
    while servers[0].poll() is None and not os.path.exists(path):
        time.sleep(0.02)
    os.chmod(path, 0o666)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    servers.append(subprocess.Popen([activate, "-l", f"127.0.0.1:{port}", *start.replace("/run/topt/toptd.sock", path).split()],
                                    user=65534, group=65534, extra_groups=[], stderr=subprocess.DEVNULL))
    got = {}
    for target in "/metrics", "/v1/plans":
        for _ in range(200):
            try:
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                c.request("GET", target, headers={"Accept": OPENMETRICS})
                r = c.getresponse()
                got[target] = r.status, r.read().decode()
                break
            except OSError:
                time.sleep(0.05)
    ok(got.get("/metrics", (0, ""))[0] == 200 and "topt_build_info" in got["/metrics"][1], "Prometheus' units give the metrics", got)
    ok(got.get("/v1/plans", (0, ""))[1].startswith('{"plans":[]'), "and nobody's plans", got.get("/v1/plans"))
    for s in reversed(servers):
        s.terminate()
        s.wait(20)


def main():
    folder = tempfile.mkdtemp(prefix="toptd-metrics-")
    path = folder + "/s"
    env = {k: v for k, v in os.environ.items() if not k.startswith("TOPT_")}
    with open(folder + "/log", "w") as log:
        server = subprocess.Popen([FAKE, "--socket", path, "--state", folder + "/state", "--hw", "fake-hw", "--workers",
                                   "1"], stdout=log, stderr=log, env=env)
    while server.poll() is None and not os.path.exists(path):
        time.sleep(0.02)
    asked = [("POST", "/v1/plan?batch=8", '{"fake_bytes":7}')] * 4
    asked += [("POST", "/v1/plan?wait_ms=20000&framework=topt", '{"fake_ms":60}'), ("POST", "/v1/plan?batch=x", "{}"),
              ("POST", "/v1/plan?memory_bytes=5", '{"fake_bytes":7}'), ("GET", "/v1/models", ""), ("GET", "/v1/models/m-0", ""),
              ("DELETE", "/v1/plan", ""), ("POST", "/v1/plan?wait_ms=10", '{"fake_ms":5000}'), ("POST", "/v1/plan", "{")]
    asked += [("GET", f"/nosuch/{i}\"\\n", "") for i in range(20)] + [(f"M{i}", "/v1/plan", "") for i in range(20)]
    statuses = collections.Counter(ask(path, *a)[0] // 100 for a in asked)
    status, kind, text = ask(path, "GET", "/metrics", accept=OPENMETRICS + ",*/*;q=0.1")
    ok(status == 200 and kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", f"asked for, {kind}")
    _, old_kind, old = ask(path, "GET", "/metrics")
    ok(old_kind.startswith("text/plain; version=0.0.4"), f"else {old_kind}")
    for what, body, openmetrics in (("OpenMetrics", text, True), ("the older text", old, False)):
        try:
            wrong = check_samples(parse(body, openmetrics), openmetrics)
        except ValueError as e:
            wrong = [e]
        ok(not wrong, f"{what} is strict", "\n".join(map(str, wrong)))
    families = parse(text, True)
    requests = total(families, "topt_requests", "topt_requests_total")
    ok(requests == len(asked), f"{requests:.0f} requests were counted", len(asked))
    ok(total(families, "topt_request_seconds", "topt_request_seconds_count") == requests, "and timed")
    ok(total(families, "topt_client_errors", "topt_client_errors_total") == statuses[4] ==
       total(families, "topt_refusals", "topt_refusals_total"), f"{statuses[4]} were refused, each with a reason")
    plan = {"family": "topt_request_seconds", "sample": "topt_request_seconds_count", "route": "POST /v1/plan"}
    for lane, outcome, least in (("submit", "ok", 1), ("warm", "ok", 1), ("search", "ok", 1), ("submit", "infeasible", 1),
                                 ("submit", "pending", 1), ("none", "refused", 2)):
        ok(total(families, lane=lane, outcome=outcome, **plan) >= least, f"a plan of lane {lane}: {outcome}")
    ok(total(families, "topt_search_seconds", "topt_search_seconds_count", lane="search", outcome="found") == 1 and
       total(families, "topt_search_seconds", "topt_search_seconds_sum", lane="search") >= 0.06, "a search was timed")
    ok(total(families, "topt_searches_running", "topt_searches_running") == 1, "one runs")
    ok(total(families, "topt_connections", "topt_connections") >= 1, "somebody is connected")
    ok(total(families, "topt_store_bytes", "topt_store_bytes") > 1000, "the store has a size")
    values = collections.defaultdict(set)
    for _, samples in families.values():
        for _, labels, _ in samples:
            for k, v in labels.items():
                values[k].add(v)
    ok(all(len(v) <= 32 for v in values.values()) and len(text) < 1 << 20,
       f"labels have few values: {', '.join(f'{k} {len(v)}' for k, v in sorted(values.items()))}")
    sources = "".join(open(f"{SOURCES}/daemon/api/{f}").read() for f in ("metrics.c", "metrics.h", "route_table.h", "admin.c"))
    check_expressions(families, sources)
    check_tools(text)
    server.terminate()
    ok(server.wait(60) == 0, "it ends well")
    check_recipe(folder)
    shutil.rmtree(folder)
    return kit.finish()


sys.exit(main())
