#!/usr/bin/env bash
# schemas.sh ROOT TOPT - documents that the program writes are as the schemas in docs/formats
# say, and an unknown field is not.
set -euo pipefail
root=$1 topt=$2

python=/usr/bin/python3
if ! $python -c 'import jsonschema' 2>/dev/null; then
    echo "1..0 # skipped: python3-jsonschema is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

model=$root/deploy/quickstart/gpt-small.json
ask=(--batch 4 --seq 32 --hw lab-cpu)
"$topt" import "$model" --batch 4 --seq 32 -o model.json
"$topt" import "$model" --batch 4 --seq 32 --train lora:4+4bit -o adapters.json
"$topt" hw show lab-cpu >hw.json
"$topt" plan "$model" "${ask[@]}" --mode mini-time --gpus 4 -o plan.json >/dev/null
"$topt" plan "$model" "${ask[@]}" --mode mini-time --gpus 4 --space uniform --memory 5MiB -o uniform.json >/dev/null
"$topt" plan "$model" "${ask[@]}" --mode mini-time --gpus 4 --max-entries 3 -o decided.json >/dev/null
grep -q '"heuristic"' decided.json
"$topt" sample "$model" "${ask[@]}" --gpus 6 --count 1 -o random >/dev/null
"$topt" plan "$model" "${ask[@]}" --mode profiling --gpus 1,2 --memory 10MiB --json >curve.json
"$topt" compare "$root/deploy/quickstart/mlp.json" --hw lab-cpu --gpus 2 --memory 2MiB --json >compare.json
"$topt" costgraph "$root/deploy/quickstart/mlp.json" --hw lab-cpu --gpus 2 -o costs.json >/dev/null
mkdir shipped
for name in $("$topt" hw list | awk '/^  / { print $1 }'); do
    "$topt" hw show "$name" >"shipped/$name.json"
done

$python -W ignore - "$root/docs/formats" <<'PYTHON'
import copy, glob, json, pathlib, re, sys
import jsonschema

folder = pathlib.Path(sys.argv[1])
schemas = {p.name: json.loads(p.read_text()) for p in folder.glob("*.schema.json")}
bad = 0

def validator(kind):
    name = kind + ".schema.json"
    resolver = jsonschema.RefResolver("", schemas[name], store=dict(schemas))
    jsonschema.Draft202012Validator.check_schema(schemas[name])
    return jsonschema.Draft202012Validator(schemas[name], resolver=resolver)

def check(kind, path):
    global bad
    doc = json.loads(pathlib.Path(path).read_text())
    errors = list(validator(kind).iter_errors(doc))
    for e in errors[:3]:
        where = ".".join(map(str, e.absolute_path))
        print(f"not ok - {path}: {where}: {e.message[:200]}")
    if kind in ("model", "hw", "plan", "costs", "compare"):
        strange = copy.deepcopy(doc)
        strange["strange"] = 1
        if not list(validator(kind).iter_errors(strange)):
            errors.append(None)
            print(f"not ok - {kind}: an unknown field passes the schema")
    bad |= bool(errors)

for kind in ("model", "hw", "plan", "curve", "costs", "compare"):
    check(kind, kind + ".json")
check("model", "adapters.json")
check("plan", "uniform.json")
check("plan", "decided.json")
check("plan", "random/plan-0000.json")
profiles = sorted(glob.glob("shipped/*.json"))
for path in profiles:
    check("hw", path)
validator("report")
# Attributes are one table of the program; the schema has the same.
header = (folder.parents[1] / "solver/model/topt_model.h").read_text()
table = set(re.findall(r"X\([A-Z0-9_]+, (\w+), (?:WHOLE|BOOLEAN|REAL|SIGNED|ACTIVATION|LIST)\)", header))
known = set(schemas["model.schema.json"]["properties"]["ops"]["items"]["properties"])
for name in sorted(table ^ known - {"name", "kind", "inputs", "layer", "role"}):
    bad = 1
    print(f"not ok - attribute {name} is in only one of topt_model.h and model.schema.json")
if not bad:
    print(f"ok - {8 + len(profiles)} documents are as their schemas say")
sys.exit(bad)
PYTHON
