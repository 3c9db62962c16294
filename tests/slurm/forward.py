#!/usr/bin/env python3
"""What `ssh -L PORT:SOCKET` does, for tests of the dashboard.

    forward.py SOCKET PORT-FILE

Hands on each connection to a free loopback port, whose number is written to PORT-FILE, to a Unix socket.
Ends when it is killed."""
import os
import socket
import sys
import threading


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(listener):
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(sys.argv[1])
        for pair in (client, server), (server, client):
            threading.Thread(target=pump, args=pair, daemon=True).start()


port = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=serve, args=(port,), daemon=True).start()
with open(sys.argv[2] + ".tmp", "w") as f:
    f.write("%d\n" % port.getsockname()[1])
os.rename(sys.argv[2] + ".tmp", sys.argv[2])
threading.Event().wait()
