#!/usr/bin/env python3
"""lines.py ROOT [ROOM=MOST...] - lines of code of the solver's rooms, neither blank nor comment.

Prints a line a room of solver/, and the sum of those that find and price plans (search, plan, simulate,
schedule, lower).  With ROOM=MOST it fails where a room, or "planner" for that sum, has more lines.
"""
import re
import sys
from pathlib import Path

PLANNER = ("search", "plan", "simulate", "schedule", "lower")
# A comment, or a string or character constant, in which no comment begins.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def strip(text):
    """The text with each comment as a blank, on as many lines."""
    return TOKEN.sub(lambda t: t[0] if t[0][0] in "\"'" else "\n" * t[0].count("\n") or " ", text)


def lines_of(folder):
    files = [p for p in folder.rglob("*") if p.suffix in (".c", ".h", ".cu")]
    return sum(1 for p in files for line in strip(p.read_text()).split("\n") if line.strip())


def main(root, *limits):
    solver = Path(root) / "solver"
    lines = {p.name: lines_of(p) for p in sorted(solver.iterdir()) if p.is_dir()}
    lines["planner"] = sum(lines.get(room, 0) for room in PLANNER)
    lines["solver"] = sum(n for room, n in lines.items() if room != "planner")
    for room, n in lines.items():
        print(f"# {n:7,} {room}")
    failed = 0
    for limit in limits:
        room, most = limit.split("=")
        good = lines[room] <= int(most)
        failed += not good
        print(f"{'ok' if good else 'not ok'} - {room}: {lines[room]:,} lines of at most {int(most):,}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
