#!/usr/bin/env python3
"""long_names.py IN OUT - a native model whose operators have names that don't pack, so that its plan is too long to be carried."""
import hashlib
import json
import sys

model = json.load(open(sys.argv[1]))
names = {op["name"]: op["name"] + "".join(hashlib.sha512(f"{op['name']}{i}".encode()).hexdigest() for i in range(16))[:180]
         for op in model["ops"]}
for op in model["ops"]:
    op["name"] = names[op["name"]]
    op["inputs"] = [names.get(i, i) for i in op["inputs"]]
json.dump(model, open(sys.argv[2], "w"))
