#!/usr/bin/env python3
"""A toptd that says what a file tells it to, for tests of the Slurm plugin.

    fake_toptd.py DIR [--tcp]

Listens on DIR/sock (or a free loopback port) and writes its URL to DIR/url when ready.
Each POST is answered from DIR/answer: the first line is the status, the rest the body; a
first line "hang" means never, "garbage" means bytes that are no HTTP, "later N" makes the
first N answers 202.  Each request is added to DIR/requests: its target, then its body's
length and SHA-256.  Ends when standard input ends."""
import hashlib
import http.server
import os
import socket
import socketserver
import sys
import threading

folder = sys.argv[1]
lock = threading.Lock()
waits = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global waits
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock, open(os.path.join(folder, "requests"), "a") as log:
            log.write("%s %s %s\n" % (self.path, len(body), hashlib.sha256(body).hexdigest()))
        with open(os.path.join(folder, "answer")) as f:
            first, rest = f.readline().split(), f.read().encode()
        if first[0] == "hang":
            threading.Event().wait(60)
            return
        if first[0] == "garbage":
            self.wfile.write(b"220 mail.example.org ESMTP ready\r\n\r\n")
            self.close_connection = True
            return
        status = 200 if first[0] == "later" else int(first[0])
        if first[0] == "later" and waits < int(first[1]):
            waits += 1
            status, rest = 202, b"TASK=t-1\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (rest[:7], rest[7:]):
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def address_string(self):
        return "peer"

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True


class UnixServer(Server):
    address_family = socket.AF_UNIX


if "--tcp" in sys.argv:
    server = Server(("127.0.0.1", 0), Handler)
    url = "http://127.0.0.1:%d" % server.server_address[1]
else:
    path = os.path.join(folder, "sock")
    server = UnixServer(path, Handler)
    os.chmod(path, 0o777)
    url = "unix:" + path
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(os.path.join(folder, "url.tmp"), "w") as f:
    f.write(url)
os.rename(os.path.join(folder, "url.tmp"), os.path.join(folder, "url"))
sys.stdin.read()
