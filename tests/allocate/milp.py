#!/usr/bin/env python3
"""milp.py ALLOCATE_PLANS TOPT_QUEUE N - plans of N random small queues held to the optimum that scipy's milp (HiGHS) finds.

The oracle shares nothing with the program: a binary variable for each job, shape, set of nodes and second at which it
may start, a row for each node, resource and second.  It keeps what a plan keeps: no rigid job starts later than as everybody
asked, none ends later, and the bound on GPU-hours holds.  The brute force of oracle.h has to find the same optimum, and neither the
greedy plan nor the solver's may be below it.  Prints the gaps.  Ends with 77 where scipy is not installed.
"""
import itertools
import json
import subprocess
import sys

try:
    import numpy
    import scipy.optimize
    import scipy.sparse
except ImportError:
    print("1..0 # skipped: scipy is not installed (python3-scipy)")
    sys.exit(77)


def gpus_of(shape):
    return shape["nodes"] * shape["takes"][0]


def cost_of(shape):
    return gpus_of(shape) * shape["run"]


def may_have(queue, job, k):
    """The bounds on GPU-hours and on the share of the GPUs."""
    shape, asked = job["shapes"][k], job["shapes"][job["asked"]]
    if k == job["asked"]:
        return True
    could = sum(n[0] for n, serves in zip(queue["nodes"], shape["serves"]) if serves)
    return (cost_of(shape) * 1000 <= min(map(cost_of, job["shapes"])) * queue["permille"]
            and (shape["nodes"] == 1 or gpus_of(shape) <= gpus_of(asked) or gpus_of(shape) * 1000 <= queue["share"] * could))


def choices_of(queue):
    """(job, shape, nodes, start) of all that may be."""
    for i, job in enumerate(queue["jobs"]):
        end = job["start"] + job["shapes"][job["asked"]]["run"]
        for k, shape in enumerate(job["shapes"]):
            last = job["start"] if len(job["shapes"]) == 1 else end - shape["run"]
            serving = [n for n, serves in enumerate(shape["serves"]) if serves]
            for nodes in itertools.combinations(serving, shape["nodes"]) if may_have(queue, job, k) else ():
                for at in range(job["from"], last + 1):
                    yield i, shape, nodes, at


def optimum(queue):
    choices = list(choices_of(queue))
    horizon = max(at + shape["run"] for _, shape, _, at in choices)
    left = numpy.zeros((len(queue["nodes"]), 3, horizon))
    for n, has in enumerate(queue["nodes"]):
        left[n] = numpy.array(has)[:, None]
    for node, gpus, cpus, memory, begin, end in queue["held"]:
        left[node, :, begin:end] -= numpy.array([gpus, cpus, memory])[:, None]
    njobs, rows, columns, values, cost = len(queue["jobs"]), [], [], [], []
    for column, (i, shape, nodes, at) in enumerate(choices):
        cost.append(at + shape["run"])
        rows.append([i]), columns.append([column]), values.append([1])
        for n in nodes:
            takes = queue["nodes"][n] if shape["whole"] else shape["takes"]
            for r in range(3):
                if takes[r]:
                    first = njobs + (n * 3 + r) * horizon + at
                    rows.append(range(first, first + shape["run"]))
                    columns.append([column] * shape["run"])
                    values.append([takes[r]] * shape["run"])
    table = scipy.sparse.csr_matrix((numpy.concatenate(values), (numpy.concatenate(rows), numpy.concatenate(columns))),
                                    shape=(njobs + left.size, len(choices)))
    lower = numpy.concatenate([numpy.ones(njobs), numpy.full(left.size, -numpy.inf)])
    upper = numpy.concatenate([numpy.ones(njobs), left.reshape(-1)])
    used = numpy.diff(table.indptr) > 0
    found = scipy.optimize.milp(cost, integrality=numpy.ones(len(choices)), bounds=scipy.optimize.Bounds(0, 1),
                                constraints=scipy.optimize.LinearConstraint(table[used], lower[used], upper[used]))
    return round(found.fun) if found.success else None


def main():
    said = subprocess.run(sys.argv[1:4], stdout=subprocess.PIPE, text=True, check=True).stdout
    queues = [json.loads(line) for line in said.splitlines()]
    differ = below = 0
    could = 0
    exact, gained, gaps = {"greedy": 0, "milp": 0}, {"greedy": 0, "milp": 0}, {"greedy": [], "milp": []}
    for queue in queues:
        best = optimum(queue)
        differ += best != queue["best"]
        could += queue["asked"] - best
        for name in exact:
            below += queue[name] < best
            exact[name] += queue[name] == best
            gained[name] += queue["asked"] - queue[name]
            gaps[name].append((queue[name] - best) / best)
    for name, words in (("greedy", "greedy"), ("milp", "with topt-queue's MILP")):
        print(f"# {words}: {exact[name]} of {len(queues)} queues at the optimum, sum of ends above it {100 * sum(gaps[name]) / len(queues):.2f} % "
              f"on average and {100 * max(gaps[name]):.1f} % at most; {100 * gained[name] / could:.1f} % of what could be gained")
    print(f"{'not ' * (differ > 0)}ok 1 - scipy's milp and the brute force find the same optimum of {len(queues)} queues ({differ} differ)")
    print(f"{'not ' * (below > 0)}ok 2 - no plan is below it")
    enough = gained["greedy"] >= 0.9 * could
    print(f"{'not ' * (not enough)}ok 3 - nine tenths of what could be gained are")
    print("1..3")
    sys.exit(differ > 0 or below > 0 or not enough)


main()
