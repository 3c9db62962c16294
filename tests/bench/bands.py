"""bands.py VALIDATION [BAND_C] - how wide bands have to be, from published runs of the groups that may decide constants.

VALIDATION --json prints each measured number with its prediction and the parts of it that solver/layout/band.c tells apart.
A band is the prediction less the sum of its parts' shares below, and more by the sum of those above. The shares are those
with the least mean interval score (width, and what lies outside), by descent along each share, times a stretch. A row weighs
less where its group has many, older and newer times weigh alike, and each share has a least one, which is assumed (LEAST).

The stretch makes bands hold runs of systems that are not here: each group in its turn is predicted by shares that were found
without it, and every run of it says how many times as wide its band had to be. A kind's stretch holds so many of its runs. Runs
of one group are wrong alike, so that n groups are n draws: of these conformal prediction asks for WANTED's lower end times
(n + 1) / n (Dunn, Wasserman, Ramdas, "Distribution-free prediction sets for two-layer hierarchical models", 2018), but no kind
for more than WANTED's upper end. Kinds are older times, newer times in bf16, newer times in few bits, since neither may pay for
the other, and memory. A table's stretch is the largest of its kinds', or the largest with median widths of at most WIDEST.

With BAND_C the two tables of that file are written anew; without, prints TAP: whether the bands as compiled hold what they
should, on the groups that decide and on those kept apart, and how far off memory is on Megatron-LM's tests.
"""

import collections
import json
import math
import pathlib
import re
import subprocess
import sys

TABLES = {"time": ("TOPT_BASIS_", ["scaled", "published", "analytic"]), "memory": ("TOPT_BAND_", ["states", "rest", "allocator"])}
FIXED = {"measured": 0.05, "interpolated": 0.10, "context": 0.68}  # the last: runtime_bytes of the A100's profile
# Assumed.  Few of these runs are long in the network, so that they say little of curves of other groups, which are
# estimates; no rate of others is known better than one that was measured, none that is assumed better than one between measured sizes.
# Of memory most rows are small tests of Megatron-LM's, which lie closer than runs of large models do: 0.15 below is what these take.
LEAST = {"scaled": (0.15, 0.25), "published": (0.05, 0.05), "analytic": (0.10, 0.10),
         "states": (0.15, 0.02), "rest": (0.02, 0.02), "allocator": (0.50, 0.50)}
MOST = {"allocator": 3}
WANTED = (0.75, 0.90)  # of runs, at least and at most
WIDEST = {"time": 0.30, "time, newer": 0.40}  # the median width of the groups that are seen
SCORED = 0.85  # the level of a band by which shares are found and scores are compared
STEPS = [0.08, 0.04, 0.02, 0.01]
FEW = ("fp8", "mxfp8", "nvfp4")  # products in few bits


def rows_of(program):
    lines = subprocess.run([program, "--json"], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    verdicts = rows.pop()["verdicts"]
    for r in rows:
        r["ratio"] = r["measured"] / r["predicted"]
        r["table"] = "memory" if r["kind"] == "memory" else "time"
        bits = re.search(r"\b(mxfp8|fp8|nvfp4|bf16|f32)", r["plan"])
        r["bits"] = bits[1] if bits else "f16"
    counts = collections.Counter((r["kind"], r["group"], r["side"]) for r in rows)
    for r in rows:
        r["weight"] = counts[r["kind"], r["group"], r["side"]] ** -0.25
    for kind in {r["kind"] for r in rows}:
        of = [r for r in rows if r["kind"] == kind]
        seen = sum(r["weight"] for r in of if r["side"] == "seen")
        for r in of:
            r["weight"] /= seen
    return rows, verdicts


def score(ratio, low, high):
    """The interval score of a band in units of the prediction."""
    return high - low + 2 / (1 - SCORED) * (max(low - ratio, 0) + max(ratio - high, 0))


def ends(r, share):
    below = sum(part * share.get((name, 0), FIXED.get(name, 0)) for name, part in r["parts"].items())
    above = sum(part * share.get((name, 1), FIXED.get(name, 0)) for name, part in r["parts"].items())
    return 1 - below, 1 + above


def weighted(rows, value):
    return sum(r["weight"] * value(r) for r in rows) / sum(r["weight"] for r in rows)


def mean_score(rows, share):
    return weighted(rows, lambda r: score(r["ratio"], *ends(r, share)))


def least_score(rows, names):
    """The shares (name, side) with the least score, in hundredths."""
    share = {(name, side): max(0.2, LEAST[name][side]) for name in names for side in (0, 1)}
    best = mean_score(rows, share)
    for step in STEPS:
        better = True
        while better:
            better = False
            for key in share:
                for by in (step, -step):
                    was = share[key]
                    share[key] = min(max(round(was + by, 4), LEAST[key[0]][key[1]]), MOST.get(key[0], 0.95))
                    now = mean_score(rows, share)
                    if now < best - 1e-9:
                        best, better = now, True
                    else:
                        share[key] = was
    return share


def kind_of(r):
    """The kind that a row's stretch counts in."""
    if r["kind"] != "time, newer":
        return r["kind"]
    return r["kind"] + (", in few bits" if r["bits"] in FEW else ", in bf16")


def need_of(r, share):
    """How many times the shares the band of a row must have to hold it."""
    off = r["ratio"] - 1
    fixed = sum(part * FIXED.get(name, 0) for name, part in r["parts"].items())
    return max(abs(off) - fixed, 0) / sum(part * share.get((name, off > 0), 0) for name, part in r["parts"].items())


def stretch_of(rows):
    """The stretch that a kind's rows ask for."""
    share = min(WANTED[0] * (1 + 1 / len({r["group"] for r in rows})), WANTED[1])
    return sorted(r["need"] for r in rows)[math.ceil(share * len(rows)) - 1]


def fit(rows, names):
    """The shares with the least score, stretched to hold groups that they were found without."""
    for group in {r["group"] for r in rows}:
        share = least_score([r for r in rows if r["group"] != group], names)
        for r in rows:
            if r["group"] == group:
                r["need"] = need_of(r, share)
    kinds = [(kind, [r for r in rows if kind_of(r) == kind]) for kind in sorted({kind_of(r) for r in rows})]
    share, stretch = least_score(rows, names), max(stretch_of(of) for _, of in kinds)
    while True:
        ret = {key: max(round(value * stretch, 2), LEAST[key[0]][key[1]]) for key, value in share.items()}
        if all(width_of(rows, kind, lambda r: ends(r, ret)) <= most for kind, most in WIDEST.items()):
            break
        stretch -= 0.01
    for kind, of in kinds:
        held = sum(r["need"] <= stretch for r in of) / len(of)
        print(f"{kind}: {len(of)} rows of {len({r['group'] for r in of})} groups ask for shares {stretch_of(of):.2f} times as large; "
              f"{stretch:.2f} times as large they hold {held:.0%} of rows whose group is left out")
    return ret


def width_of(rows, kind, band):
    """The median width of the bands (low, high) of a kind's rows."""
    return median([high - low for r in rows if r["kind"] == kind for low, high in [band(r)]])


def large(rows):
    """Groups of which a share must lie within their bands."""
    groups = collections.defaultdict(list)
    for r in rows:
        groups[r["group"]].append(r)
    yield from ((of, 0.60, 0.98, name) for name, of in groups.items() if len(of) >= 20)


def constant(rows):
    """The two constants with the least score, and it."""
    ratios = sorted({r["ratio"] for r in rows})
    ways = ((weighted(rows, lambda r: score(r["ratio"], low, high)), low, high) for low in ratios for high in ratios if low <= high)
    return min(ways)


def write(path, tables):
    text = path.read_text()
    for table, (prefix, names) in TABLES.items():
        lines = "".join(f"    [{prefix}{n.upper()}] = {{{tables[table][n, 0]:.2f}, {tables[table][n, 1]:.2f}}},\n" for n in names)
        text = re.sub(rf"(/\* bands.py: {table} \*/\n).*?(    /\* bands.py: end \*/)", lambda m: m[1] + lines + m[2], text,
                      flags=re.S)
    path.write_text(text)


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2 if values else 0


def inside(rows):
    return sum(r["low"] <= r["measured"] <= r["high"] for r in rows) / len(rows)


def checks(rows):
    """What bands of the groups that decide have to hold, as (good, words)."""
    for table in TABLES:
        some = [r for r in rows if r["table"] == table and r["side"] == "seen"]
        for of, low, high, name in large(some):
            share = inside(of)
            yield low <= share <= high, f"{table}: {share:.0%} of {len(of)} of {name} are within ({low:.0%} to {high:.0%})"
        apart = [r for r in rows if r["table"] == table and r["side"] == "judged"]
        ours = weighted(apart, lambda r: score(r["ratio"], r["low"] / r["predicted"], r["high"] / r["predicted"]))
        _, low, high = constant(some)
        one = weighted(apart, lambda r: score(r["ratio"], low, high))
        yield ours <= one, (f"{table}: of the runs kept apart the mean interval score is {ours:.3f}; that of one constant band which "
                            f"is best for the others, {low - 1:+.0%} to {high - 1:+.0%}, {one:.3f}")
    seen = [r for r in rows if r["side"] == "seen"]
    for kind, most in WIDEST.items():
        width = width_of(seen, kind, lambda r: (r["low"] / r["predicted"], r["high"] / r["predicted"]))
        yield width <= most, f"{kind}: the median width is {width:.0%} (at most {most:.0%})"


def within(what, side, of):
    """Three quarters of runs have to be within."""
    return inside(of) >= WANTED[0], f"{what}, {side}: {inside(of):.1%} of {len(of)} are within (at least {WANTED[0]:.0%})"


def errors(rows, verdicts):
    """What holds of all runs, whoever decides constants: errors, runs within, verdicts, and that a run counts once."""
    memory = [r for r in rows if r["table"] == "memory"]
    tests = [r for r in memory if r["source"].startswith("NVIDIA/Megatron-LM:tests/")]
    narrow = [r for r in memory if r["bits"] in FEW]
    wide = [r for r in memory if r["bits"] not in FEW]
    for what, of, most in (("runs in bf16 and f32", wide, 0.04), ("runs in few bits", narrow, 0.20), ("Megatron-LM's tests", tests, 0.04)):
        off = [abs(r["predicted"] / r["measured"] - 1) for r in of]
        mean = sum(off) / len(off)
        yield mean <= most, f"memory of {what}: {mean:.1%} off on the mean (at most {most:.0%})"
    yield median(off) <= 0.02, f"... and {median(off):.1%} at the median (at most 2 %)"
    staged = [[abs(r["predicted"] / r["measured"] - 1) for r in tests if ("stages" in r["plan"]) == s] for s in (False, True)]
    without, with_stages = (sum(of) / len(of) for of in staged)
    yield with_stages <= without + 0.01, (f"... {without:.1%} of {len(staged[0])} without stages, {with_stages:.1%} of "
                                          f"{len(staged[1])} with (at most one point more)")
    for table in TABLES:
        of = [r for r in rows if r["table"] == table and r["side"] == "judged"]
        yield inside(of) <= WANTED[1], f"{table}: {inside(of):.0%} of the {len(of)} runs kept apart are within (at most {WANTED[1]:.0%})"
    for kind, side in sorted({(r["kind"], r["side"]) for r in rows}):
        yield within(kind, side, [r for r in rows if (r["kind"], r["side"]) == (kind, side)])
    for kind, side in sorted({(r["kind"], r["side"]) for r in rows if r["table"] == "time"}):
        bias = [r["predicted"] / r["measured"] - 1 for r in rows if (r["kind"], r["side"]) == (kind, side)]
        mean = sum(bias) / len(bias)
        yield abs(mean) <= 0.03, f"{kind}, {side}: {mean:+.1%} on the mean with its sign (at most 3 %)"
    few = [r for r in rows if r["table"] == "time" and r["bits"] in FEW]
    for side in ("seen", "judged"):
        for bits in FEW:
            off = [r["predicted"] / r["measured"] - 1 for r in few if (r["side"], r["bits"]) == (side, bits)]
            if len(off) < 5:
                continue
            mean, bias = sum(map(abs, off)) / len(off), sum(off) / len(off)
            yield mean <= 0.15 and abs(bias) <= 0.05, f"times in {bits}, {side}: {mean:.1%} off, {bias:+.1%} with the sign, of {len(off)} (15 %, 5 %)"
        yield within("times in few bits", side, [r for r in few if r["side"] == side])
    of = [r for r in rows if r["table"] == "time" and r["group"] == "DeepSeek-V3, H800 80 GB"]
    off = [r["predicted"] / r["measured"] - 1 for r in of]
    yield of and max(map(abs, off)) <= 0.20, f"DeepSeek-V3's report, 2,048 H800 in FP8: {len(of)} times, {max(map(abs, off), default=0):.0%} off at most (20 %)"
    v = {of: sum(side[of] for side in verdicts.values()) for of in verdicts["seen"]}
    yield v["refused"] <= 0.03 * v["ran"], f"{v['refused']} of {v['ran']} runs that ran are told that they do not fit (3 %)"
    yield v["tight"] <= 0.10 * v["roomy"], f"{v['tight']} of {v['roomy']} under 85 % of the device are told tight (10 %)"
    died = verdicts["judged"]
    yield died["fits"] == 0, f"{died['fits']} of {died['died']} judged runs that ran out of memory are told that they fit (none)"
    runs = collections.Counter((r["model"], r["device"], r["gpus"], r["plan"], r["measured"]) for r in rows if r["table"] == "time")
    yield max(runs.values()) == 1, "a run that is told more than once counts once"


def main(program, band_c=None):
    rows, verdicts = rows_of(program)
    seen = {t: [r for r in rows if r["table"] == t and r["side"] == "seen"] for t in TABLES}
    if band_c:
        tables = {t: fit(seen[t], names) for t, (_, names) in TABLES.items()}
        write(pathlib.Path(band_c), tables)
        for t in TABLES:
            print(t, {f"{n} {'below above'.split()[s]}": v for (n, s), v in tables[t].items()},
                  f"score {mean_score(seen[t], tables[t]):.3f}, of one constant band {constant(seen[t])[0]:.3f}")
        return 0
    results = list(checks(rows)) + list(errors(rows, verdicts))
    for i, (good, words) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {i} - {words}")
    print(f"1..{len(results)}")
    return not all(good for good, _ in results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
