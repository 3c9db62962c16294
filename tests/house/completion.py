#!/usr/bin/env python3
"""completion.py COMPLETION.SH TOPT bash|zsh - what the Tab key does, typed into the shell on a terminal of its own. Prints TAP."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

make, topt, shell = sys.argv[1:]
if not shutil.which(shell):
    print(f"1..0 # skipped: '{shell}' is not installed")
    sys.exit(77)
failed = done = 0


def check(good, text):
    global failed, done
    done, failed = done + 1, failed + (not good)
    print(f"{'' if good else 'not '}ok {done} - {text}")


class Terminal:
    def __init__(self, words, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="dumb", PS1="> ", LC_ALL="C.UTF-8", HOME=folder, INPUTRC="/dev/null", COLUMNS="200",
                              PATH=os.path.dirname(topt) + ":" + os.environ["PATH"])
            os.execvp(words[0], words)

    def type(self, text, wanted, seconds=30):
        """Type, and read until what is wanted is there, or nothing comes for so long."""
        os.write(self.fd, text.encode())
        seen, until = "", time.time() + seconds
        while time.time() < until and not re.search(wanted, seen):
            if select.select([self.fd], [], [], 0.1)[0]:
                seen += os.read(self.fd, 65536).decode(errors="replace")
        return seen

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "_topt")
    with open(path, "w") as out:
        subprocess.run(["sh", make, topt, shell], stdout=out, check=True)
    if shell == "zsh":
        t = Terminal(["zsh", "-f", "-i"], folder)
        t.type(f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; echo re''ady\n", "ready")
    else:
        t = Terminal(["bash", "--norc", "--noprofile", "-i"], folder)
        t.type(f"bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; . {path}; echo re''ady\n", "ready")
    clear = "\x15"  # Ctrl-U: the line is begun anew
    check("lan" in t.type("topt pl\t", "lan ?"), "the first Tab of all: a command")
    check("work" in t.type(clear + "topt plan --frame\t", "work"), "an option of a command")
    check("-nvl72" in t.type(clear + "topt plan model.json --hw gb2\t", "nvl72"), "a cluster, after --hw")
    seen = t.type(clear + "topt client \t\t", "(?s)(?=.*get-plan).*unshare")
    check("get-plan" in seen and "unshare" in seen, "the client's commands")
    check("--mode" not in seen and "compare" not in seen, "and no other's")
    check("dry-run" in t.type(clear + "topt sbatch --topt-dr\t", "y-run"), "an option of topt sbatch")
    t.end()
print(f"1..{done}")
sys.exit(failed != 0)
