#!/usr/bin/env python3
"""layouts.py TOPT [-j N] - layouts that experts recommend (rows/layouts.csv) beside what topt plan chooses for the same jobs.

Nothing was measured here: both times are topt's own predictions, with the same micro-batches and recomputation allowed to
both.  A row says the recommended degrees, whether they are predicted to fit, the degrees that are chosen, and how much
longer than these the recommended ones are predicted to take.  A layout that is chosen itself takes as long.
"""
import argparse
import csv
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent / "rows"
DEGREES = ("tp", "pp", "vp", "cp", "ep", "mbs")


def words(d):
    return ", ".join(f"{k} {d[k]}" for k in DEGREES if int(d[k]) > 1 or k in ("tp", "mbs"))


def chosen(uniform):
    return {"tp": uniform["tp"], "pp": uniform.get("pp", 1), "vp": uniform.get("vp", 1), "cp": uniform.get("cp", 1),
            "ep": uniform.get("ep", 1), "mbs": uniform["micro_batch"]}


def plan(topt, config, row, *options):
    command = [topt, "plan", config, "--hw", row["hw"], "--gpus", row["gpus"], "--batch", row["batch"], "--seq", row["seq"],
               "--framework", "megatron", "--precision", row["precision"], "--threads", "1", "--json", *options]
    if row["cuda_graphs"] == "1":
        command.append("--cuda-graphs")
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"feasible": False, "why": done.stderr.strip().replace("topt plan: ", "")}


def ask(topt, config, row):
    """The answers with the recommended degrees, and with free ones."""
    degrees = ",".join(f"{k}={row[k]}" for k in DEGREES) + ",recompute=" + (row["recompute"] or "0")
    return plan(topt, config, row, "--degrees", degrees), plan(topt, config, row)


def line(row, answers):
    """A row of the table, and the recommended time over the chosen one; None: there are not both."""
    theirs, ours = answers
    fits = f"{theirs['verdict']}, {theirs['memory_bytes'] / 2**30:.1f} GiB" if theirs["feasible"] else theirs.get("why", "no plan")
    degrees = chosen(ours["uniform"]) if ours["feasible"] else None
    same = degrees and all(int(row[k]) == v for k, v in degrees.items())
    text = "the same" if same else words(degrees) if degrees else "none"
    ratio = theirs["time_ns"] / ours["time_ns"] if theirs["feasible"] and degrees else None
    more = f"{100 * (ratio - 1):+.0f} %" if ratio else ""
    return f"| {row['model']} | {row['gpus']} {row['hw']} | {row['precision']} | {words(row)} | {fits} | {text} | {more} |", ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("topt")
    parser.add_argument("-j", type=int, default=2)
    args = parser.parse_args()
    rows = list(csv.DictReader((HERE / "layouts.csv").open()))
    models = json.loads((HERE / "models.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        for name in {r["model"] for r in rows}:
            Path(folder, name.replace(" ", "-") + ".json").write_text(json.dumps(models[name]["config"]))
        with ThreadPoolExecutor(args.j) as pool:
            answers = list(pool.map(lambda r: ask(args.topt, str(Path(folder, r["model"].replace(" ", "-") + ".json")), r), rows))
    print("| model | GPUs | precision | recommended | predicted for it | chosen | recommended takes |\n|---|---|---|---|---|---|---|")
    ratios = []
    for row, answer in zip(rows, answers):
        text, ratio = line(row, answer)
        print(text)
        ratios += [ratio] if ratio else []
    good = sum(r > 0.999 for r in ratios)
    ratios.sort()
    print(f"\nOf {len(rows)} layouts {len(ratios)} are priced beside a plan; {good} of the plans are the recommended one or predicted at least as fast. "
          f"The recommended layouts take {100 * (ratios[len(ratios) // 2] - 1):.0f} % longer in the median, {100 * (ratios[-1] - 1):.0f} % at most.")


if __name__ == "__main__":
    main()
