# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Clients that break off, are silent, slow, or too many; requests that are too many."""
import select

from serving import *

post = b"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
large = perfect(16)

# --- what ends by itself ---

s = Server("--timeout", "0.4", "--rows", "1000000")


def ended(sender, text):
    """Whether the server closes the connection of a client in about the time that is allowed."""
    p = s.connect()
    begin = time.monotonic()
    got = sender(p)
    got = answer(p) if got is None else got
    p.close()
    ok(0.2 < time.monotonic() - begin < patience / 2, text, (time.monotonic() - begin, got))


def drip(p):
    try:
        for byte in b"GET /v2/health/live HTTP/1.1\r\nX-Long: " + b"x" * 1000000:
            p.sendall(bytes([byte]))
            time.sleep(0.02)
    except OSError:
        return b""


def unread(p):
    """Asks for megabytes and reads none; sees that it was shut out by what it cannot send any more."""
    p.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    try:
        while True:
            p.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
    except OSError:
        return b""


ended(lambda p: None, "a client that says nothing is left")
ended(lambda p: p.sendall(b"GET /v2/hea"), "one that says half a line")
ended(lambda p: p.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n"), "half a head")
ended(lambda p: p.sendall(post % 1000 + b"(2 a"), "half a body")
ended(drip, "one that sends a byte at a time")
ended(unread, "one that does not read")
ok(s.metric("espalier_http_timeouts_total") >= 6, "all of them are counted")
ok(within(lambda: s.metric("espalier_http_body_bytes") == 0), "and hold nothing")
equal([l["status"] for l in s.lines() if l["path"] == "/v1/run"], [408], "half a body is in the log")

for junk, what in (
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 50 + b"\r\n\r\n", "TLS"),
    (b"\0" * 1000 + b"\r\n\r\n", "zeros"),
    (b"GET\r\n\r\n", "a line without a path"),
    (b"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", "a negative length"),
    (b"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", "an impossible length"),
    (b"POST /v1/run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "a chunk without a size"),
):
    p = s.connect()
    p.sendall(junk)
    text = answer(p)
    ok(not text or text[:10] in (b"HTTP/1.1 4", b"HTTP/1.0 4"), "%s is no request" % what, text)
    p.close()
p = s.connect()
p.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 100000)
ok(b" 431 " in answer(p)[:30], "a head is not of any length")
p.close()
equal(s.ask("GET", "/v2/health/ready")[0], 200, "after all of that it answers as before")

# --- who leaves ---


def counted(outcome):
    return s.metric('espalier_requests_total{model="tiny",outcome="%s"}' % outcome)


def pending():
    return s.metric('espalier_pending{model="tiny"}')


def cancels(leave):
    """Whether the request of a client that leaves while it is computed is counted; not so if it was computed before."""
    before = counted("cancelled")
    p = s.connect()
    p.sendall(post % len(large) + large.encode())
    p.settimeout(0.02)
    within(lambda: pending() == 1, 5)
    leave(p)
    within(lambda: pending() == 0)
    p.close()
    return within(lambda: counted("cancelled") == before + 1, 1)


for leave, what in ((lambda p: p.close(), "closes"), (lambda p: p.shutdown(socket.SHUT_WR), "half closes")):
    ok(within(lambda: cancels(leave)), "the request of a client that %s its end is cancelled" % what)
ok(within(lambda: [l["status"] for l in s.lines() if l["nodes"]].count(499) >= 2), "and in the log")
equal(s.stop(), 0, "it ends with 0")

# --- too many ---

s = Server("--connections", "4", "--requests", "1", "--rows", "1000000", "--timeout", "60")
idle = [s.connect() for _ in range(4)]
for p in idle:
    p.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
ok(all(p.recv(1000) for p in idle), "as many connections as allowed are answered")
fifth = s.connect()
fifth.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
fifth.settimeout(0.2)
try:
    early = fifth.recv(1000)
except socket.timeout:
    early = b""
equal(early, b"", "another one waits")
idle.pop().close()
fifth.settimeout(patience)
ok(b"200 OK" in fifth.recv(1000), "until one of them is closed")

first, asking = idle.pop(), idle.pop()


def ask_two():
    """The answers to a request of many nodes, and to the last of those that come meanwhile, until one is refused."""
    first.sendall(post % len(large) + large.encode())
    refusal = b""
    while b" 429 " not in refusal and not select.select([first], [], [], 0)[0]:
        asking.sendall(post % 5 + b"(2 a)")
        refusal = asking.recv(1000)
    texts[:] = [refusal, first.recv(1 << 20)]
    while b"\r\n\r\n" not in texts[1] or len(texts[1]) < 100000:
        texts[1] += first.recv(1 << 20)
    return b" 429 " in texts[0]


texts = []
ok(within(ask_two, 20) and b"service-full" in texts[0], "a request too many is refused", texts[:1])
ok(b"Retry-After: " in texts[0] and b'"error"' in texts[0], "and told to come again")
ok(b"200 OK" in texts[1], "the one before it is answered")
asking.sendall(post % 5 + b"(2 a)")
ok(b"200 OK" in asking.recv(1000), "and then there is room")
for p in (*idle, first, asking, fifth):
    p.close()

# A flood of connections that are never used, and of requests.
flood = []
for _ in range(200):
    p = socket.socket()
    p.setblocking(False)
    p.connect_ex(("127.0.0.1", s.port))
    flood.append(p)
for p in flood:
    p.close()
equal(s.ask("GET", "/v2/health/live")[0], 200, "a flood passes")
equal(s.stop(), 0, "it ends with 0")
done()
