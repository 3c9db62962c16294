#!/usr/bin/env python3
"""pictures_test.py ROOT TOPT - every SVG that topt writes, as a browser draws it.

For short names and long ones, one point and many, with and without a limit: no words leave the picture, lie over other
words or have a limit's line through them.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT, TOPT = sys.argv[1:3]
sys.path.insert(0, ROOT + "/tests/daemon")
import kit  # noqa: E402
from browser import Browser  # noqa: E402
from kit import ok  # noqa: E402

CHROMIUM = shutil.which("chromium")
if not CHROMIUM:
    print("1..0 # skipped: chromium is not installed")
    sys.exit(77)
LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": False}
LONG = "a-fine-tuned-checkpoint-with-a-name-that-says-when-and-by-whom-it-was-trained-2026-11-28"

# What is wrong with the words of a picture.
FAULTS = """(() => {
  const W = document.documentElement.viewBox.baseVal, found = [];
  const words = [...document.querySelectorAll('text')].filter(t => t.textContent.trim() && !t.matches('.name')).map(t => [t.getBBox(), t.textContent]);
  const meet = (a, b, by) => a.x < b.x + b.width && b.x < a.x + a.width && a.y + by < b.y + b.height && b.y + by < a.y + a.height;
  words.forEach(([a, s], i) => {
    if (a.x < 0 || a.x + a.width > W.width || a.y < 0 || a.y + a.height > W.height) found.push('cut: ' + s);
    words.slice(i + 1).forEach(([b, t]) => { if (meet(a, b, 3)) found.push(s + ' over ' + t); });
    document.querySelectorAll('.rule').forEach(e => { if (meet(a, e.getBBox(), 0)) found.push('a limit through ' + s); });
  });
  return found;
})()"""


class Pictures:
    def __init__(self, folder):
        self.folder, self.made = folder, []
        self.models = {}
        for name in "llama", LONG:
            self.models[name] = f"{folder}/{name}.json"
            with open(self.models[name], "w") as f:
                json.dump(LLAMA, f)

    def topt(self, command, model, *asked, name=None):
        """Run a command; with 'name' it draws that picture."""
        svg = f"{self.folder}/{name}.svg"
        model = [self.models[model]] if model in self.models else [model]
        done = subprocess.run([TOPT, command, *model, *asked, *(["--svg", svg] if name else [])], capture_output=True, text=True)
        ok(done.returncode == 0, f"{command} {name or ''}".strip(), done.stderr)
        if name:
            self.made.append(svg)

    def make(self):
        job = ["--hw", "h100-80-dgx", "--batch", "512", "--seq", "8192"]
        curve = [*job, "--mode", "profiling"]
        self.topt("plan", "llama", *curve, "--max-gpus", "1024", name="curve")
        self.topt("plan", LONG, *curve, "--max-gpus", "1024", name="curve-long")
        self.topt("plan", "llama", *curve, "--gpus", "8", name="curve-of-one")
        self.topt("plan", "llama", *curve, "--gpus", "1,2", name="curve-of-none")
        self.topt("plan", "llama", *curve, "--gpus", "4,8,16", name="curve-of-few")
        self.topt("frontier", "llama", *job, "--gpus", "64", name="frontier")
        self.topt("frontier", LONG, *job, "--gpus", "64", "--memory", "40GiB", name="frontier-long")
        self.topt("frontier", ROOT + "/deploy/quickstart/mlp.json", "--hw", "lab-cpu", "--gpus", "4", "--space", "full", name="frontier-of-many")
        few = ["--hw", "h100-80-dgx", "--gpus", "8", "--batch", "64", "--seq", "2048"]
        self.topt("compare", LONG, *few, name="compare-long")
        self.topt("plan", LONG, *few, "--mode", "mini-time", "-o", self.folder + "/plan.json")
        self.topt("simulate", self.folder + "/plan.json", name="timeline-long")
        self.topt("plan", LONG, "--hw", "a100-80-dgx", "--framework", "megatron", "--degrees", "pp=8,tp=1,dp=1,mbs=1", "--batch", "12", "-o", self.folder + "/staged.json")
        self.topt("simulate", self.folder + "/staged.json", name="stages-long")


def ticks(page, words):
    """Numbers on an axis; below the chart's axis where 'words' is its title."""
    return page.run(f"""(() => {{ const all = [...document.querySelectorAll('text')], at = all.find(t => t.textContent.startsWith({json.dumps(words)}));
      return all.filter(t => /^[0-9.,]+$/.test(t.textContent) && t.getAttribute('text-anchor') === 'end' && t.getBBox().y > at.getBBox().y).map(t => Number(t.textContent)); }})()""")


def check(browser, path):
    with open(path) as f:
        width, height = re.search(r'<svg[^>]*? width="(\d+)" height="(\d+)"', f.read()).groups()
    page = browser.page(int(width), int(height))
    page.open("file://" + path)
    page.until("document.documentElement && document.documentElement.tagName === 'svg' && document.readyState === 'complete'")
    name = os.path.basename(path)
    faults = page.run(FAULTS)
    ok(faults == [], f"{name}: all words are seen, apart from each other and from limits", faults)
    said = page.run("[...document.querySelectorAll('text')].map(t => t.textContent)")
    ok("0 ns" not in said, f"{name}: an axis begins at 0, without a unit")
    if name.startswith("curve"):
        memory = ticks(page, "memory per GPU")
        ok(0 in memory and len({round(a - b, 6) for a, b in zip(memory[1:], memory)}) == 1, f"{name}: memory has a linear axis from 0", memory)
        across = page.run("[...document.querySelectorAll('text[text-anchor=middle]')].map(t => t.textContent).filter(t => /[0-9]/.test(t))")
        ok(across and all(t.replace(",", "").isdigit() for t in across), f"{name}: GPUs are whole", across)


def main():
    folder = tempfile.mkdtemp(prefix="topt-pictures-")
    try:
        pictures = Pictures(folder)
        pictures.make()
        with Browser(CHROMIUM) as browser:
            for path in pictures.made:
                check(browser, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(kit.finish())


main()
