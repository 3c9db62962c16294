#!/usr/bin/env python3
"""openapi_test.py SOURCES TOPTD TOPTD-FAKE - the description of the API is true.

It is valid (by the OpenAPI Initiative's schema, and by openapi-spec-validator where that is installed),
describes the routes that are served and no others, and every operation and every field in it is asked for:
each field with good values of its schema, which are taken, and with wrong ones, which are refused with 400 and
the field's name; every reply has a status, a type and a body as described.

TOPTD knows what words mean; TOPTD-FAKE, whose planner does as the model says, takes any number.
"""

import http.client
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

import kit
from kit import Unix, ok

try:
    import jsonschema
except ImportError:
    print("1..0 # skipped: python3-jsonschema is not installed")
    sys.exit(77)

SOURCES, TOPTD, FAKE = sys.argv[1:4]
SCHEMA = "/usr/share/openapi-specification/schemas/v3.0/schema.json"
METHODS = ("get", "post", "put", "delete")
QUESTIONS = {"plan": "/v1/plan", "curve": "/v1/models/{id}/curve", "frontier": "/v1/models/{id}/frontier"}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "intermediate_size": 256,
         "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512,
         "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
# Good values of text that is not one of a few words, and what else some values need.
SAMPLES = {"hw": ["lab-cpu"], "min_efficiency": ["80%", "0.8", "80"], "offload_fraction": ["0.8", "50%"],
           "offload": ["optimizer", "parameters", "activations", "core_attn,attn_proj"],  # no framework has all
           "train": ["all", "lora:4"], "algorithm": ["ft", "data-parallel"],
           "pin": ["h0.qkv=b:1"], "groups": ["all", "one"], "degrees": ["mbs=1"], "gpus_per_node": [4, 8], "tokens": ["1.5T", 2000], "samples": ["300k", 2000], "currency": ["EUR"],
           "model_id": ["small", "model of the test"], "name": ["x/config.json", "é"], "fields": ["gpus", "feasible,points,plan"],
           # Of a job in Slurm, where no scontrol says what there is.
           "slurm_partition": ["gpu", "gpu,long"], "slurm_constraint": ["a&b"], "slurm_nodelist": ["n[1-3],gpu7"], "slurm_gpu_type": ["a100"],
           "slurm_time": ["1-12:00:00"], "slurm_mem": ["4G"], "slurm_mem_per_gpu": ["2000"], "slurm_account": ["x"],
           "slurm_qos": ["long"], "slurm_mem_per_cpu": ["500"], "slurm_reservation": ["course"], "slurm_exclusive": ["exclusive"]}
NEEDS = {("mode", "mini-time"): {"gpus": 2}, ("blocks", "free"): {"factors": "zero"}, ("counts", "nodes"): {"max_gpus": 8},
         ("sequence_parallel", "on"): {"framework": "megatron"}, ("loss_kernel", "in-place"): {"framework": "megatron"}}
NEEDS |= {("schedule", name): {"framework": "torchtitan"} for name in ("gpipe", "zb-h1", "interleaved-zb", "zbv", "dualpipev")}
NEEDS |= {("offload_fraction", text): {"framework": "megatron", "offload": "optimizer"} for text in ("0.8", "50%")}
NEEDS[("offload", "optimizer")] = {"framework": "deepspeed"}
NEEDS[("offload", "core_attn,attn_proj")] = {"framework": "megatron"}
NEEDS |= {("schedule", name): {"framework": "megatron"} for name in ("combined-1f1b", "combined-dualpipev")}
# Good values that the models of the test are no models for: what the refusal says.
NO_MODEL = {("schedule", name): "and the model has none" for name in ("combined-1f1b", "combined-dualpipev")}
NO_MODEL[("offload", "core_attn,attn_proj")] = "the model has no such part"
BESIDE = {"price": {"samples": 1000}, "as_is": {"mode": "mini-time", "gpus": 2, "degrees": "mbs=1"}}  # of any value


class Reply:
    def __init__(self, r):
        self.status, self.headers, body = r.status, r.headers, r.read()
        self.type = (r.headers.get("Content-Type") or "").split(";")[0]
        self.text = body.decode()
        self.json = json.loads(self.text) if self.type == "application/json" else None

    def source(self):
        return self.json["errors"][0].get("source") if self.json and "errors" in self.json else None


class Server:
    """A toptd of its own; its replies are held against the description."""

    def __init__(self, program, hw, *settings):
        self.folder = tempfile.mkdtemp(prefix="toptd-openapi-")
        self.socket = self.folder + "/s"
        self.log = open(self.folder + "/log", "w")
        env = {k: v for k, v in os.environ.items() if not k.startswith("TOPT_")}
        self.process = subprocess.Popen(
            [program, "--socket", self.socket, "--state", self.folder + "/state", "--hw", hw,
             "--max-table-bytes", str(1 << 61), *settings],
            stdout=self.log, stderr=self.log, env=env)
        self.doc = self.connection = None
        for _ in range(500):
            if self.process.poll() is not None or os.path.exists(self.socket):
                break
            time.sleep(0.02)
        self.doc = self.ask("GET", "/openapi.json").json
        self.seen, self.taken = set(), set()  # operations with a status, with a parameter
        self.wrong = []

    def end(self):
        self.process.terminate()
        status = self.process.wait(60)
        self.log.close()
        if status:
            sys.stdout.write(open(self.folder + "/log").read())
        shutil.rmtree(self.folder)
        return status

    def ask(self, method, path, body=None, **headers):
        """A request as it is; a body that is no text goes as JSON."""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
            headers.setdefault("Content_Type", "application/json")
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        for again in (True, False):
            try:
                self.connection = self.connection or Unix(self.socket)
                self.connection.request(method, path, body, headers)
                r = Reply(self.connection.getresponse())
                break
            except (http.client.HTTPException, ConnectionError):
                self.connection = None
                if not again:
                    raise
        if self.doc:
            self.hold(method, path, r)
        return r

    def route(self, path):
        path = path.split("?")[0]
        for known in self.doc["paths"]:
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path):
                return known
        return None

    def hold(self, method, path, r):
        """Is the reply one that the description has?"""
        operation = self.doc["paths"].get(self.route(path), {}).get(method.lower())
        if not operation:
            return
        told = operation["responses"].get(str(r.status))
        if told is None:
            self.wrong.append(f"{method} {path}: status {r.status} is not described: {r.text[:200]}")
            return
        told = follow(self.doc, told)
        if r.status < 300:
            self.taken |= {(operation["operationId"], k) for k, _ in urllib.parse.parse_qsl(path.partition("?")[2])}
        if r.status in (204, 304):
            self.seen.add((operation["operationId"], r.status))
            return
        media = told.get("content", {}).get(r.type)
        if media is None:
            self.wrong.append(f"{method} {path}: {r.status} has no {r.type}")
        elif r.json is not None:
            for e in jsonschema.Draft4Validator(media["schema"], resolver=resolver(self.doc)).iter_errors(r.json):
                where = ".".join(map(str, e.absolute_path))
                self.wrong.append(f"{method} {path}: {r.status}: {where}: {e.message[:300]}")
        if "Location" in told.get("headers", {}) and not r.headers.get("Location"):
            self.wrong.append(f"{method} {path}: {r.status} has no Location")
        self.seen.add((operation["operationId"], r.status))


def follow(doc, node):
    while "$ref" in node:
        part = doc
        for name in node["$ref"][2:].split("/"):
            part = part[name]
        node = part
    return node


RESOLVERS = {}


def resolver(doc):
    """One for each description, since making one takes longer than holding a reply against it."""
    if id(doc) not in RESOLVERS:
        RESOLVERS[id(doc)] = (jsonschema.RefResolver("", doc), doc)  # which keeps the id
    return RESOLVERS[id(doc)][0]


def plain(node):
    """OpenAPI 3.0 says "nullable" where JSON Schema has a type more."""
    if isinstance(node, list):
        return [plain(x) for x in node]
    if not isinstance(node, dict):
        return node
    node = {k: plain(v) for k, v in node.items()}
    if node.pop("nullable", False) is True:
        node["type"] = [node["type"], "null"]
    return node


# --- the document itself

def check_document(doc, path):
    if os.path.exists(SCHEMA):
        errors = list(jsonschema.Draft4Validator(json.load(open(SCHEMA))).iter_errors(doc))
        ok(not errors, "the description is valid by the OpenAPI Initiative's schema", errors[:3])
    else:
        ok(True, f"valid # SKIP {SCHEMA} is missing (package openapi-specification)")
    checker = subprocess.run(["python3", "-m", "openapi_spec_validator", path], capture_output=True, text=True,
                             check=False)
    if "No module named" in checker.stderr:
        ok(True, "valid # SKIP openapi-spec-validator is not installed")
    else:
        ok(checker.returncode == 0, "and by openapi-spec-validator", checker.stdout + checker.stderr)
    served = set(re.findall(r'X\((\w+), "([^"]+)"', open(SOURCES + "/daemon/api/route_table.h").read()))
    described = {(m.upper(), p) for p, ms in doc["paths"].items() for m in ms if m in METHODS}
    ok(served == described, f"it describes the {len(served)} routes that are served", served ^ described)
    template = json.load(open(SOURCES + "/daemon/page/openapi.template.json"))
    for method, path in sorted({(m.upper(), p) for p, ms in template["paths"].items() for m in ms} - served):
        print(f"# not served yet: {method} {path}")


def check_methods(server):
    """A path takes the methods that it is described with, and says so of others."""
    for path, methods in server.doc["paths"].items():
        at = re.sub(r"\{\w+\}", "x", path)
        takes = sorted(m.upper() for m in methods if m in METHODS)
        bad = []
        for method in METHODS:
            r = server.ask(method.upper(), at + "?colour=red", *([{}] if method in ("post", "put") else []))
            if (r.status == 405) != (method not in methods):
                bad.append((method, r.status))
            if r.status == 405 and sorted(set(r.headers["Allow"].split(", ")) - {"HEAD"}) != takes:
                bad.append((method, r.headers["Allow"]))
            if r.status == 404 and r.json["errors"][0]["description"] == "no such resource":
                bad.append((method, r.status))
        ok(not bad, f"{path} takes {' and '.join(takes)}", bad)


# --- fields

def good(name, schema):
    """Values that a field's schema lets through."""
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        return list(itertools.chain.from_iterable(good(name, k) for k in kinds))
    if "enum" in schema:
        return schema["enum"]
    if schema["type"] == "boolean":
        return [True, False]
    if schema["type"] == "integer" and name in SAMPLES:
        return SAMPLES[name]
    if schema["type"] in ("integer", "number"):
        return [schema["minimum"], schema["maximum"]] + ([(schema["minimum"] + schema["maximum"]) / 2] if schema["type"] == "number" else [])
    if schema["type"] == "array":
        return [[1], [2]]
    if "x-words" in schema and name not in SAMPLES:
        return schema["x-words"] + [",".join(schema["x-words"])]
    if name not in SAMPLES:
        return ["2GiB"] if "pattern" in schema else None
    return SAMPLES[name]


def bad(schema, in_url):
    """Values of a wrong kind or out of range."""
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds and any(k["type"] == "array" for k in kinds):
        return ["4", [], [0], 0, 4.5, [1, "2"]]
    if kinds and any(k["type"] == "number" for k in kinds):
        gap = (kinds[0]["maximum"] + kinds[1]["minimum"]) / 2
        return ["most", -1, gap, 101, f"{gap}", "101%"] + ([] if in_url else [True, []])
    if kinds:
        return ["lots", 0, "1XB"] + ([] if in_url else [True, 0.5])
    if schema["type"] == "array":
        return ["x", "", "0", "1,,2"]
    if schema["type"] == "boolean":
        return ["maybe", 2]
    if schema["type"] in ("integer", "number"):
        some = [schema["minimum"] - 1, schema["maximum"] + 1]
        return some + (["x", ""] if in_url else ["1", True, []])
    some = ["x" * (schema.get("maxLength", 100) + 1), "a\nb"]
    return some + ([] if in_url else [5, [], {}])


def in_url(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def query(fields):
    return urllib.parse.urlencode({k: in_url(v) for k, v in fields.items()})


class Entrance:
    """A way to put a question: of an endpoint by its URL, or of a plan in JSON."""

    def __init__(self, server, endpoint, base, as_json=False):
        self.server, self.base, self.as_json = server, base, as_json
        self.path = QUESTIONS[endpoint].replace("{id}", "small")
        operation = server.doc["paths"][QUESTIONS[endpoint]]["get" if endpoint != "plan" else "post"]
        self.method = "POST" if endpoint == "plan" else "GET"
        if as_json:
            self.fields = dict(server.doc["components"]["schemas"]["Question"]["properties"])
            del self.fields["model"]
        else:
            parameters = [follow(server.doc, p) for p in operation["parameters"]]
            self.fields = {p["name"]: p["schema"] for p in parameters if p["in"] == "query"}
        self.text = f"{self.method} {QUESTIONS[endpoint]}{' in JSON' if as_json else ''}"

    def ask(self, name, value):
        asked = {**self.base, **NEEDS.get((name, str(value)), {}), **BESIDE.get(name, {}), name: value}
        if name == "memory_bytes":
            asked.pop("memory", None)
        if self.method == "POST" and name != "model_id":
            asked.setdefault("model_id", "small")
        if not self.as_json:
            return self.server.ask(self.method, f"{self.path}?{query(asked)}")
        return self.server.ask(self.method, self.path, asked)

    def check_good(self, words_only):
        wrong, count = [], 0
        for name, schema in self.fields.items():
            values = good(name, schema)
            if values is None:
                wrong.append(f"{name}: the test has no sample of it")
                continue
            if words_only and schema.get("type") in ("integer", "number"):
                values = [schema["minimum"]]
            if words_only and ("anyOf" in schema or "oneOf" in schema):
                values = values[-1:]
            for value in values:
                r = self.ask(name, value)
                count += 1
                other = isinstance(value, str) and NO_MODEL.get((name, value))
                if other and r.status == 400 and other in r.text:
                    continue
                if r.status not in (200, 202, 422) and not (r.status == 404 and name == "model_id"):
                    wrong.append(f"{name}={value!r}: {r.status} {r.text[:200]}")
        ok(not wrong, f"{self.text}: {count} good values of {len(self.fields)} fields are taken", "\n".join(wrong))

    def check_bad(self):
        wrong, count = [], 0
        for name, schema in self.fields.items():
            for value in bad(schema, not self.as_json):
                r = self.ask(name, value)
                count += 1
                if r.status != 400 or r.source() != name:
                    wrong.append(f"{name}={value!r}: {r.status} {r.text[:200]}")
        r = self.ask("colour", "red")
        if r.status != 400 or r.source() != "colour":
            wrong.append(f"colour: {r.status} {r.text[:200]}")
        ok(not wrong, f"{self.text}: {count} wrong ones are refused by name", "\n".join(wrong))

    def check_words(self):
        """No other word than those that are listed."""
        wrong, count = [], 0
        for name, schema in self.fields.items():
            if "enum" not in schema and "x-words" not in schema:
                continue
            r = self.ask(name, "nosuch")
            count += 1
            if r.status != 400 or r.source() != name:
                wrong.append(f"{name}=nosuch: {r.status} {r.text[:200]}")
            listed = re.search(r"\((?:[a-z, ]*: )?([^()]*)\)", r.json["errors"][0]["description"])
            for word in schema.get("enum", []):
                if listed and word not in re.split(r"[, ]+", listed.group(1)):
                    wrong.append(f"{name}: {word} is not in {listed.group(0)}")
            if listed and "enum" in schema and len(listed.group(1).split(", ")) != len(schema["enum"]):
                wrong.append(f"{name}: {listed.group(0)} are not those described")
        ok(not wrong, f"{self.text}: {count} fields know no other words", "\n".join(wrong))


def entrances(server, base, bound):
    yield Entrance(server, "plan", {**base, **bound})
    yield Entrance(server, "plan", {**base, **bound}, as_json=True)
    yield Entrance(server, "curve", {**base, **bound})
    yield Entrance(server, "frontier", {**base, "gpus": 2})


# --- operations

def exercise(server):
    """Every operation once with an answer; what is not described is found by Server.hold."""
    ask = server.ask
    ask("GET", "/"), ask("GET", "/livez"), ask("GET", "/readyz"), ask("GET", "/metrics"), ask("GET", "/openapi.json")
    ask("GET", "/metrics", Accept="application/openmetrics-text")
    profile = ask("GET", "/v1/hardware/lab-cpu").json
    ask("GET", "/v1/hardware")
    ask("GET", "/v1/hardware/nosuch")
    for name in ("mine", "mine", "lab-cpu", "a/b"):
        ask("POST", "/v1/hardware", {**profile, "name": name})
    for name, body in (("mine", "mine"), ("new", "new"), ("mine", "other"), ("lab-cpu", "lab-cpu")):
        ask("PUT", "/v1/hardware/" + name, {**profile, "name": body})
    ask("PUT", "/v1/hardware/mine", {"format": "topt-hw/1", "strange": 1})
    ask("DELETE", "/v1/hardware/new"), ask("DELETE", "/v1/hardware/new"), ask("DELETE", "/v1/hardware/lab-cpu")
    ask("POST", "/v1/hardware", "{")
    ask("POST", "/v1/hardware", {"format": "topt-hw/1", "strange": 1})
    r = ask("POST", "/v1/models?name=small", json.dumps(LLAMA))
    ask("POST", "/v1/models?name=small", json.dumps(LLAMA))
    ask("POST", "/v1/models", {"model_type": "nosuch"})
    ask("POST", "/v1/models", "[1]", Content_Type="multipart/form-data; boundary=x")
    ask("POST", "/v1/models?name=model%20of%20the%20test", json.dumps({**LLAMA, "vocab_size": 500}))
    ask("GET", "/v1/models?limit=1"), ask("GET", "/v1/models?before=m-0"), ask("GET", "/v1/plans?limit=1&before=p-0")
    ask("GET", "/v1/models"), ask("GET", "/v1/models/nosuch"), ask("GET", "/v1/models/" + r.json["id"])
    small = "batch=8&seq=32&hw=lab-cpu"
    model = r.json["id"]
    r = ask("POST", f"/v1/plan?{small}&name=small", json.dumps(LLAMA))
    plan = r.json["plan_id"]
    report = {"job": 17, "plan_id": plan, "step_ns": 1000000, "peak_bytes": 5 << 20, "steps": 100, "gpus": 1,
              "cluster": "lab"}
    kept = ask("POST", "/v1/observations", report)
    ok(kept.status == 201 and kept.json["predicted"]["time_ns"] > 0, "what a job measured is kept beside what was said",
       kept.json)
    ask("POST", "/v1/observations", {**report, "step_ns": 2000000})
    listed = ask("GET", f"/v1/observations?model={model}").json["observations"]
    ok([o["step_ns"] for o in listed if o["job"] == 17] == [2000000], "a job that reports again replaces what it said",
       listed)
    ask("GET", "/v1/observations?hw=h-0"), ask("GET", "/v1/observations?colour=red")
    for wrong, field in (({"job": 0}, "job"), ({"job": None}, "job"), ({"plan_id": "a/b"}, "plan_id"), ({"colour": 1}, "colour"),
                         ({"plan_id": "p-00000000000000000000000000000000"}, "plan_id"), ({"step_ns": -1}, "step_ns"),
                         ({"step_ns": 1 << 62}, "step_ns"), ({"peak_bytes": "many"}, "peak_bytes")):
        r2 = ask("POST", "/v1/observations", {**report, **wrong})
        ok(r2.status in (400, 404) and r2.source() == field, f"a report with {wrong} is refused", r2.json)
    r2 = ask("POST", "/v1/observations", {"job": 1, "plan_id": plan})
    ok(r2.status == 400 and r2.source() == "step_ns", "a report of nothing is refused", r2.json)
    corrections = ask("GET", "/v1/corrections").json["corrections"]
    ok([c["time"]["jobs"] for c in corrections if c["model_id"] == model] == [1], "what was measured corrects", corrections)
    r2 = ask("POST", f"/v1/plan?{small}&name=small", json.dumps(LLAMA))
    ok(r2.json["correction"]["time"]["of"] == "yours", "which answers say", r2.json.get("correction"))
    ask("POST", f"/v1/plan?{small}&memory=2MiB", json.dumps(LLAMA)), ask("GET", f"/v1/models/{model}/curve?{small}&max_gpus=2")
    hw = listed[0]["hw_id"]
    ask("DELETE", f"/v1/corrections/{model}/{hw}"), ask("DELETE", f"/v1/corrections/{model}/{hw}")
    ask("GET", "/v1/corrections?colour=red"), ask("DELETE", f"/v1/corrections/{model}/{hw}?colour=red")
    number = listed[0]["id"]
    ask("DELETE", f"/v1/observations/{number}"), ask("DELETE", f"/v1/observations/{number}")
    ask("DELETE", "/v1/observations/x")
    for kind, name in (("models", model), ("plans", plan)):
        for group in str(os.getgid()), "no-such-group":
            ask("PUT", f"/v1/{kind}/{name}/groups/{group}"), ask("DELETE", f"/v1/{kind}/{name}/groups/{group}")
        ask("DELETE", f"/v1/{kind}/{name}"), ask("DELETE", f"/v1/{kind}/{name}"), ask("DELETE", f"/v1/{kind}/x-0")
        ask("PUT", f"/v1/{kind}/x-0/groups/{os.getgid()}"), ask("DELETE", f"/v1/{kind}/x-0/groups/{os.getgid()}")
    ask("POST", f"/v1/plan?{small}&name=small", json.dumps(LLAMA), Accept="text/plain")
    ask("POST", f"/v1/plan?{small}&mode=profiling&name=small", json.dumps(LLAMA), Accept="text/plain")
    ask("POST", f"/v1/plan?{small}&mode=profiling&gpus=1,2&name=small", json.dumps(LLAMA))
    ask("POST", f"/v1/plan?{small}&memory=2MiB", json.dumps(LLAMA))
    ask("POST", f"/v1/plan?{small}&memory=2MiB", json.dumps(LLAMA), Accept="text/plain")
    ask("POST", f"/v1/plan?{small}", json.dumps(LLAMA), Content_Encoding="gzip")
    ask("POST", "/v1/plan?hw=nosuch", json.dumps(LLAMA))
    ask("POST", "/v1/plan", {"model": LLAMA, "batch": 8, "seq": 32})
    ask("GET", "/v1/plans"), ask("GET", "/v1/plans/" + r.json["plan_id"]), ask("GET", "/v1/plans/p-0")
    script = ask("GET", f"/v1/plans/{r.json['plan_id']}/launch")
    ok(script.status == 200 and script.text.startswith("#!/bin/bash\n") and "#SBATCH --nodes=1" in script.text, "a plan has a job script", script.text)
    free = ask("POST", f"/v1/plan?{small}&mode=mini-time&gpus=2&space=canonical&framework=pytorch&name=small", json.dumps(LLAMA))
    refused = ask("GET", f"/v1/plans/{free.json['plan_id']}/launch")
    ok(refused.status == 422 and "topt run" in refused.text, "one that its framework can't obey has none", refused.text)
    ask("GET", "/v1/plans/p-0/launch")
    staged = ask("POST", f"/v1/plan?{small}&mode=mini-time&gpus=2&framework=megatron&degrees=pp=2,tp=1,dp=1,mbs=1&name=staged", json.dumps(dict(LLAMA, num_hidden_layers=2)))
    drawn = ask("GET", f"/v1/plans/{staged.json['plan_id']}/schedule")
    ok(drawn.status == 200 and drawn.text.startswith("<svg") and drawn.text.count('class="lane"') == 3, "a plan with pipeline stages has its schedule drawn", drawn.text[:300])
    none = ask("GET", f"/v1/plans/{r.json['plan_id']}/schedule")
    ok(none.status == 422 and "no pipeline stages" in none.text, "one without has none", none.text)
    ask("GET", "/v1/plans/p-0/schedule")
    run = "torchrun --nproc_per_node 2 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 " \
        "--vocab-size 256 --micro-batch-size 1 --global-batch-size 8 --tensor-model-parallel-size 2\n"
    beside = ask("POST", "/v1/plan?hw=lab-cpu&as_is=true&name=run", run)
    ok(beside.status == 200 and beside.json["gpus"] == 2 and beside.json["as_is"]["uniform"]["tp"] == 2 and beside.json["time_ns"] <= beside.json["as_is"]["time_ns"],
       "a script that is sent as it is has the best plan beside it", beside.text[:500])
    ok("notes" not in beside.json["as_is"], "and no note where all is taken as it says", beside.text[:500])
    noted = run.strip() + " --exp-avg-dtype bf16\n"
    for again in "at first", "and kept":
        beside = ask("POST", "/v1/plan?hw=lab-cpu&as_is=true&name=run", noted)
        ok(beside.status == 200 and any("--exp-avg-dtype" in note for note in beside.json["as_is"]["notes"]),
           f"what is taken otherwise than the script says is noted, {again}", beside.text[:500])
    for layers in 3, 5:
        ask("POST", f"/v1/plan?{small}&name=twice", json.dumps(dict(LLAMA, num_hidden_layers=layers)))
    several = ask("POST", "/v1/plan?model_id=twice&hw=lab-cpu")
    ok(several.status == 404 and "several models have the name 'twice'; give the id of one" in several.text, "a name of several models asks for an id", several.text)
    quantized = ask("POST", f"/v1/plan?{small}&name=quantized", json.dumps(dict(LLAMA, quantization_config={"quant_method": "fp8"})))
    ok(quantized.status == 200 and "quantization_config is ignored" in quantized.json["job"]["note"], "what is not as in the model's file is noted", quantized.text[:500])
    none = ask("POST", "/v1/plan?hw=lab-cpu&as_is=true", json.dumps(LLAMA))
    ok(none.status == 400 and "no ds_config.json" in none.text, "a model alone is no run", none.text)
    for path in f"/v1/plans/{plan}", f"/v1/models/{model}", f"/v1/hardware/{hw}":
        tag = ask("GET", path).headers["ETag"]
        ok(tag is None or ask("GET", path, If_None_Match=tag).status == 304, f"{path[:14]}... is the same for who has it")
    ask("GET", f"/v1/models/small/curve?{small}&max_gpus=4", Accept="text/csv")
    ask("GET", f"/v1/models/small/frontier?{small}&gpus=2", Accept="text/csv")
    ask("POST", f"/v1/plan?{small}&name=small", json.dumps(LLAMA), Accept="text/csv")
    ask("POST", f"/v1/plan?{small}&mode=profiling&gpus=1,2&name=small", json.dumps(LLAMA), Accept="text/csv")
    ask("GET", f"/v1/models/small/curve?{small}&max_gpus=4"), ask("GET", "/v1/models/nosuch/curve")
    ask("GET", f"/v1/models/small/frontier?{small}&gpus=2"), ask("GET", f"/v1/models/small/frontier?{small}")


def exercise_queue(server):
    """Slurm's, of a pretended one."""
    ask = server.ask
    ask("GET", "/v1/queue?colour=red")
    for _ in range(100):
        r = ask("GET", "/v1/queue")
        if r.status != 202:
            break
        time.sleep(0.1)
    ok(r.status == 200 and [j["job"] for j in r.json["jobs"]] == [2, 3, 4], "GET /v1/queue has the jobs that wait", r.json)


def exercise_tasks(server):
    """Long searches, which the planner of the tests can do."""
    ask = server.ask
    r = ask("POST", "/v1/models?name=small", {"fake_bytes": 10})
    ask("POST", "/v1/models?name=model%20of%20the%20test", {"fake_bytes": 11})
    r = ask("POST", "/v1/plan?wait_ms=20", json.dumps({"fake_ms": 300, "fake_bytes": 1}))
    short = r.headers["Location"]
    ask("GET", short)
    ask("GET", short, Accept="text/plain")
    ask("GET", short, Accept="text/csv")
    ask("GET", short + "?wait_ms=20000&fields=gpus")
    ask("GET", short + "?wait_ms=20000"), ask("GET", short, Accept="text/csv"), ask("GET", short + "?fields=A")
    ask("GET", short, Accept="text/plain")
    r = ask("POST", "/v1/plan?wait_ms=20", json.dumps({"fake_ms": 60000}))
    ask("DELETE", r.headers["Location"]), ask("GET", r.headers["Location"])
    r = ask("POST", "/v1/plan?wait_ms=20&memory_bytes=5", json.dumps({"fake_ms": 200, "fake_bytes": 50}))
    ask("GET", r.headers["Location"] + "?wait_ms=20000")
    tasks = ask("GET", "/v1/tasks").json["tasks"]
    ok({t["task"] for t in tasks} >= {short.split("/")[-1], r.headers["Location"].split("/")[-1]} and
       {t["state"] for t in tasks} <= {"done", "canceled"}, f"GET /v1/tasks has {len(tasks)} tasks", tasks)
    ask("GET", "/v1/tasks?colour=red")
    ask("GET", "/v1/tasks/t-0"), ask("DELETE", "/v1/tasks/t-0")
    ask("GET", "/v1/tasks/t-0?colour=red"), ask("DELETE", "/v1/tasks/t-0?colour=red")
    waits = [follow(server.doc, p) for p in server.doc["paths"]["/v1/tasks/{id}"]["get"]["parameters"]]
    wait = [p["schema"] for p in waits if p["name"] == "wait_ms"][0]
    refused = [ask("GET", f"{short}?wait_ms={v}") for v in bad(wait, True)]
    ok(all(r.status == 400 and r.source() == "wait_ms" for r in refused), "GET /v1/tasks/{id}: wait_ms is a number")


def main():
    fake, real = Server(FAKE, "fake-hw"), Server(TOPTD, "lab-cpu")
    slurm = Server(TOPTD, "lab-cpu", "--scontrol", os.path.dirname(os.path.abspath(__file__)) + "/pretended_slurm.sh")
    path = real.folder + "/openapi.json"
    with open(path, "w") as file:
        json.dump(real.doc, file)
    check_document(real.doc, path)
    for server in fake, real, slurm:
        server.doc = plain(server.doc)
    exercise(real)
    exercise_queue(slurm)
    exercise_tasks(fake)
    check_methods(fake)
    SAMPLES["hw"] = ["fake-hw", "other-hw"]
    for entrance in entrances(fake, {"wait_ms": 20000}, {}):
        entrance.check_good(words_only=False)
        entrance.check_bad()
    SAMPLES["hw"] = ["lab-cpu", "a100-80-dgx"]
    for name in "fp8-delayed", "fp8-tensorwise", "fp8-rowwise", "fp8-blockwise", "mxfp8", "nvfp4":
        NEEDS["precision", name] = {"framework": "pytorch" if name == "fp8-rowwise" else "megatron",
                                    "hw": "h100-80-dgx" if name.startswith("fp8") else "b200-hgx"}
    BESIDE["fp8_params"] = {"precision": "fp8-tensorwise", "hw": "h100-80-dgx"}
    BESIDE["fp8_attention"] = {"precision": "fp8-tensorwise", "hw": "h100-80-dgx", "framework": "megatron"}
    BESIDE["fp8_activation"] = {"framework": "megatron"}
    BESIDE["tensor_overlap"] = BESIDE["mtp"] = {"framework": "megatron"}
    NEEDS["optimizer", "muon"] = NEEDS["optimizer", "adamw_bf16"] = NEEDS["gradients", "bf16"] = {"framework": "megatron"}
    job = {"batch": 8, "seq": 32, "wait_ms": 20000, "hw": "a100-80-dgx"}
    for entrance in entrances(real, job, {"max_gpus": 4}):
        entrance.check_good(words_only=True)
        entrance.check_words()
    operations = {o["operationId"] for ms in real.doc["paths"].values() for m, o in ms.items() if m in METHODS}
    answered = {name for name, status in fake.seen | real.seen | slurm.seen if status < 300}
    ok(operations == answered, f"each of {len(operations)} operations was asked for and answered",
       operations - answered)
    told = {(o["operationId"], p["name"]) for ms in real.doc["paths"].values() for m, o in ms.items() if m in METHODS
            for p in (follow(real.doc, p) for p in o.get("parameters", [])) if p["in"] == "query"}
    taken = fake.taken | real.taken
    ok(told <= taken, f"each of their {len(told)} parameters was taken", told - taken)
    wrong = fake.wrong + real.wrong + slurm.wrong
    ok(not wrong, "every reply has a status, a type and a body as described", "\n".join(wrong[:8]))
    statuses = [server.end() for server in (fake, real, slurm)]
    ok(statuses == [0, 0, 0], "the servers end well", statuses)
    return kit.finish()


sys.exit(main())
