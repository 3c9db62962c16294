"""kit.py - what the Python tests of toptd share: points of a test, and HTTP over a Unix socket."""

import http.client
import socket

tests = failed = 0


def ok(good, text, detail=""):
    """One point of the test, with what was seen where it fails."""
    global tests, failed
    tests += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {tests} - {text}", flush=True)
    if not good and detail != "":
        print("#   " + str(detail)[:900].replace("\n", "\n#   "), flush=True)


def finish():
    """The plan of the test; its exit status."""
    print(f"1..{tests}")
    return failed > 0


class Unix(http.client.HTTPConnection):
    """A connection to the socket at a path."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, target, body=None, timeout=60, **headers):
    """A request on a connection of its own: its reply, and the body."""
    c = Unix(path, timeout)
    try:
        c.request(method, target, body, {k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        return r, r.read()
    finally:
        c.close()
