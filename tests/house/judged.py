"""judged.py ROOT - no constant of the solver has a source that predictions are judged by.

Groups of tests/bench/rows/later.csv and megatron_tests.csv whose name's SHA-256 ends in a bit of 1 are kept apart:
neither a profile nor a table of the solver may name their file as where a figure comes from.  A file of a common name
(README.md) is told by its repository, too.  The same rule is
row_is_judged() of tests/bench/rows.c.
"""

import csv
import hashlib
import pathlib
import sys


def is_odd(source, row):
    name = "|".join((source, row["named"] or row["model"], row["device"])).lower()
    return int(hashlib.sha256(name.encode()).hexdigest()[-1], 16) & 1


def main():
    root = pathlib.Path(sys.argv[1])
    rows = [r for name in ("later", "megatron_tests")
            for r in csv.DictReader(open(root / f"tests/bench/rows/{name}.csv"))]
    sides = {}  # of each file, whether a group of it is seen
    for r in rows:
        judged = is_odd(r["source"], r) and (not r["also"] or is_odd(r["also"], r)) and "met" not in r["needs"].split()
        sides[r["source"]] = sides.get(r["source"], False) or not judged
    apart = [s for s, seen in sides.items() if not seen]
    texts = [p for ext in ("*.c", "*.h", "*.json") for p in (root / "solver").rglob(ext)]
    bad = [(s, p) for p in texts for text in [p.read_text(errors="replace")] for s in apart
           if s in text or "/" in s.partition(":")[2] and s.partition(":")[2] in text]
    for source, path in bad:
        print(f"# {path.relative_to(root)} names {source}, which predictions are judged by")
    print(f"{'not ok' if bad or not apart else 'ok'} 1 - {len(texts)} files name none of {len(apart)} "
          f"sources that are kept apart, of {len(sides)}")
    print("1..1")
    return bool(bad) or not apart


if __name__ == "__main__":
    sys.exit(main())
