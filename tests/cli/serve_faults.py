# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Memory runs out in a server, or the system refuses something: whichever allocation or call fails while a request is
received, computed or answered, it is answered rightly, or with an error, or its connection is closed; nothing is lost,
and the next request is answered. Every ESPALIER_STRIDE-th allocation fails, alone and with all that follow it; every
5th without it."""
import collections
import errno
import mmap

from serving import *

stride = int(os.environ.get("ESPALIER_STRIDE", "5"))
library = os.environ["builddir"] + "/tests/faults/.libs/refuse.so"


class Account:
    """What tests/faults/refuse.c shares: six integers of 64 bits."""

    def __init__(self, path):
        self.path = write(path, "\0" * 48)
        with open(path, "r+b") as f:
            self.shared = mmap.mmap(f.fileno(), 48)
        self.disarm()

    def put(self, i, value):
        self.shared[8 * i : 8 * i + 8] = struct.pack("q", value)

    def get(self, i):
        return struct.unpack("q", self.shared[8 * i : 8 * i + 8])[0]

    def arm(self, fault, n):
        """From now on n calls of a kind succeed, and then one fails, or all do."""
        for i, value in enumerate((fault.kind, fault.error)):
            self.put(i, value)
        self.put(4, 0)
        self.put(3, fault.on)
        self.put(2, n)

    def disarm(self):
        self.put(2, -1)

    refused = property(lambda self: self.get(4))
    blocks = property(lambda self: self.get(5))


MEMORY, ACCEPT, RECEIVE, SEND, WATCH, WAIT, WRITE = range(7)
Fault = collections.namedtuple("Fault", "what kind error on", defaults=(False,))
faults = [
    Fault("there is no memory", MEMORY, errno.ENOMEM),
    Fault("there is no memory any more", MEMORY, errno.ENOMEM, True),
    Fault("accept: too many files", ACCEPT, errno.EMFILE),
    Fault("accept: the client has gone", ACCEPT, errno.ECONNABORTED),
    Fault("receive: the connection is lost", RECEIVE, errno.ECONNRESET),
    Fault("receive: no memory", RECEIVE, errno.ENOMEM),
    Fault("send: the connection is lost", SEND, errno.ECONNRESET),
    Fault("send: no memory", SEND, errno.ENOBUFS),
    Fault("epoll: no memory", WATCH, errno.ENOMEM),
    Fault("epoll: interrupted", WAIT, errno.EINTR),
    Fault("log: the disk is full", WRITE, errno.ENOSPC),
]


def tensor(name, datatype, *data):
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": data}


def body(*inputs):
    return json.dumps({"id": "one", "inputs": inputs, "outputs": [{"name": "total"}]})


def frame(page):
    """The counters without their values, and without those that there are for some answers only."""
    return [line.rsplit(" ", 1)[0] for line in page.splitlines() if "http_requests_total{" not in line]


tree = body(
    tensor("word", "INT32", 0, 1, -1, 1, -1),
    tensor("child_begin", "INT32", 0, 0, 0, 2, 2, 4),
    tensor("children", "INT32", 0, 1, 2, 3),
)
as_json = {"Content-Type": "application/json"}
infer = "/v2/models/tiny/infer"
# What is asked, and what a right answer is: by default that without a fault.
requests = {
    "tensors": ("POST", infer, tree, as_json),
    "texts in a tensor": ("POST", infer, body(tensor("structure", "BYTES", "((2 a) (2 b))", "(2 \u00e9)")), as_json),
    "brackets": ("POST", "/v1/run", "((2 a) ((2 b) (2 c)))\n(2 a)\n"),
    "structures in JSON": (
        "POST",
        "/v1/run/tiny",
        '{"children": [[], [], [0, 1]], "data": {"word": ["a", "\\u0062", null]}, "text": "a b"}',
        as_json,
    ),
    "a large body": ("POST", "/v1/run", perfect(9)),
    "a body in chunks": ("POST", "/v1/run", iter),
    "a word that is none": ("POST", infer, tree.replace("-1", "77"), as_json),
    "no request": ("POST", infer, "{", as_json),
    "metadata": ("GET", "/v2/models/tiny"),
    "nothing there": ("GET", "/nothing"),
    "counters": ("GET", "/metrics"),
}


def attempt(s, request):
    """Status and text of an answer; "closed": the connection was closed without a whole one."""
    method, path, *more = request
    if more and more[0] is iter:
        more[0] = iter([b"((2 a) ", b"(2 b)) " + b"((2 a) (2 b)) " * 9, b"\n"])
    try:
        status, _, text = s.ask(method, path, *more)
    except TimeoutError:
        return "no answer in time", ""
    except (http.client.HTTPException, ConnectionError):
        return "closed", ""
    return status, text


def judge(found, good, path):
    """Whether an answer is right, or says that it is none; what is wrong is said, perhaps without a hint."""
    status, text = found
    if status == "closed":
        return True
    if status in (500, 503, good[0]) and status != 200:
        return "error" in json.loads(text)
    return status == 200 and frame(text) == frame(good[1]) if path == "/metrics" else found == good


def try_request(s, account, request, good, fault):
    """How many calls failed, and what went wrong."""
    global rest
    wrong, tried, n = [], 0, 0
    while True:
        account.arm(fault, n)
        found = attempt(s, request)
        within(lambda: account.blocks <= rest, 0.2)
        account.disarm()
        if not judge(found, good, request[1]):
            wrong.append("%d: %r" % (n, found))
        if s.process.poll() is not None:
            ok(False, "%s at %d: the server goes on" % (fault.what, n), s.text())
            done()
        again = attempt(s, request)
        if again != good and not (request[1] == "/metrics" and judge(again, good, "/metrics")):
            wrong.append("after %d: %r" % (n, again))
        if not within(lambda: account.blocks == rest, patience if not wrong else 1):
            wrong.append("after %d: %d blocks more" % (n, account.blocks - rest))
            rest = account.blocks
        if not account.refused:
            return tried, wrong
        tried += account.refused
        n += stride if fault.kind == MEMORY else 1


account = Account(tmp + "/account")
s = Server("--at", "model", env={**os.environ, "LD_PRELOAD": library, "REFUSE": account.path})
for _ in range(50):
    for request in requests.values():
        attempt(s, request)
time.sleep(0.1)
rest = account.blocks
ok(rest > 0, "the server's allocations are counted")
for name, request in requests.items():
    good = attempt(s, request)
    for fault in faults:
        tried, wrong = try_request(s, account, request, good, fault)
        ok(tried and not wrong, "%s, %s: %d times" % (name, fault.what, tried), "\n".join(wrong[:5]))
page = dict(line.rsplit(" ", 1) for line in attempt(s, requests["counters"])[1].splitlines() if line[0] != "#")


def counted(name, *labels):
    return sum(float(page["espalier_%s{%s}" % (name, label)]) for label in labels)


one = 'model="tiny"'
ended = ['%s,outcome="%s"' % (one, outcome) for outcome in ("done", "failed", "expired", "cancelled")]
equal(
    (counted("submitted_total", one), counted("pending", one), page["espalier_http_in_flight"]),
    (counted("requests_total", *ended), 0, "1"),
    "each ticket has ended once, and each request but that for the counters",
)
answers = sum(float(n) for name, n in page.items() if name.startswith("espalier_http_requests_total"))
equal(s.stop(), 0, "the server ends in order")
equal(
    len(s.lines()) + float(page["espalier_access_log_lost_total"]),
    answers + 1,
    "each request has a whole line in the access log, or is counted as lost",
)
done()
