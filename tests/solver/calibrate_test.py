#!/usr/bin/env python3
"""calibrate_test.py TOPT [few] - topt calibrate: reports made by a profile whose factors are known give these back, reports
that are left out are predicted better, what reports can't tell is refused, and bad files are named.

few: not what further reports tell and do not tell, which is figures."""
import copy
import json
import os
import subprocess
import sys
import tempfile

TOPT = os.path.abspath(sys.argv[1])
count = failed = 0
LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 4, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": False}
GPT = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 4, "n_positions": 1024, "vocab_size": 50257}
# Model, GPUs, batch, sequence, degrees: steps of the network inside a node and between nodes, of products, of memory, of launches.
RUNS = [("llama", 8, 64, 4096, {"dp": 8, "zero": 3, "micro_batch": 1}), ("llama", 16, 128, 2048, {"dp": 16, "zero": 3, "micro_batch": 4}),
        ("llama", 64, 64, 1024, {"dp": 64, "zero": 3, "micro_batch": 1}), ("llama", 8, 8, 512, {"dp": 8, "zero": 3, "micro_batch": 1}),
        ("gpt", 1, 1, 64, {"micro_batch": 1}), ("gpt", 1, 64, 1024, {"micro_batch": 16}), ("gpt", 1, 4, 512, {"micro_batch": 4})]
FACTORS = {"compute": 0.85, "memory": 0.9, "node": 0.7, "cluster": 0.5, "launch": 1.5}


def ok(good, text, why=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {text}")
    if not good:
        print("# " + str(why)[:2000].replace("\n", "\n# "))


def topt(*words):
    return subprocess.run([TOPT, *words], capture_output=True, text=True, check=False)


def fit(hw, files):
    r = topt("calibrate", hw, *files, "--json")
    return json.loads(r.stdout) if r.returncode == 0 else ok(False, f"calibrate {hw}", r.stderr)


def scaled(hw, by):
    """The profile with other figures, each field by hand."""
    h = copy.deepcopy(hw)
    device = h["device"]
    pairs = lambda list_, f: [p.__setitem__(1, p[1] * f) for p in list_]
    for kind in "matmul", "attention":
        device["efficiency"][kind] *= by["compute"]
    for table in device.get("matmul_by_size", {}).values():
        pairs(table, by["compute"])
    for row in device.get("attention", []):
        pairs(row["points"], by["compute"])
    for row in device.get("products", []):
        row["share"] *= by["compute"]
    device["efficiency"]["memory"] = device["efficiency"].get("memory", 1) * by["memory"]
    device["efficiency"]["elementwise"] *= by["memory"]
    device["launch_ns"] *= by["launch"]
    for link in h["links"]:
        for key in "bytes_per_second", "device_bytes_per_second", "all_reduce_bytes_per_second":
            if key in link:
                link[key] *= by[link["level"]]
        for key in "by_group", "all_reduce_by_group":
            pairs(link.get(key, []), by[link["level"]])
    for curve in h["curves"]:
        for p in curve["points"]:
            p[1] = round(p[1] / by["cluster" if curve["nodes"] > 1 else "node"])
    return h


def write(name, doc):
    with open(name, "w") as f:
        json.dump(doc, f)
    return name


def measure(hw, noise=()):
    """Reports of the runs as this profile predicts them; each times 1 + its noise.

    One report alone is predicted in a tenth of the time, because it can tell one factor only."""
    docs = [{"format": "topt-measured/1", "model": f"{m}.json", "framework": "pytorch", "gpus": g, "batch": b, "seq": s, "uniform": u, "step_seconds": 1}
            for m, g, b, s, u in RUNS]
    files = [write(f"run{i}.json", d) for i, d in enumerate(docs)]
    for i, d in enumerate(docs):
        d["step_seconds"] = fit(hw, files[i:i + 1])["reports"][0]["before_ns"] / 1e9 * (1 + (noise[i % len(noise)] if noise else 0))
        write(f"run{i}.json", d)
    return files


def by_name(result):
    return {f["name"]: f for f in result["factors"]}


def check_recovered(hw):
    files = measure(write("true.json", scaled(hw, FACTORS)))
    r = fit("a100-80-dgx", files)
    got = by_name(r)
    ok(all(got[n]["fitted"] and abs(got[n]["value"] / v - 1) < 0.01 for n, v in FACTORS.items()), "known factors are found within 1 %", got)
    ok(r["error_before"] > 0.1 and r["error_after"] < 0.001, "and explain the steps", [r["error_before"], r["error_after"]])
    ok(r["left_out_after"] < r["left_out_before"] / 2 and r["better"], "steps that were left out are predicted better", r["left_out_after"])
    ok(got["allocator"]["value"] == 0.08 and "no report has max_memory_reserved" in got["allocator"]["why"] and "allocator_permille" not in r["profile"]["device"], "nothing is said of memory that was not measured")
    ok(all(f["least"] <= f["value"] + 1e-6 and f["most"] >= f["value"] - 1e-6 for f in r["factors"] if f["fitted"]), "each factor's range without a report is said", got)
    again = topt("calibrate", "a100-80-dgx", *files, "-o", "new.json")
    ok(again.returncode == 0 and os.path.exists("new.json") and "mean error" in again.stdout, "the profile is written", again.stderr)
    new = json.load(open("new.json"))
    ok("calibrated by topt calibrate to 7 measured steps: compute x 0.85" in new["device"]["source"] and
       all("calibrated by" in link["source"] for link in new["links"]), "whose sources say how", new["device"]["source"])
    ok(fit("new.json", files)["error_before"] < 0.001 and topt("hw", "check", "new.json").returncode == 0, "and which predicts them as it is")
    r = topt("calibrate", "a100-80-dgx", *files, "-o", "new.json")
    ok(r.returncode == 2 and "new.json is there already" in r.stderr, "a file that is there is left", r.stderr)
    ok(topt("calibrate", "a100-80-dgx", files[0], "-o", "new.json", "--force").returncode == 0, "unless it is forced")
    return files


def check_memory(hw):
    """The share of an allocator, from what it reserved: PyTorch's row has 80 thousandths."""
    runs, files = [RUNS[0], RUNS[1], RUNS[5]], []
    for i, (m, g, b, s, u) in enumerate(runs):
        d = {"format": "topt-measured/1", "model": f"{m}.json", "gpus": g, "batch": b, "seq": s, "uniform": u, "step_seconds": 1}
        hw["device"]["allocator_permille"] = 137
        r = topt("plan", f"{m}.json", "--hw", write("held.json", hw), "--batch", str(b), "--seq", str(s), "--gpus", str(g), "--json")
        plan = json.loads(r.stdout)["plan"]
        ok(plan["settings"]["allocator_permille"] == 137, "a profile's own share of the allocator is planned with", plan["settings"])
        del d["model"], d["gpus"], d["batch"], d["seq"], d["uniform"]
        files.append(write(f"held{i}.json", {**d, "plan": plan, "step_seconds": plan["predicted"]["time_ns"] / 1e9, "max_memory_reserved": plan["predicted"]["memory_bytes"]}))
    plain = [json.load(open(f)) for f in files]
    for f, d in zip(files, plain):
        d["plan"]["settings"]["allocator_permille"] = 80
        d["plan"].pop("id")
        write(f, d)
    r = fit("a100-80-dgx", files)
    got = by_name(r)["allocator"]
    ok(got["fitted"] and abs(got["value"] - 0.137) < 0.0015 and r["memory_after"] < 0.001 < r["memory_before"] and r["memory_left_out"] < r["memory_before"], "the share is found", r)
    ok(r["profile"]["device"]["allocator_permille"] == round(1000 * got["value"]), "and written")


def check_refused(hw):
    files = measure(write("true.json", scaled(hw, {**FACTORS, "memory": 1, "launch": 1})))
    r = fit("a100-80-dgx", files[:1])
    fitted = [f["name"] for f in r["factors"] if f["fitted"]]
    ok(fitted == ["compute"] and "left_out_after" not in r, "one report tells one factor", r["factors"])
    got = by_name(r)
    ok("can't tell it from compute" in got["node"]["why"] and "no step follows it by 5 %" in got["cluster"]["why"], "the others say why they are left alone", got)
    ok(got["cluster"]["value"] == got["node"]["value"] == 1, "and stay as they were")
    r = fit("a100-80-dgx", files[:2])
    ok(sum(f["fitted"] for f in r["factors"]) <= 2, "two reports tell at most two")
    r = topt("calibrate", "a100-80-dgx", files[0], "-o", "one.json")
    ok(r.returncode == 0 and "one report can't be left out" in r.stdout, "with one report nothing says how others are predicted", r.stderr)
    files = measure("a100-80-dgx", noise=(0.02, -0.02, 0.03))
    r = topt("calibrate", "a100-80-dgx", *files, "-o", "worse.json")
    ok(r.returncode == 3 and "not predicted better" in r.stderr and not os.path.exists("worse.json"), "what is noise alone is not written", r.stderr + r.stdout)
    files = measure(write("true.json", scaled(hw, {**FACTORS, "compute": 0.3, "memory": 0.3})))
    f = by_name(fit("a100-80-dgx", files))["compute"]
    ok(f["value"] >= f["low"] and "at its bound" in f.get("why", ""), "a factor stays within its bounds, and says so", f)


def check_bad(files):
    doc = json.load(open(files[0]))
    bad = [("format", "other/1", "'other/1' is no measurement"), ("colour", 1, "colour: unknown field"), ("step_seconds", 0, "step_seconds"),
           ("model", "nosuch.json", "nosuch.json"), ("gpus", 4, "dp x tp is 8, and gpus 4"), ("batch", 63, "no multiple of dp x micro_batch"),
           ("uniform", {"dp": 8, "level": 2, "micro_batch": 1}, "uniform.level: unknown field"), ("framework", "megatron", "Megatron-LM has no ZeRO-3"), ("framework", "torch", "torch"), ("plan", "p-17", "its plan p-17 is in none of the files")]
    for key, value, words in bad:
        r = topt("calibrate", "a100-80-dgx", write("bad.json", {**doc, key: value}))
        ok(r.returncode and r.stderr.startswith("topt calibrate: bad.json: ") and words in r.stderr, f"{key} {value}", r.stderr)
    for lacking, words in ("uniform", "uniform is missing"), ("batch", "batch is missing"), ("gpus", "gpus is missing"), ("model", "model is missing"):
        r = topt("calibrate", "a100-80-dgx", write("bad.json", {k: v for k, v in doc.items() if k != lacking}))
        ok(r.returncode and words in r.stderr, f"without {lacking}", r.stderr)
    r = topt("calibrate", "a100-v100", files[0])
    ok(r.returncode and "a100-v100" in r.stderr, "a profile of unlike devices", r.stderr)
    ok(topt("calibrate", "a100-80-dgx").returncode == 2, "no measurements")


def check_plans():
    """Reports and observations name their plans, which stand in other files."""
    r = topt("plan", "llama.json", "--hw", "a100-80-dgx", "--batch", "64", "--seq", "4096", "--gpus", "8", "-o", "plan.json")
    plan = json.load(open("plan.json"))
    ns = plan["predicted"]["time_ns"]
    report = write("report.json", {"format": "topt-report/1", "plan": plan["id"], "median_step_ns": 2 * ns})
    seen = write("seen.json", {"format": "topt-observations/1", "observations": [{"job": 17, "plan_id": plan["id"], "step_ns": 3 * ns}, {"job": 18, "plan_id": plan["id"]}]})
    inside = write("inside.json", {"format": "topt-measured/1", "plan": plan, "step_seconds": ns / 1e9})
    r = fit("a100-80-dgx", [report, seen, inside, "plan.json"])
    ok([(x["name"], round(x["measured_ns"] / ns)) for x in r["reports"]] == [("report.json", 2), ("seen.json: job 17", 3), ("inside.json", 1)] and
       all(x["before_ns"] == ns for x in r["reports"]), "plans are costed as they were planned", r["reports"])
    r = topt("calibrate", "a100-80-dgx", report)
    ok(r.returncode and f"topt client get-plan {plan['id']}" in r.stderr, "a report without its plan says how to get it", r.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write("llama.json", LLAMA)
        write("gpt.json", GPT)
        hw = json.loads(topt("hw", "show", "a100-80-dgx").stdout)
        files = check_recovered(hw)
        check_bad(files)
        check_plans()
        if "few" not in sys.argv[2:]:
            check_refused(hw)
            check_memory(copy.deepcopy(hw))
        os.chdir("/")
    print(f"1..{count}")
    return failed > 0


sys.exit(main())
