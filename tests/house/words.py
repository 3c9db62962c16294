#!/usr/bin/env python3
"""words.py ROOT - words that printed strings of the C sources may not have.

People who train models read these strings: each row is a phrase that they stumble on and the field's word for it.
Adjacent literals are one string.  Prints file, line, phrase and what to write; fails where one is found.
"""
import re
import sys
from pathlib import Path

BANNED = (
    (r"\b(GiB|%s|speed|samples|it) a GPU\b", "per GPU"),
    (r"(?<!time of )(?<!end of )(?<!order of )\b(?:tokens|samples|s|ms|images|images on|%s) a step\b", "per step"),
    (r"\boutdo(?:ne|es)?\b|\boutdid\b", "dominated"),
    (r"\bis said\b|\bas said\b|%s said\b", "predicted, or reported"),
    (r"\bsays nothing of\b", "has no"),
    (r"\bwould hold it\b|\bGPUs? would do\b", "fits on N GPUs"),
    (r"\bwaiting for the network\b|\bon the network\b", "exposed communication"),
    (r"\bcomputing, %s", "compute"),
    (r"\bmaster copy\b|what the optimizer keeps", "master weights, optimizer state"),
    (r"\btensors (?:waiting|kept for later)\b", "activations between operators"),
    (r"\brecomputed at once\b", "recomputed activations"),
    (r"\bgathered parameters, reductions\b", "communication buffers"),
    (r"\bcan't take equal shares\b", "does not divide evenly"),
    (r"\bcan't be had\b", "more than it has"),
    (r"\bthat plans may use\b", "usable"),
    (r"\bnarrows that\b", "narrows this range"),
    (r"\bby heuristic; give more\b", "raise"),
    (r"\bis none of\b|\bnone of %s\b", "is not one of"),
    (r"\bjust so many\b|\bon so many\b|\bso much\b", "a number, N or SIZE"),
    (r"; else (?:as|the|by|all|how|what|it)\b", "(default: ...)"),
    (r"\bnobody (?:answers|listens|else)\b", "no answer, nothing listens, no other"),
    (r"\bwho asks is not known\b", "unauthenticated request"),
    (r"\bof kind %s\b", "NAME operators"),
    (r"\bno operator computes\b", "no kernel for"),
    (r"\bas it is in %s\b", "source"),
    (r"\bare added up\b", "accumulated"),
    (r"\bkept: of\b", "scaling efficiency"),
    (r"\bby one model of costs\b", "under one cost model"),
)
ROOMS = ("solver", "common", "daemon", "slurm_plugin", "runtime")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def strings(text):
    """(line, string) of all literals, adjacent ones joined, also over continued lines of macros."""
    joined, end = [], -1
    for m in TOKEN.finditer(text):
        if m[0][0] != '"':
            continue
        if joined and not text[end:m.start()].replace("\\\n", "").strip():
            joined[-1][1] += m[0][1:-1]
        else:
            joined.append([text.count("\n", 0, m.start()) + 1, m[0][1:-1]])
        end = m.end()
    return joined


def main(root):
    rows = [(re.compile(rx), better) for rx, better in BANNED]
    for rx, better in rows:
        if rx.search(better):
            print(f"# {rx.pattern} bans what it proposes")
            return 1
    found = checked = 0
    for room in ROOMS:
        for path in sorted((Path(root) / room).rglob("*.[ch]")):
            for line, s in strings(path.read_text()):
                checked += 1
                for rx, better in rows:
                    m = rx.search(s)
                    if m:
                        found += 1
                        print(f"# {path.relative_to(root)}:{line}: '{m[0]}': write {better}")
    good = checked > 5000 and not found
    print(f"{'ok' if good else 'not ok'} - {checked:,} printed strings, {found} with words that people stumble on")
    return not good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
