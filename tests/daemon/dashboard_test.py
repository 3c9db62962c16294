#!/usr/bin/env python3
"""dashboard_test.py SOURCES TOPTD TOPTD-FAKE - the dashboard in a headless Chromium.

It loads without a complaint of the console, through a tunnel and below a path of a site's proxy; every field of a
question has its place; a model is sent as a file and asked about with the keyboard alone; the answer, its points and
its refusals are shown, the link gives them again; several answers share a plot; a plan and its job script are saved; a phone's
width and the dark scheme hold.

TOPTD answers; TOPTD-FAKE takes as long as it is told, for what is shown while a search waits and runs.
"""

import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import kit
from browser import Browser
from kit import Unix, ok

SOURCES, TOPTD, FAKE = sys.argv[1:4]
CHROMIUM = shutil.which("chromium")
if not CHROMIUM:
    print("1..0 # skipped: chromium is not installed")
    sys.exit(77)
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 4096,
         "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
LARGE = {**LLAMA, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
         "vocab_size": 128256, "max_position_embeddings": 8192}
LONG = "a-fine-tuned-checkpoint-with-a-name-that-says-when-and-by-whom-it-was-trained-2026"
IDLE = "document.querySelector('#cancel').hidden && !/asking|searching|queued|reading/.test(document.querySelector('#note').textContent)"


class Server:
    """A toptd of its own, and a tunnel to its socket."""

    def __init__(self, folder, program, hw, *settings, **more):
        self.folder = tempfile.mkdtemp(dir=folder)
        os.chmod(self.folder, 0o755)
        self.socket = self.folder + "/s"
        self.log = open(self.folder + "/log", "w+")
        env = {k: v for k, v in os.environ.items() if not k.startswith("TOPT_")} | more
        self.processes = [subprocess.Popen([program, "--socket", self.socket, "--state", self.folder + "/state",
                                            "--hw", hw, *settings], stdout=self.log, stderr=self.log, env=env)]
        for _ in range(1000):
            if os.path.exists(self.socket) or self.processes[0].poll() is not None:
                break
            time.sleep(0.02)
        self.url = self.tunnel()

    def tunnel(self, **who):
        name = tempfile.mkdtemp(dir=self.folder)
        os.chmod(name, 0o777)
        program = shutil.copy(SOURCES + "/tests/slurm/forward.py", name)  # where another user can read it
        self.processes.append(subprocess.Popen(["/usr/bin/python3", program, self.socket, name + "/port"], **who))
        while not os.path.exists(name + "/port"):
            time.sleep(0.02)
        return f"http://localhost:{open(name + '/port').read().strip()}/"

    def ask(self, method, path, body=None):
        c = Unix(self.socket)
        c.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, r.headers, json.loads(text) if "json" in (r.headers.get("Content-Type") or "") else text

    def end(self):
        for p in reversed(self.processes):
            p.terminate()
            p.wait(60)
        self.log.close()
        return self.processes[0].returncode


class Proxy(http.server.BaseHTTPRequestHandler):
    """A site's: toptd below a path of its own."""
    protocol_version, below, path_to, quiet = "HTTP/1.1", "/site/topt", None, True

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.startswith(self.below + "/"):
            self.send_error(404)
            return
        c = Unix(Proxy.path_to)
        keep = {k: v for k, v in self.headers.items() if k in ("Host", "Origin", "Content-Type", "Accept")}
        c.request(self.command, self.path[len(self.below):], body, keep)
        r = c.getresponse()
        data = r.read()
        self.send_response(r.status)
        for k, v in r.getheaders():
            if k not in ("Date", "Connection", "Content-Length"):
                self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        c.close()

    do_GET = do_POST = do_DELETE = handle_any

    def log_message(self, *_):
        pass


def text(page, selector):
    return page.run(f"(document.querySelector({json.dumps(selector)}) || {{textContent: ''}}).textContent")


def settled(page, more="true"):
    return page.until(f"({IDLE}) && ({more})")


def check_files(server):
    for path, kind in ("/", "text/html"), ("/dashboard.js", "text/javascript"), ("/dashboard.css", "text/css"):
        status, headers, body = server.ask("GET", path)
        policy = headers.get("Content-Security-Policy", "")
        ok(status == 200 and headers["Content-Type"].startswith(kind) and "unsafe" not in policy and "default-src 'none'" in policy
           and "frame-ancestors 'none'" in policy, f"{path}: {kind} under a policy without unsafe-inline", headers)
        if path == "/":
            ok(not re.search(r"<script(?![^>]*src=)|<style| style=| on[a-z]+=", body), "the page has no script or style inside")
            ok(not re.search(r'(?:src|href)="(?:/|https?:)', body), "and names nothing but relatively")
        else:
            ok("max-age=" in headers["Cache-Control"], f"{path} may be kept for a while", headers["Cache-Control"])
            ok(not re.search(r"https?://(?!www\.w3\.org/2000/svg)|innerHTML|\beval\(", body), f"{path} takes nothing from elsewhere")


def check_form(server, page):
    page.open(server.url)
    ok(page.until("/hardware profile/.test(document.querySelector('#state').textContent)"), "the page has asked for its lists")
    names = set(server.ask("GET", "/openapi.json")[2]["components"]["schemas"]["Question"]["properties"])
    shown = set(page.run("[...document.querySelectorAll('#ask [name]')].map(e => e.name)"))
    ok(names - shown == {"model", "name", "wait_ms", "memory_bytes"}, f"each of the {len(names)} fields of a question has its place",
       names ^ shown)
    ok(page.run("!document.querySelector('#more').open && !!document.querySelector('#rest [name=\"epsilon\"]')"), "advanced ones are folded away")
    ok(page.run("[...document.querySelectorAll('#ask input, #ask select')].every(e => document.querySelector(`label[for=\"${e.id}\"]`))"), "and each has a label")


def check_keyboard(server, page, config):
    page.choose_file("#f-file", config)
    ok(settled(page, "/parameters. Press Ask/.test(document.querySelector('#note').textContent)"), "a model is sent as a file: " + text(page, "#note"))
    page.run("document.querySelector('[name=batch]').value = '8'; document.querySelector('[name=seq]').value = '64'; document.activeElement.blur()")
    seen, hidden = [], []
    for _ in range(60):
        page.key("Tab")
        at = page.run("(e => e.id || e.tagName)(document.activeElement)")
        seen.append(at)
        if page.run("getComputedStyle(document.activeElement).outlineStyle === 'none' || parseFloat(getComputedStyle(document.activeElement).outlineWidth) < 2"):
            hidden.append(at)
        if at == "go":
            break
    ok(seen[-1] == "go" and len(set(seen)) == len(seen), f"the keyboard reaches Ask in {len(seen)} steps", seen)
    ok(not hidden, "and shows where it is", hidden)
    page.key("Enter")
    ok(settled(page, "!!document.querySelector('#plan')"), "Enter asks")


def check_answer(server, page):
    model = page.run("document.querySelector('[name=model_id]').value")
    a = server.ask("POST", "/v1/plan", {"model_id": model, "batch": 8, "seq": 64, "hw": "lab-cpu"})[2]
    ok(text(page, "#plan") == a["plan_id"], "the answer is the one of REST: " + a["plan_id"], text(page, "#said"))
    said = text(page, "#said")
    for what, part in (("GPUs", f"{a['gpus']} GPU"), ("why", a["why"][1:]), ("strategy", a["strategy"][1:]), ("flags for Slurm", a["slurm"]["flags"]),
                       ("what was assumed", a["assumed"][0]["value"]), ("the margin", "% to +"), ("GPU-hours", "GPU-hours")):
        ok(part in said, f"it has {what}", said)
    ok(page.run("document.querySelectorAll('#said tbody tr').length") == len(a["alternatives"]), f"it has the {len(a['alternatives'])} choices")
    ok(page.run("!!document.querySelector('#curve .ideal') && [...document.querySelectorAll('#curve .name')].some(e => /knee/.test(e.textContent))"),
       "the curve has its ideal line, and the knee is marked")
    ok(page.run("location.hash").find("batch=8") > 0, "the link holds the question", page.run("location.hash"))
    return a


def check_point(page):
    page.run("document.querySelector('#curve [tabindex=\"0\"]').focus()")
    first = page.run("document.activeElement.dataset.gpus")
    page.key("ArrowRight")
    second = page.run("document.activeElement.dataset.gpus")
    ok(int(second) > int(first), f"an arrow key goes from {first} to {second} GPUs")
    page.key("Enter")
    ok(settled(page, "document.querySelectorAll('#detail svg .limit').length === 2"), "Enter shows memory and frontier, each with the GPU's limit", text(page, "#detail"))
    ok(f"point={second}" in page.run("location.hash"), "and the link has the point")
    ok(page.run("document.querySelectorAll('#detail .parts li').length") > 2, "memory is shown by component", text(page, "#detail"))
    page.key("Tab")
    ok(not page.run("document.activeElement.closest('svg')"), "Tab leaves the chart")


def check_link(browser, server, page, a):
    again = browser.page(1280, 900)
    again.open(server.url + page.run("location.hash"))
    ok(settled(again, "!!document.querySelector('#plan') && !!document.querySelector('#detail svg')"), "the link opened anew asks and picks the point")
    ok(text(again, "#plan") == a["plan_id"] and again.run("document.querySelector('[name=seq]').value") == "64", "it has the same answer, and the question in the form")
    return again


def check_correction(browser, server, page, a):
    """What a finished job measured stands beside the answer."""
    status, _, kept = server.ask("POST", "/v1/observations", {"job": 1, "plan_id": a["plan_id"], "step_ns": 2 * a["time_ns"]})
    again = browser.page(1280, 900)
    again.open(server.url + page.run("location.hash"))
    ok(status == 201 and settled(again, "!!document.querySelector('#measured')") and "1.122 times as predicted on 1 job of yours" in text(again, "#measured"),
       "what a job measured stands beside the answer", text(again, "#said"))


def check_refusals(server, page):
    base = re.sub("&point=.*", "", page.run("location.hash"))
    page.run(f"location.hash = '{base}&memory=2MiB'")
    ok(settled(page, "!!document.querySelector('#said .big.bad')"), "what does not fit is said, and by how much: " + text(page, "#why"))
    ok(page.run("!!document.querySelector('#curve .shade') && /nearest/.test(document.querySelector('#legend').textContent)"),
       "the curve is shaded, with the reason", text(page, "#legend"))
    page.run(f"location.hash = '{base}&memory=48MiB'")
    ok(settled(page, "!document.querySelector('#said .big.bad') && !!document.querySelector('#curve .shade') && !!document.querySelector('#plan')"),
       "where the first counts don't fit they are shaded: " + text(page, "#legend")[-160:])
    page.run(f"location.hash = '{base}&memory=80'")
    ok(page.until("!!document.querySelector('[data-name=memory] .error')"), "a wrong value is refused at its field: " + text(page, "[data-name=memory] .error"))
    ok(page.run("document.activeElement.name === 'memory' && document.activeElement.getAttribute('aria-invalid') === 'true'"), "which has the focus")
    page.run(f"location.hash = '{base}&train=nosuch'")
    ok(page.until("/nosuch/.test((document.querySelector('[data-name=model_id] .error') || {}).textContent)"),
       "what the model does not have, at the model: " + text(page, "[data-name=model_id] .error"))
    page.run(f"location.hash = '{base}&epsilon=2'")
    ok(page.until("document.querySelector('#more').open && !!document.querySelector('[data-name=epsilon] .error')"), "one that was folded away is unfolded")
    page.run(f"location.hash = '{base}&gpus=2'")
    ok(settled(page, "!!document.querySelector('#plan') && !!document.querySelector('#beside table')"), "beside an answer for a number of GPUs stand the choices")


CONTRAST = """(() => {
  const parse = c => c.match(/[0-9.]+/g).map(Number), linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const under = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length && !e.closest('.stale') && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => { const s = getComputedStyle(e), t = parse(e.closest('svg') ? s.fill : s.color), [a, b] = [light(t), light(under(e.closest('svg') ? e.closest('svg') : e))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), e.tagName + ' ' + e.textContent.slice(0, 30)]; }).filter(x => x[0] < 4.5).map(x => x.join(' '));
})()"""


MOVED = """var moved = 0, movers = [];
new PerformanceObserver(list => {
  for (const e of list.getEntries()) if (!e.hadRecentInput) { moved += e.value; movers.push(e.value + ' ' + e.sources.map(s => s.node && (s.node.id || s.node.nodeName + s.node.className))); }
}).observe({ type: 'layout-shift', buffered: true });"""


def check_widths(browser, server, page):
    hash_ = re.sub("&(point|gpus)=.*", "", page.run("location.hash")) + "&memory=48MiB&point=2"
    for width, scheme in (360, "dark"), (360, "light"), (1280, "dark"):
        narrow = browser.page(width, 800, scheme)
        narrow.send("Page.addScriptToEvaluateOnNewDocument", source=MOVED)
        narrow.open(server.url + hash_)
        name = f"{width} px, {scheme}"
        ok(settled(narrow, "!!document.querySelector('#detail svg')"), f"{name}: answered")
        ok(narrow.run("document.documentElement.scrollWidth <= innerWidth"), f"{name}: nothing to scroll sideways", narrow.run(
            "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest('.scroll')).map(e => e.tagName + e.id + e.className)"))
        ground = [int(x) for x in re.findall(r"\d+", narrow.run("getComputedStyle(document.body).backgroundColor"))[:3]]
        ok((max(ground) < 60) == (scheme == "dark"), f"{name}: the ground is {ground}")
        pale = narrow.run(CONTRAST)
        ok(not pale, f"{name}: all text stands out from its ground, 4.5 to 1", pale)
        size = narrow.run("(s => 12 * s.clientWidth / s.viewBox.baseVal.width)(document.querySelector('#curve svg'))")
        ok(size > 11, f"{name}: letters of the chart are {size:.1f} px")
        moved = narrow.run("moved")
        ok(moved < 0.1, f"{name}: nothing jumps as answers come (layout shift {moved:.3f})", narrow.run("movers.join('; ')"))
        ok(not narrow.complaints(), f"{name}: the console has no complaint", narrow.complaints())
        if os.environ.get("DASHBOARD_PICTURES"):
            narrow.picture(f"{os.environ['DASHBOARD_PICTURES']}/{width}-{scheme}.png")


def check_proxy(browser, server, hash_):
    Proxy.path_to = server.socket
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    page = browser.page(1280, 900)
    page.open(f"http://localhost:{proxy.server_port}{Proxy.below}/{hash_}")
    ok(settled(page, "!!document.querySelector('#plan')"), "below a path of a site's proxy it answers, too", text(page, "#state") + text(page, "#note"))
    ok(not page.complaints(), "without a complaint", page.complaints())
    proxy.shutdown()


def check_roles(browser, server, hash_):
    if os.geteuid() != 0:
        ok(True, "a plain user # SKIP only root can become another user")
        return
    os.chmod(server.socket, 0o666)
    before = refusals(server)
    url = server.tunnel(user=65534, group=65534, extra_groups=[])
    page = browser.page(1280, 900)
    page.open(url)
    ok(page.until("/hardware profile/.test(document.querySelector('#state').textContent)"), "a plain user gets the page: " + text(page, "#state"))
    page.until("!document.querySelector('#queue').hidden", 3)
    ok(page.run("document.querySelector('#server').hidden"), "who is no operator sees no load of the server")
    ok(not page.complaints(), "and no complaint", page.complaints())
    ok(refusals(server) == before, "nor is a visit counted as a refusal", f"{before}, then {refusals(server)}")


def refusals(server):
    _, said = kit.ask(server.socket, "GET", "/metrics")
    return [line for line in said.decode().splitlines() if line.startswith("topt_refusals_total{") and 'role="user"' in line]


def check_stranger(browser, server, port):
    page = browser.page(1280, 900)
    page.open(f"http://127.0.0.1:{port}/")
    ok(page.until("/does not know who you are/.test(document.querySelector('#state').textContent)"), "who is not known is told how to come: " + text(page, "#state"))


def check_waiting(browser, server):
    slow = [server.ask("POST", "/v1/models?name=" + name, {"fake_ms": 60000, "fake_bytes": 100, "layers": i})[2]["id"] for i, name in enumerate(("a", "b"))]
    status, _, task = server.ask("POST", "/v1/plan", {"model_id": slow[0], "space": "full", "wait_ms": 100})
    ok(status == 202, "a long search runs", task)
    page = browser.page(1280, 900)
    page.open(f"{server.url}#model_id={slow[1]}&space=full")
    note = page.until("(t => /queued/.test(t) && t)(document.querySelector('#note').textContent)")
    ok(note and re.match(r"queued(, next in line| behind \d+), \d+ s", note), f"what waits says so: {note}")
    if page.until("!document.querySelector('#queue').hidden && document.querySelectorAll('#tasks tbody tr').length === 2", 20):
        ok(True, "the queue is shown: " + text(page, "#tasks"))
        page.run(f"document.querySelector('[aria-label=\"Cancel {task['task']}\"]').click()")
    else:
        ok(False, "the queue is shown", text(page, "#tasks"))
        server.ask("DELETE", "/v1/tasks/" + task["task"])
    note = page.until("(t => /^searching, .*8 GPU/.test(t) && t)(document.querySelector('#note').textContent)")
    ok(note and "8 GPUs on 1 node" in note, f"the first one canceled, the second is searched: {note}")
    ok(server.ask("GET", "/v1/tasks/" + task["task"])[2]["state"] == "canceled", "and the first has ended")
    page.run("document.querySelector('#cancel').click()")
    ok(page.until("document.querySelector('#note').textContent === 'Canceled.' && document.querySelector('#cancel').hidden"), "Cancel ends it")
    ok(page.until("/Nothing is being searched/.test(document.querySelector('#tasks').textContent)", 20), "and the queue is empty")
    ok(not page.complaints(), "no complaint", page.complaints())


OBSERVED = """(() => {
  const real = fetch, reply = body => new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json" } });
  window.fetch = async (path, options) => {
    if (path === "v1/observations")
      return reply({ observations: [{ job: 17, plan_id: "p-1", created: 1, steps: 60, step_ns: 104200000, peak_bytes: 1 << 26, predicted: { time_ns: 99600000, memory_bytes: 1 << 27 } }] });
    if (path !== "openapi.json") return real(path, options);
    const doc = await (await real(path, options)).json();
    doc.paths["/v1/observations"] = WHICH;
    return reply(doc);
  };
})()"""


def check_observations(browser, server):
    """Of a server with them and of one without, as its description says; the reports are the test's."""
    for which, there in ("{ get: {} }", True), ("undefined", False):
        page = browser.page(1280, 900)
        page.send("Page.addScriptToEvaluateOnNewDocument", source=OBSERVED.replace("WHICH", which))
        page.open(server.url)
        page.until("/hardware profile/.test(document.querySelector('#state').textContent) && document.querySelector('#server').hidden === false")
        seen = page.until("!document.querySelector('#jobs').hidden", 60 if there else 1)
        ok(bool(seen) == there, f"predicted against observed is {'shown' if there else 'absent, where the server has none'}")
        if there:
            said = text(page, "#observed")
            ok(all(part in said for part in ("17", "99.6 ms → 104 ms (+5 %)", "128 MiB → 64 MiB (−50 %)")), "with both and their difference", said)


# Sending a model takes a while.
SLOW = """(() => {
  const real = fetch, read = Blob.prototype.text;
  Blob.prototype.text = async function () { await new Promise(done => setTimeout(done, 1500)); return read.call(this); };
  window.fetch = async (path, options) => {
    if (options && options.method === "POST" && path.startsWith("v1/models")) await new Promise(done => setTimeout(done, 700));
    return real(path, options);
  };
})()"""


def check_file_at_once(browser, server, folder):
    """Whoever chooses a file and asks at once is answered for that file, and for no other model."""
    page = browser.page(1280, 900)
    page.send("Page.addScriptToEvaluateOnNewDocument", source=SLOW)
    page.open(server.url)
    page.until("/hardware profile/.test(document.querySelector('#state').textContent)")
    other = folder + "/another.json"
    with open(other, "w") as f:
        json.dump({**LLAMA, "num_hidden_layers": 3}, f)
    page.run("document.querySelector('[name=batch]').value = '8'; document.querySelector('[name=seq]').value = '64'")
    page.choose_file("#f-file", other)
    page.run("document.querySelector('#go').click()")
    ok(settled(page, "!!document.querySelector('#plan')") and "another (" in text(page, "#said"), "a file that is chosen is what is asked about, at once, too",
       text(page, "#said")[:200])
    broken = folder + "/broken.json"
    with open(broken, "w") as f:
        f.write("[")
    before = len(server.ask("GET", "/v1/plans")[2]["plans"])
    page.choose_file("#f-file", broken)
    page.run("document.querySelector('[name=seq]').value = '32'; document.querySelector('#go').click()")
    ok(page.until("/not JSON/.test((document.querySelector('[data-name=file] .error') || {}).textContent)"), "one that can't be read is refused at its field")
    time.sleep(1)
    ok(len(server.ask("GET", "/v1/plans")[2]["plans"]) == before and "seq=64" in page.run("location.hash"), "and no other model is asked about instead")
    page.run("document.querySelector('#go').click()")
    ok(page.until("/choose a model/i.test((document.querySelector('[data-name=model_id] .error') || {}).textContent)"), "asked again it wants a model")
    page.run("(e => { e.selectedIndex = 1; e.dispatchEvent(new Event('change')); })(document.querySelector('#f-model_id')); document.querySelector('#go').click()")
    ok(settled(page, "location.hash.includes('seq=32')"), "until one is chosen from the list")
    ok(not page.complaints(), "no complaint", page.complaints())


def large(server):
    """The id of a model that needs several GPUs, and has a long name."""
    return server.ask("POST", "/v1/models?name=" + LONG, LARGE)[2]["id"]


def asked(browser, server, width, question, scheme="light", script=None):
    page = browser.page(width, 900, scheme)
    if script:
        page.send("Page.addScriptToEvaluateOnNewDocument", source=script)
    page.open(f"{server.url}#{question}")
    ok(settled(page, "!!document.querySelector('#plan') && !!document.querySelector('#curve svg')"), f"answered: {text(page, '.big')}", text(page, "#note"))
    return page


def check_compare(browser, server, question):
    """Several answers are lines of one plot, each with its question in words; they can be removed, and the link has them."""
    page = asked(browser, server, 1280, question + "&batch=512")
    for name, value in ("batch", "2048"), ("framework", "megatron"), ("hw", "h100-80-dgx"):
        page.run("document.querySelector('#keep').click()")
        ok(page.run("document.querySelector('#keep').disabled"), "a curve is kept once")
        page.run(f"document.querySelector('[name={name}]').value = '{value}'; document.querySelector('#go').click()")
        ok(settled(page, f"location.hash.includes('{name}={value}')"), f"another {name} is asked for")
    rows = page.run("[...document.querySelectorAll('#compared tbody tr')].map(e => e.textContent)")
    words = [("2,048 × 8,192", "Megatron-LM", "h100-80-dgx"), ("512 × 8,192", "PyTorch", "a100-80-dgx"), ("2,048 × 8,192", "PyTorch", "a100-80-dgx"),
             ("2,048 × 8,192", "Megatron-LM", "a100-80-dgx")]
    ok(len(rows) == 4 and all(all(w in row for w in said) for row, said in zip(rows, words)), "the legend has the four questions in words", rows)
    lines = page.run("[...document.querySelectorAll('#curve .line')].map(e => getComputedStyle(e).stroke)")
    ok(len(lines) == len(set(lines)) == 4, "and the plot four lines, each of a colour of its own", lines)
    names = page.run("[...document.querySelectorAll('#curve .name')].map(e => e.textContent)")
    ok({"A", "B", "C"} <= set(names), "and a letter", names)
    again = asked(browser, server, 1280, page.run("location.hash")[1:])
    ok(settled(again, "document.querySelectorAll('#compared tbody tr').length === 4"), "the link has them all", text(again, "#compared"))
    again.run("document.querySelector('#compared [aria-label^=Remove]').click()")
    ok(again.run("document.querySelectorAll('#compared tbody tr').length === 3 && document.querySelectorAll('#curve .line').length === 3")
       and again.run("location.hash").count("compare=") == 2, "one can be removed")
    for p in page, again:
        ok(not p.complaints(), "no complaint", p.complaints())


def check_training(browser, server, question):
    """Days, GPU-hours and cost of a whole training, and which of several answers is the cheapest and which the soonest."""
    page = asked(browser, server, 1280, question + "&batch=512&tokens=1T&price=2.5")
    whole = page.run("[...document.querySelectorAll('#said .facts div')].filter(e => /whole training/.test(e.textContent)).map(e => e.textContent)")
    ok(len(whole) == 1 and re.search(r"[0-9.,]+ days, [0-9,]+ GPU-hours, cost [0-9,]+$", whole[0]), "the whole training", whole)
    heads = page.run("[...document.querySelectorAll('#said th')].map(e => e.textContent)")
    ok({"whole training", "its GPU-hours", "its cost"} <= set(heads), "is in the table of choices", heads)
    page.run("document.querySelector('#keep').click()")
    for name, value in ("hw", "h100-80-dgx"), ("price", "100"):
        page.run(f"document.querySelector('[name={name}]').value = '{value}'")
    page.run("document.querySelector('#go').click()")
    ok(settled(page, "location.hash.includes('hw=h100-80-dgx') && !!document.querySelector('#best')"), "another hardware is asked for, at another price")
    ok(text(page, "#best") == "Cheapest: A; soonest: now.", "one line says which is best: " + text(page, "#best"))
    ok(not page.complaints(), "no complaint", page.complaints())


def check_groups(browser, server, question):
    """Plans on several groups of unlike GPUs: a pipeline with each stage on one, and shares of the batch."""
    page = asked(browser, server, 1280, question + "&framework=megatron&pipeline=2&gpus=16")
    said, rows = text(page, "#said"), page.run("[...document.querySelectorAll('#said tbody tr')].map(e => e.textContent)")
    ok("16 GPUs of several groups" in said and len(rows) == 2 and sorted(r[7:11] for r in rows) == ["a100", "v100"], "a pipeline over two groups has a row a stage", said)
    ok("Parts of a heterogeneous job" in said and " : --nodes=1 --gpus-per-node=8" in said, "and the parts of a job in Slurm", said)
    ok(not page.complaints(), "no complaint", page.complaints())


# Distances of neighbouring marks of a kind, in pixels, and how far the line of perfect scaling is above each point.
MARKS = """(() => {
  const place = e => { const b = e.getBBox(); return b.x + b.width / 2; }, near = list => Math.min(...list.map(place).sort((x, y) => x - y).map((x, i, all) => i ? x - all[i - 1] : 99));
  return ['.pick .point', '.pick .not'].map(kind => near([...document.querySelectorAll('#curve ' + kind)]));
})()"""
ABOVE = """(() => {
  const ends = document.querySelector('#curve .ideal').getAttribute('d').match(/[0-9.]+/g).map(Number), [x0, y0, x1, y1] = ends;
  return [...document.querySelectorAll('#curve .pick .point')].map(e => e.cy.baseVal.value - (y0 + (y1 - y0) * (e.cx.baseVal.value - x0) / (x1 - x0)));
})()"""


def check_marks(browser, server, question):
    page = asked(browser, server, 1280, question + "&batch=16384&counts=any&max_gpus=1024")
    near = page.run(MARKS)
    ok(min(near) >= 9, f"of up to 1,024 GPUs no two marks lie on each other: at least {min(near):.1f} px apart", near)
    ok(page.run("document.querySelectorAll('#points tbody tr').length") > 500, "and the table has all numbers")
    above = page.run(ABOVE)
    ok(len(above) > 5 and min(above) > -1, "perfect scaling is nowhere below the curve", above)
    page.run("document.querySelector('#points').closest('details').open = true")
    hidden = page.run("(b => b && b.textContent)([...document.querySelectorAll('#points button')].find(b => !document.querySelector(`#curve [data-gpus=\"${b.textContent.replace(',', '')}\"]`)) || document.querySelector('#points button'))")
    page.run(f"[...document.querySelectorAll('#points button')].find(b => b.textContent === '{hidden}').click()")
    ok(settled(page, f"document.querySelector('#detail h3') && /^{hidden} GPU/.test(document.querySelector('#detail h3').textContent) && !!document.querySelector('#curve .picked')"),
       f"{hidden} GPUs can be chosen there, and then have a mark")


def check_downloads(browser, server, question, base, folder):
    page = asked(browser, server, 1280, question + "&batch=512")
    into = folder + "/saved"
    os.mkdir(into)
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=into)
    plan = text(page, "#plan")
    for words, name, begin in (("Download the plan", plan + ".json", '{"format":"topt-plan/1"'), ("Download the job script", plan + ".sh", "#!/bin/bash\n")):
        page.run(f"((b) => b && b.click())([...document.querySelectorAll('#said button')].find(b => b.textContent === '{words}'))")
        for _ in range(100):
            if os.path.exists(f"{into}/{name}"):
                break
            time.sleep(0.05)
        got = open(f"{into}/{name}").read() if os.path.exists(f"{into}/{name}") else ""
        ok(got.replace(" ", "").startswith(begin.replace(" ", "")), f"{words}: {len(got)} bytes", got[:100] or os.listdir(into))
    ok(not page.complaints(), "no complaint", page.complaints())
    small = re.search("model_id=[^&]*", base).group(0)
    page = asked(browser, server, 1280, small + "&hw=lab-cpu&batch=8&seq=64&mode=mini-time&gpus=2&space=canonical")
    page.run("((b) => b && b.click())([...document.querySelectorAll('#said button')].find(b => b.textContent === 'Download the job script'))")
    ok(page.until("/topt run/.test(document.querySelector('#said').textContent)", 10), "a plan that its framework can't obey has none, and that is said", text(page, "#said")[-300:])


def check_columns(browser, server, question):
    """Nothing is cut, whatever the window's width."""
    for width, scheme in (400, "dark"), (1100, "light"), (1280, "dark"):
        page = asked(browser, server, width, question + "&batch=512", scheme)
        page.run("document.querySelector('#keep') && document.querySelector('#keep').click(); document.querySelector('[name=batch]').value = '1024'; document.querySelector('#go').click()")
        settled(page, "location.hash.includes('batch=1024')")
        page.run("document.querySelector('#points').closest('details').open = true")
        cut = page.run("[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => `${e.id || e.textContent.slice(0, 20)}: ${e.scrollWidth} of ${e.clientWidth}`)")
        ok(cut == [], f"{width} px: no column is cut", cut)
        ok(page.run("document.documentElement.scrollWidth <= innerWidth"), f"{width} px: nothing to scroll sideways")
        over = page.run("""(() => { const W = document.querySelector('#curve svg').viewBox.baseVal.width, boxes = [...document.querySelectorAll('#curve text.name')].map(e => [e.getBBox(), e.textContent]);
          return boxes.flatMap(([a, s], i) => [...(a.x < 0 || a.x + a.width > W ? ['cut: ' + s] : []),
            ...boxes.slice(i + 1).filter(([b]) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height - 3 && b.y < a.y + a.height - 3).map(([, t]) => s + ' over ' + t)]); })()""")
        ok(over == [], f"{width} px: names in the chart are whole and apart", over)
        pale = page.run(CONTRAST)
        ok(not pale, f"{width} px: all text stands out from its ground", pale)


def check_run(browser, server, question):
    """A run that exists stands beside the plan."""
    page = asked(browser, server, 1280, question + "&batch=512&gpus=64&as_is=true&degrees=zero%3D3%2Cmbs%3D1%2Crecompute%3D1")
    ok(re.search(r"checkpointing.* It takes [0-9.,]+ s a step and [0-9.]+ GiB per GPU \((fits|tight)\)\. The plan is [0-9.]+ times as fast\.$", text(page, "#run")),
       "a run that exists: " + text(page, "#run"))
    ok(text(page, "label[for=f-as_is]") == "a run that exists", "which is a field of the form")


def check_words(browser, server, question):
    """What is refused is said in the words of the form."""
    page = asked(browser, server, 1280, question + "&batch=512")
    base = page.run("location.hash")
    page.run(f"location.hash = '{base}&min_efficiency=300'")
    ok(page.until("!!document.querySelector('[data-name=min_efficiency] .error')") and text(page, "[data-name=min_efficiency] .error") == "300 is too large; give 0 to 100 %.",
       "an efficiency in percent: " + text(page, "[data-name=min_efficiency] .error"))
    ok("%" in text(page, "label[for=f-min_efficiency]"), "as its label is: " + text(page, "label[for=f-min_efficiency]"))
    page.run(f"location.hash = '{base}&max_table_bytes=5'")
    said = page.until("(t => /costs/.test(t) && t)(document.querySelector('#note').textContent)")
    ok(said and "memory of the search" in said and "--" not in said and "_" not in said, f"others by their labels: {said}")
    page.run(f"location.hash = '{base}&sequence_parallel=on'")
    ok(page.until("/no sequence parallelism/.test((document.querySelector('[data-name=sequence_parallel] .error') || {}).textContent)"), "and at the field that they name")


WAITS = "document.querySelectorAll('#waits tbody tr').length"


def check_queue(browser, folder):
    """Slurm's queue is drawn: with names for operators, and of others' jobs without whose they are for who is none."""
    slurm = "--scontrol", f"{SOURCES}/tests/daemon/pretended_slurm.sh"
    server, down = Server(folder, TOPTD, "lab-cpu", *slurm), Server(folder, TOPTD, "lab-cpu", *slurm, SLURM_IS_DOWN="1")
    for width, scheme in (1280, "light"), (360, "dark"):
        page = browser.page(width, 800, scheme)
        page.open(server.url)
        ok(page.until(f"{WAITS} === 3"), f"{width} px: the jobs that wait are listed", text(page, "#waiting"))
        said = text(page, "#waiting")
        ok("4 of 8 GPUs are idle; 3 jobs wait" in said and "2 (ann)" in said and "8 → 4" in said and "when job 4 ends" in said,
           f"{width} px: with who waits for what, and what would help", said)
        ok(page.run("document.querySelectorAll('#spells .planned').length === 3 && document.querySelectorAll('#spells .asked').length === 3"), "each is drawn as planned and as asked")
        ok(page.run("(([a, b]) => a && b && b.x.baseVal.value > a.x.baseVal.value)([...document.querySelectorAll('#spells .planned')])"), "job 3 begins after job 2")
        ok(page.run("document.documentElement.scrollWidth <= innerWidth"), f"{width} px: nothing to scroll sideways")
        pale = page.run(CONTRAST)
        ok(not pale and not page.complaints(), f"{width} px: all text stands out from its ground, no complaint", pale + page.complaints())
        if os.environ.get("DASHBOARD_PICTURES"):
            page.picture(f"{os.environ['DASHBOARD_PICTURES']}/queue-{width}-{scheme}.png")
    page = browser.page(1280, 900)
    page.open(down.url)
    ok(page.until("/Slurm is down/.test(document.querySelector('#idle').textContent)"), "where Slurm is down that is said: " + text(page, "#idle"))
    if os.geteuid() == 0:
        os.chmod(server.socket, 0o666)
        page.open(server.tunnel(user=65534, group=65534, extra_groups=[]))
        ok(page.until(f"{WAITS} === 3"), "a plain user sees the queue")
        said = text(page, "#waiting")
        ok(not re.search(r"\bann\b|\broot\b", said) and "4 (nobody)" in said and said.count("of another user") >= 2, "without whose the jobs of others are", said)
    ok([s.end() for s in (server, down)] == [0, 0], "both servers end well")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    folder = tempfile.mkdtemp(prefix="toptd-dashboard-")
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/small-llama")
    config = folder + "/small-llama/config.json"
    with open(config, "w") as f:
        json.dump(LLAMA, f)
    port = free_port()
    real = Server(folder, TOPTD, "lab-cpu", "--listen", f"127.0.0.1:{port}", "--scontrol", "")
    fake = Server(folder, FAKE, "fake-hw", "--scontrol", "")
    try:
        with Browser(CHROMIUM) as browser:
            check_files(real)
            page = browser.page(1280, 900)
            check_form(real, page)
            check_keyboard(real, page, config)
            a = check_answer(real, page)
            check_point(page)
            if os.environ.get("DASHBOARD_PICTURES"):
                page.picture(f"{os.environ['DASHBOARD_PICTURES']}/1280-light.png")
            again = check_link(browser, real, page, a)
            check_refusals(real, again)
            check_widths(browser, real, page)
            check_proxy(browser, real, re.sub("&point=.*", "", page.run("location.hash")))
            check_roles(browser, real, page.run("location.hash"))
            check_stranger(browser, real, port)
            check_waiting(browser, fake)
            check_observations(browser, real)
            check_correction(browser, real, page, a)
            check_file_at_once(browser, real, folder)
            question = f"model_id={large(real)}&hw=a100-80-dgx&seq=8192"
            check_compare(browser, real, question)
            check_training(browser, real, question)
            check_marks(browser, real, question)
            check_groups(browser, real, f"model_id={a['model_id']}&hw=a100-v100&batch=16&seq=64")
            check_downloads(browser, real, question, page.run("location.hash"), folder)
            check_columns(browser, real, question)
            check_words(browser, real, question)
            check_run(browser, real, question)
            check_queue(browser, folder)
            for p in page, again:
                ok(not p.complaints(), "the console has no complaint", p.complaints())
            again.run("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = \"inline\"'}))")
            ok(again.until("document.title !== 'inline'", 2) and again.complaints(), "while a script inside of the page is refused, with a complaint")
    finally:
        status = [s.end() for s in (real, fake)]
        ok(status == [0, 0], "both servers end well", status)
        if kit.failed:
            print(re.sub("^", "# ", open(fake.folder + "/log").read()[-1500:], flags=re.M))
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(kit.finish())


main()
