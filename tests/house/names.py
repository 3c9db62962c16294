#!/usr/bin/env python3
"""names.py ROOT - every source file and every function that a document names is there.

The documents for people who change the program name a file by its name or by the end of its path
("plan/ask/fewest.c"), and a function or type by its identifier ("topt_count_solve").  Documents
for users name scripts of other programs too, NEWS and the notes may name what is gone: they are
not read.  A name in capitals ("NAME.c") is a placeholder.  Exits 1 with the names that are not
found, and where they stand.
"""

import os
import re
import subprocess
import sys

FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:c|h|cu|py|sh|sql|in|cmake))(?![\w.]*\w)")
IDENTIFIER = re.compile(r"(?<![\w/.-])(topt_[a-z0-9_]*[a-z0-9])(?![\w./-]*\.(?:md|html))")
DOCUMENTS = ("CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "docs/BENCHMARKS.md",
             "docs/FORMATS.md")
SOURCES = (".c", ".h", ".cu", ".py", ".sh", ".sql", ".in", ".txt", ".cmake", ".js", ".lua", ".json")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True)
    if out.returncode == 0:
        return [name for name in out.stdout.splitlines() if os.path.exists(os.path.join(root, name))]
    return [os.path.relpath(os.path.join(folder, name), root)
            for folder, _, names in os.walk(root) for name in names
            if not os.path.relpath(folder, root).startswith("build")]


def words_of(root, files):
    """All identifiers of the sources that begin with topt_."""
    found = set()
    for name in files:
        if name.endswith(SOURCES) or os.path.basename(name).startswith("CMakeLists"):
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as text:
                found.update(re.findall(r"topt_[a-z0-9_]*[a-z0-9]", text.read()))
    return found


def ends_of(files):
    """Each file by every end of its path."""
    ends = set()
    for name in files:
        parts = name.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
    return ends


def main():
    root = sys.argv[1]
    files = tracked(root)
    ends, identifiers = ends_of(files), words_of(root, files)
    checked, bad = 0, 0
    for document in DOCUMENTS:
        with open(os.path.join(root, document), encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                named = [(m.group(1), ends) for m in FILE.finditer(line)]
                named += [(m.group(1), identifiers) for m in IDENTIFIER.finditer(line)]
                for name, known in named:
                    checked += 1
                    if re.fullmatch(r"[A-Z]+\.\w+", os.path.basename(name)):
                        continue
                    if name not in known:
                        bad += 1
                        print(f"not ok - {document}:{number} names {name}, which is not there")
    if not checked:
        print("not ok - no document names a file")
        bad = 1
    if not bad:
        print(f"ok - {checked} names of files and functions")
    return bad > 0


sys.exit(main())
