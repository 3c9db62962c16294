"""practitioners_test.py TOPT MODELS PUBLISHED - what people ask, with the answer that somebody published.

Each line of practitioners.csv is a question (a model by its name in MODELS or PUBLISHED, a number of GPUs, arguments of
topt plan), whether the job fits there, and who says so.  A plan that fits has to be one that can be booked: it is told
with its memory.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile


def configs(models, published):
    named = {name: m["config"] for name, m in json.loads(pathlib.Path(models).read_text()).items()}
    named.update((m["name"], m["config"]) for m in json.loads(pathlib.Path(published).read_text())["models"])
    return named


def ask(topt, config, row):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(config, f)
        f.flush()
        said = subprocess.run([topt, "plan", f.name, "--gpus", row["gpus"], "--json"] + row["arguments"].split(),
                              capture_output=True, text=True, timeout=120)
    return json.loads(said.stdout) if said.stdout else {"feasible": None, "why": said.stderr.strip()}


def main(topt, models, published):
    named = configs(models, published)
    rows = list(csv.DictReader(pathlib.Path(__file__).with_name("practitioners.csv").open()))
    bad = 0
    for i, row in enumerate(rows, 1):
        answer = ask(topt, named[row["model"]], row)
        good = answer["feasible"] is (row["fits"] == "yes") and (not answer["feasible"] or answer["memory_bytes"] > 0)
        bad += not good
        says = f"{answer['memory_bytes'] / 2**30:.1f} GiB" if answer["feasible"] else answer["why"]
        print(f"{'ok' if good else 'not ok'} {i} - {row['model']} on {row['gpus']}, fits: {row['fits']} ({row['says']}): {says}")
    print(f"1..{len(rows)}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
