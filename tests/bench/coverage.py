#!/usr/bin/env python3
"""coverage.py BUILD - which of solver/search and solver/plan the questions of questions.txt enter.

BUILD is configured for it and holds topt-solver, topt, question and make_costs:

    cmake -B build/coverage -G Ninja -DTOPT_CUDA=OFF -DCMAKE_C_FLAGS="-O1 --coverage -fprofile-abs-path"
    ninja -C build/coverage topt topt-solver question make_costs solver_memo solver_watch
    python3 tests/bench/coverage.py build/coverage

Three stages, one after the other: the questions that people ask; the guard rows below them; and the other doors
(explain, compare, sample, costgraph, solve with each algorithm, the tests that ask as toptd and sbatch do).  A
line a file: how many lines of code it has, and what share of them has been entered after each stage.  Then the
functions that only guard rows enter, and those that nothing enters.  It takes about ten minutes of a quiet processor.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PARTS = ('solver/search/', 'solver/plan/')
STAGES = ('questions', 'guard rows', 'other doors')


def questions_in(text):
    """The names of questions and of guard rows."""
    found, guard = ([], []), 0
    for line in text:
        words = line.split()
        if words and words[0] == '=':
            guard = 1
        elif words and not words[0].startswith('#'):
            found[guard].append(words[0])
    return found


def ask(build, names):
    for name in names:
        done = subprocess.run(['sh', os.path.join(HERE, 'questions.sh'), build, '--once', '--limit', '600', '--only', name],
                              capture_output=True, text=True)
        answer = [line for line in done.stdout.split('\n') if line.startswith(name + ' ')]
        print(*answer, done.stderr.strip(), file=sys.stderr)


def other_doors(build):
    """Small questions through every command, and the programs of tests that ask as toptd does."""
    topt = os.path.join(build, 'libexec/topt/topt-solver')
    model = os.path.join(ROOT, 'deploy/quickstart/gpt-small.json')
    asked = ['--hw', 'lab-cpu', '--batch', '8', '--seq', '64']
    own = asked + ['--gpus', '4', '--framework', 'topt', '--space', 'canonical']

    def run(*command, into=None):
        with open(into or os.devnull, 'w', encoding='utf-8') as out:
            status = subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=False).returncode
        print(status, *command[1:], file=sys.stderr)

    run(topt, 'plan', model, *asked, '-o', 'fewest.json')
    run(topt, 'plan', model, *own, '-o', 'own.json')
    for plan in ('fewest.json', 'own.json'):
        run(topt, 'explain', plan, '--around')
        run(topt, 'explain', plan, '--operators', '--notation')
        run(topt, 'explain', plan, '--json')
    run(topt, 'frontier', model, *asked, '--gpus', '4', '--svg', 'drawn.svg')
    run(topt, 'frontier', model, *own, '--svg', 'drawn.svg')
    run(topt, 'frontier', model, '--hw', 'a100-80-dgx', '--batch', '32', '--seq', '64', '--gpus', '32',
        '--framework', 'topt', '--space', 'canonical', '--epsilon', '0.01')
    run(topt, 'frontier', model, *own, '--max-work', '1')
    run(topt, 'compare', model, *asked, '--gpus', '4')
    run(topt, 'plan', model, *asked, '--mode', 'profiling', '--svg', 'drawn.svg')
    run(topt, 'evaluate', model, '--plan', 'own.json', *asked)
    run(topt, 'plan', model, *own, '--factors', 'zero,recompute', '--micro-batches', '2')
    run(topt, 'plan', model, *own, '--blocks', 'alike', '--factors', 'all')
    run(topt, 'sample', model, *own)
    run(topt, 'costgraph', model, *own, '-o', 'costs.json')
    run(topt, 'solve', 'costs.json', '--json')
    run(topt, 'solve', 'costs.json', '--epsilon', '0.01', '--memory', '100MiB')
    run(topt, 'solve', 'costs.json', '--max-entries', '4')
    worked = os.path.join(ROOT, 'tests/search/worked_example.json')
    for algorithm in ('ft', 'ft-plain', 'ft-elimination', 'brute-force'):
        run(topt, 'solve', worked, '--algorithm', algorithm)
    for program in ('solver_memo', 'solver_watch'):
        run(os.path.join(build, 'tests', program))


def entered(build):
    """(file, line) -> entered or not, and (file, function) -> the same."""
    lines, functions = {}, {}
    notes = []
    for folder, _, files in os.walk(build):
        for name in files:
            if name.endswith('.gcno') and '/solver/' in folder:
                notes.append(os.path.join(folder, name))
    for note in notes:
        out = subprocess.run(['gcov', '--json-format', '--stdout', note], capture_output=True, text=True, cwd=build)
        for text in out.stdout.split('\n'):
            if not text.strip():
                continue
            for file in json.loads(text)['files']:
                path = os.path.relpath(os.path.join(build, file['file']), ROOT)
                if not path.startswith(PARTS) or not os.path.exists(os.path.join(ROOT, path)):
                    continue
                for line in file['lines']:
                    key = (path, line['line_number'])
                    lines[key] = lines.get(key, False) or line['count'] > 0
                for function in file['functions']:
                    key = (path, function['name'])
                    functions[key] = functions.get(key, False) or function['execution_count'] > 0
    return lines, functions


def shares(lines):
    total, seen = collections.Counter(), collections.Counter()
    for (path, _), hit in lines.items():
        total[path] += 1
        seen[path] += hit
    return total, seen


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    for folder, _, files in os.walk(build):
        for name in files:
            if name.endswith('.gcda'):
                os.remove(os.path.join(folder, name))
    with open(os.path.join(HERE, 'questions.txt'), encoding='utf-8') as text:
        people, guards = questions_in(text)
    stages = []
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for stage in (lambda: ask(build, people), lambda: ask(build, guards), lambda: other_doors(build)):
            stage()
            stages.append(entered(build))
    print('| file | lines | %s |' % ' | '.join(STAGES))
    print('|---|---|%s' % ('---|' * len(STAGES)))
    counted = [shares(lines) for lines, _ in stages]
    for path in sorted(counted[-1][0]):
        total = counted[-1][0][path]
        row = ' | '.join('%d %%' % round(100 * seen[path] / total) for _, seen in counted)
        print('| %s | %d | %s |' % (path, total, row))
    all_lines = sum(counted[-1][0].values())
    row = ' | '.join('%d %%' % round(100 * sum(seen.values()) / all_lines) for _, seen in counted)
    print('| all | %d | %s |' % (all_lines, row))
    functions = [f for _, f in stages]
    print('\nentered by guard rows alone:')
    for key in sorted(k for k in functions[1] if functions[1][k] and not functions[0].get(k)):
        print('    %s: %s' % key)
    print('\nentered by other doors alone:')
    for key in sorted(k for k in functions[2] if functions[2][k] and not functions[1].get(k)):
        print('    %s: %s' % key)
    print('\nentered by nothing here:')
    for key in sorted(k for k in functions[2] if not functions[2][k]):
        print('    %s: %s' % key)


if __name__ == '__main__':
    main()
