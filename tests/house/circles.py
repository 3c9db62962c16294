#!/usr/bin/env python3
"""circles.py BUILD_DIR FOLDER... - no circles among the modules of a folder.

A module is X.c with X.h, or one of them alone.  It depends on another module of its folder whose
header it includes, or whose functions or data it uses: what one object file leaves undefined and
another one defines, as nm tells.  The folders are named from the root of the sources, which is
two folders above this file; the build's objects of sources that no longer exist do not count.
A source that this build leaves out (MPI, CUDA, ONNX) is known by its includes alone.

Prints each circle with what makes it, and exits 1 if there is one.
"""

import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def module_of(name):
    return os.path.splitext(name)[0]


def modules_in(folder):
    """The folder's modules: name -> the files that make it."""
    files = collections.defaultdict(list)
    for name in sorted(os.listdir(os.path.join(ROOT, folder))):
        if name.endswith((".c", ".h", ".cu")):
            files[module_of(name)].append(name)
    return files


def objects_in(build):
    """Sources, from the root: the object files made of them."""
    objects = {}
    for folder, _, names in os.walk(build):
        at = re.fullmatch(r"(.*?)/?CMakeFiles/[^/]+\.dir(/.*)?", os.path.relpath(folder, build))
        for name in names if at else ():
            if name.endswith(".c.o"):
                source = os.path.join(at.group(1), (at.group(2) or "")[1:], name[:-2])
                objects[source] = os.path.join(folder, name)
    return objects


def symbols_in(objects, folders):
    """What each object file of these folders defines for others, and what it needs.  One nm reads them all, because starting
    it takes longer than reading a file."""
    paths = sorted(path for source, path in objects.items() if os.path.dirname(source) in folders)
    symbols = {path: (set(), set()) for path in paths}
    out = subprocess.run(["nm", "-P", "-g", "-A", *paths], check=True, capture_output=True, text=True) if paths else None
    for line in out.stdout.splitlines() if out else ():
        path, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        symbols[path][kind in "Uwv"].add(name)
    return {source: symbols[path] for source, path in objects.items() if path in symbols}


def add_includes(folder, modules, needs):
    for module, files in modules.items():
        for name in files:
            with open(os.path.join(ROOT, folder, name), encoding="utf-8") as file:
                for header in INCLUDE.findall(file.read()):
                    other = module_of(header)
                    if other != module and header in modules.get(other, ()):
                        needs[module][other].append(header)


def add_symbols(folder, modules, symbols, needs):
    """Returns how many objects were looked at."""
    owner, wanted = {}, {}
    for module, files in modules.items():
        source = os.path.join(folder, module + ".c")
        if module + ".c" in files and source in symbols:
            defined, wanted[module] = symbols[source]
            owner.update(dict.fromkeys(defined, module))
    for module, names in wanted.items():
        for symbol in sorted(names):
            other = owner.get(symbol, module)
            if other != module:
                needs[module][other].append(symbol)
    return len(wanted)


def components(needs):
    """Sets of modules that reach each other (Tarjan, 1972), those of two or more."""
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in needs[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            rest = stack.index(module)
            found.append(sorted(stack[rest:]))
            del stack[rest:]

    for module in sorted(needs):
        if module not in index:
            visit(module)
    return [c for c in found if len(c) > 1]


def foreign_declarations(folder, modules, symbols):
    """(header, function, who defines it) where X.h declares what another module of the folder
    defines though there is an X.c.  A folder's door (topt_*.h) declares for all of it."""
    owner = {}
    for module, files in modules.items():
        source = os.path.join(folder, module + ".c")
        if module + ".c" in files and source in symbols:
            owner.update(dict.fromkeys(symbols[source][0], module))
    for module, files in modules.items():
        if module + ".h" in files and module + ".c" in files and not module.startswith("topt_"):
            with open(os.path.join(ROOT, folder, module + ".h"), encoding="utf-8") as file:
                text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
            for name in sorted(set(re.findall(r"\b(\w+)\(", text))):
                if owner.get(name, module) != module:
                    yield module + ".h", name, owner[name] + ".c"


def check(folder, symbols):
    modules = modules_in(folder)
    needs = {module: collections.defaultdict(list) for module in modules}
    add_includes(folder, modules, needs)
    seen = add_symbols(folder, modules, symbols, needs)
    circles = components(needs)
    foreign = list(foreign_declarations(folder, modules, symbols))
    for header, name, other in foreign:
        print(f"not ok - {folder}/{header} declares {name}, which {other} defines")
    for circle in circles:
        print(f"not ok - {folder}: a circle of {', '.join(circle)}")
        for module in circle:
            for other in circle:
                if needs[module].get(other):
                    print(f"#   {module} needs {other}: {' '.join(needs[module][other])}")
    if not circles and not foreign:
        print(f"ok - {folder}: no circle among {len(modules)} modules, {seen} of them compiled")
    return len(circles) + len(foreign), seen


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: circles.py BUILD_DIR FOLDER...")
    folders = [folder.rstrip("/") for folder in sys.argv[2:]]
    symbols = symbols_in(objects_in(sys.argv[1]), folders)
    results = [check(folder, symbols) for folder in folders]
    if not any(seen for _, seen in results):
        sys.exit(f"circles.py: {sys.argv[1]} has no object of these folders")
    sys.exit(1 if any(bad for bad, _ in results) else 0)


main()
