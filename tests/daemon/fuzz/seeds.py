#!/usr/bin/env python3
"""seeds.py FOLDER SOURCES - good inputs for the fuzz targets to begin with: FOLDER/http, FOLDER/worker, FOLDER/query."""
import glob
import json
import os
import sys

OUT, SOURCES = sys.argv[1:3]


def put(target, name, data):
    os.makedirs(f"{OUT}/{target}", exist_ok=True)
    with open(f"{OUT}/{target}/{name}", "wb") as f:
        f.write(data)


LLAMA = json.dumps({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
                    "num_attention_heads": 4, "vocab_size": 128, "max_position_embeddings": 64}).encode()
FAKE = b'{"fake_bytes":5000}'
QUESTIONS = [b"mode=mini-parallelism&batch=8&memory=16MiB", b"mode=mini-time&gpus=4&epsilon=0.25&framework=topt&space=full",
             b"mode=profiling&gpus=1,2,4&counts=pow2", b"batch=8&seq=64&train=lora:4&precision=bf16&overlap=ddp&eager=loss",
             b"slurm_partition=a&slurm_nodes=2&slurm_tasks=gpu&slurm_time=1:00:00&batch=8"]
JSON = [b'{"mode":"mini-time","gpus":4,"memory":"16MiB","model":{"a":[]},"sequence_splits":true}',
        b'{"mode":"profiling","gpus":[1,2],"model_id":"m-1","wait_ms":5}']

for i, q in enumerate(QUESTIONS):
    put("query", f"q{i}", bytes([i]) + q)
    put("http", f"plan{i}", bytes([i]) + b"POST /v1/plan?" + q + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(FAKE) + FAKE)
for i, q in enumerate(JSON):
    put("query", f"j{i}", bytes([128 + i]) + q)
    put("worker", f"q{i}", b"\0" + q)
    put("worker", f"c{i}", b"\6" + q)
    put("http", f"json{i}", b"\5POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/plain\r\n"
        b"Content-Length: %d\r\n\r\n" % len(q) + q)
OTHERS = [("GET", p, b"") for p in ("/", "/livez", "/readyz", "/metrics", "/openapi.json", "/v1/models?limit=2&before=m-1", "/v1/models/x",
                                    "/v1/models/x/curve?max_gpus=2", "/v1/models/x/frontier?gpus=2", "/v1/plans", "/v1/plans/p-1",
                                    "/v1/hardware", "/v1/hardware/fake-hw", "/v1/tasks", "/v1/tasks/t-1?wait_ms=10", "/v1/observations",
                                    "/v1/corrections")]
OTHERS += [("POST", "/v1/models?name=x", FAKE), ("POST", "/v1/hardware", b'{"format":"topt-hw/1","name":"lab"}'),
           ("PUT", "/v1/hardware/lab", b'{"format":"topt-hw/1","name":"lab"}'), ("DELETE", "/v1/hardware/lab", b""),
           ("PUT", "/v1/models/m-1/groups/0", b""), ("DELETE", "/v1/plans/p-1/groups/0", b""), ("DELETE", "/v1/models/m-1", b""),
           ("DELETE", "/v1/corrections/m-1/h-1", b""), ("DELETE", "/v1/tasks/t-1", b""), ("DELETE", "/v1/observations/1", b""),
           ("POST", "/v1/observations", b'{"job":17,"plan_id":"p-1","step_ns":1000,"peak_bytes":5,"steps":4,"gpus":1,"cluster":"c"}')]
for i, (method, path, body) in enumerate(OTHERS):
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    put("http", f"other{i}", bytes([i % 8]) + head + body)
chunked = b"\3POST /v1/models HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n"
put("http", "chunked", chunked)
put("http", "two", b"\0" + 2 * b"GET /livez HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"x\"\r\n\r\n")
for which in range(1, 5):
    put("worker", f"llama{which}", bytes([which]) + LLAMA)
put("worker", "megatron", b"\3" + b"torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
    b"--max-position-embeddings 64 --micro-batch-size 2 --global-batch-size 8 --vocab-size 128\n")
for path in glob.glob(SOURCES + "/solver/layout/profiles/*.json")[:4]:
    put("worker", os.path.basename(path), b"\5" + open(path, "rb").read())
