#!/usr/bin/env python3
"""names.py ROOT - every source file, folder, function and field that a document names is there.

Documents name a file by its name or by the end of its path ("plan/ask/fewest.c"), a folder from the
root or from solver/ on ("plan/ask"), and a function, type, field or test by its identifier, in backticks
or where it begins with "topt_".  Documents for users name scripts of other programs too: a file of theirs
is one of ours where its path begins with a folder of ours.  NEWS and the notes may name what is gone: they
are not read.  A name in capitals ("NAME.c") is a placeholder.  Exits 1 with the names that are not
found, and where they stand.
"""

import os
import re
import subprocess
import sys

FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:c|h|cu|py|sh|sql|in|cmake))(?![\w.]*\w)")
TOPT = re.compile(r"(?<![\w/.-])(topt_[a-z0-9_]*[a-z0-9])(?![\w./-]*\.(?:md|html))")
CODE = re.compile(r"`([^`]+)`")
IDENTIFIER = re.compile(r"(?:struct |enum )?([a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?:\(\))?")
DEVELOPERS = ("CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "docs/BENCHMARKS.md",
              "docs/FORMATS.md")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True)
    if out.returncode == 0:
        return [name for name in out.stdout.splitlines() if os.path.exists(os.path.join(root, name))]
    return [os.path.relpath(os.path.join(folder, name), root)
            for folder, _, names in os.walk(root) for name in names
            if not os.path.relpath(folder, root).startswith("build")]


def words_of(root, files):
    """All identifiers of what is no document."""
    found = set()
    for name in files:
        if not name.endswith(".md"):
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as text:
                found.update(re.findall(r"[a-z][a-z0-9_]*[a-z0-9]", text.read()))
    return found


def ends_of(paths):
    """Each path by every end of it."""
    return {"/".join(parts[i:]) for parts in (p.split("/") for p in paths) for i in range(len(parts))}


class Known:
    """What is there."""

    def __init__(self, root):
        files = tracked(root)
        folders = {os.path.dirname(name) for name in files}
        folders |= {parent for f in folders for parent in (f[:i] for i, c in enumerate(f) if c == "/")} - {""}
        self.documents = [f for f in files if f in ("README.md", *DEVELOPERS) or re.fullmatch(r"docs/[^/]+\.md", f)]
        self.files, self.folders, self.words = ends_of(files), ends_of(folders), words_of(root, files)
        self.stems = {os.path.splitext(end)[0] for end in self.files}
        self.ours = {f.split("/")[0] for f in folders if f}
        self.prefixes = {f.split("/")[1] for f in folders if f.startswith("tests/")}
        self.rooms = self.ours | {f.split("/")[1] for f in folders if f.startswith("solver/")}
        self.room = re.compile(r"(?<![\w./-])((?:%s)(?:/[\w-]+)+)/?(?![\w/.*{-])" % "|".join(sorted(self.rooms)))

    def word(self, name):
        """An identifier, a metric, or the test or parameter "slurm_ask" of "ask" in tests/slurm."""
        prefix, _, rest = name.partition("_")
        return name in self.words or name.removesuffix("_total") in self.words or (
            prefix in self.prefixes and rest in self.words)

    def file(self, name, document):
        theirs = document not in DEVELOPERS and name.split("/")[0] not in self.ours
        return theirs or name in self.files or re.fullmatch(r"[A-Z]+\.\w+", os.path.basename(name))

    def missing(self, line, document):
        """The names of a line that are not there, and how many it has."""
        files = [m.group(1) for m in FILE.finditer(line)]
        rooms = [m.group(1) for m in self.room.finditer(line)]
        words = [m.group(1) for m in TOPT.finditer(line)]
        words += [m.group(1) for m in map(IDENTIFIER.fullmatch, CODE.findall(line)) if m]
        bad = [f for f in files if not self.file(f, document)]
        bad += [r for r in rooms if r not in self.folders and r not in self.stems]
        bad += [w for w in words if not self.word(w)]
        return bad, len(files) + len(rooms) + len(words)


def main():
    root = sys.argv[1]
    known = Known(root)
    checked, bad = 0, 0
    for document in known.documents:
        with open(os.path.join(root, document), encoding="utf-8") as text:
            for number, line in enumerate(text, 1):
                missing, n = known.missing(line, document)
                checked += n
                bad += len(missing)
                for name in missing:
                    print(f"not ok - {document}:{number} names {name}, which is not there")
    if not checked:
        print("not ok - no document names a file")
        bad = 1
    if not bad:
        print(f"ok - {checked} names of files, folders and functions")
    return bad > 0


sys.exit(main())
