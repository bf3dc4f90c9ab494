# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What the tests of `espalier serve` share: a server of their own, clients, and the Test Anything Protocol."""
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

srcdir = os.environ.get("srcdir", ".")
espalier = os.environ.get("ESPALIER", "./espalier")
here = srcdir + "/tests/cli/"
tmp = tempfile.mkdtemp(prefix="espalier-serve-")
# Sanitizers make all of it slower.
patience = 60.0

count = failed = 0


def ok(condition, text, seen=None):
    global count, failed
    count += 1
    print(("ok" if condition else "not ok"), count, "-", text, flush=True)
    if not condition:
        failed += 1
        if seen is not None:
            print("# found:", str(seen).replace("\n", "\n# "), flush=True)
    return condition


def equal(found, wanted, text):
    return ok(found == wanted, text, "%r\nwanted: %r" % (found, wanted))


def done():
    import shutil

    shutil.rmtree(tmp, ignore_errors=True)
    print("1..%d" % count)
    sys.exit(1 if failed else 0)


def within(condition, seconds=patience):
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


# --- files ---


def weights(path, scale=1):
    """Weights of tiny.ra: rows E of four words, and W, which exchanges two numbers. The file appears whole."""
    e = [scale * x for x in range(1, 9)]
    header = json.dumps(
        {
            "E": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]},
            "W": {"dtype": "F32", "shape": [2, 2], "data_offsets": [32, 48]},
        }
    ).encode()
    with open(path + ".new", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<12f", *e, 0, 1, 1, 0))
    os.rename(path + ".new", path)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


words = write(tmp + "/words", "a\nb\nc\n<unk>\n")
weights(tmp + "/tiny.safetensors")
given = ["--weights", tmp + "/tiny.safetensors", "--vocab", words]


# --- a server ---


class Server:
    """espalier serve, of tiny.ra unless told otherwise, by the interpreter; its log is in the file `log`."""

    number = 0

    def __init__(self, *arguments, models=(here + "tiny.ra", *given), listen=("0",), wait=True, log=None, **more):
        Server.number += 1
        self.log = log or "%s/log%d" % (tmp, Server.number)
        self.messages = "%s/messages%d" % (tmp, Server.number)
        command = [espalier, "serve", "--backend", "interpreter", "--threads", "1"]
        for address in listen:
            command += ["--listen", address]
        self.process = subprocess.Popen(
            [*command, *models, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=open(self.log, "wb"),
            stderr=open(self.messages, "wb"),
            **more
        )
        self.port = 0
        if wait:
            within(lambda: self.has_said("listening on") or self.process.poll() is not None)
            self.port = int((self.said("http://127.0.0.1:") or ":0").rsplit(":", 1)[1])
        if wait and wait != "listening":
            within(lambda: self.has_said("espalier: ready") or self.process.poll() is not None)

    def text(self):
        with open(self.messages) as f:
            return f.read()

    def has_said(self, text):
        return text in self.text()

    def said(self, text):
        """The first whole line that has a text."""
        return next((l for l in self.text().splitlines() if text in l), "")

    def lines(self):
        with open(self.log) as f:
            return [json.loads(line) for line in f]

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and text of an answer, on a connection of its own."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        try:
            return ask(c, method, path, body, headers)
        finally:
            c.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=patience)

    def metric(self, sample):
        for line in self.ask("GET", "/metrics")[2].splitlines():
            if line.startswith(sample + " "):
                return float(line.split()[-1])
        return 0

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        """The exit status."""
        if self.process.poll() is None:
            self.send(number)
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it did not end"


def ask(c, method, path, body=None, headers=None):
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    return r.status, r.headers, r.read().decode()


def answer(s):
    """All that comes from a socket until its end."""
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more
    except (ConnectionResetError, socket.timeout):
        return got


def perfect(height):
    """A bracketed tree of 2^height leaves."""
    return "(2 a)" if height == 0 else "(2 %s %s)" % (perfect(height - 1), perfect(height - 1))
