# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Many requests of good clients while others break off, send garbage, do not read, or give impossible deadlines, and
weights are exchanged: each good request is answered once, with the results of its generation. ESPALIER_ENDURE, which
counts requests in process, says how many: a hundredth of it, in all; 2000 without it."""
import random
import threading

from serving import *

clients = 4
requests = int(os.environ.get("ESPALIER_ENDURE", "200000")) // 100 // clients
infer = "/v2/models/tiny/infer"
log = tmp + "/log"
s = Server("--timeout", "1", "--requests", "64", log=log)


def sum_of(scale, tree):
    """What tiny.ra computes of brackets, by hand: the sum of a leaf's row, added up, with weights times `scale`."""
    parts = tree.replace("(", " ").replace(")", " ").split()
    return scale * sum({"a": 3, "b": 7, "c": 11}[word] for word in parts if word != "2")


def draw_tree(draw, height):
    if height == 0 or draw.random() < 0.2:
        return "(2 %s)" % draw.choice("abc")
    return "(2 %s %s)" % (draw_tree(draw, height - 1), draw_tree(draw, height - 1))


# --- good clients: what each was answered, by name of the request ---

answered, wrong, refused = {}, [], []


def ask_well(number):
    draw = random.Random(number)
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=patience)
    for i in range(requests):
        name, tree = "%d-%d" % (number, i), draw_tree(draw, 5)
        body = {"id": name, "inputs": [{"name": "structure", "datatype": "BYTES", "shape": [1], "data": [tree]}]}
        status, text = 429, ""
        while status == 429:
            status, headers, text = ask(c, "POST", infer, json.dumps(body), {"Content-Type": "application/json"})
            refused.extend([name] if status == 429 else [])
        found = json.loads(text)
        if status != 200 or found["id"] != name:
            wrong.append((name, status, text))
            continue
        total = {o["name"]: o["data"] for o in found["outputs"]}["total"][0]
        answered.setdefault(name, []).append((int(found["model_version"]), total, sum_of(1, tree)))


# --- others ---

over = threading.Event()
breaks = [0]


def break_off(p, draw):
    """Sends a request, all of it or in part, and is gone."""
    body = draw_tree(draw, 8).encode()
    whole = b"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    p.sendall(whole[: draw.randrange(len(whole) + 1)])


def send_garbage(p, draw):
    p.sendall(bytes(draw.randrange(256) for _ in range(draw.randrange(1, 300))) + b"\r\n\r\n")
    p.recv(100)


def flood(p, draw):
    """Asks for much and reads nothing."""
    p.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    p.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)


def be_late(p, draw):
    body = (
        b'{"parameters":{"deadline_ms":0.001},'
        b'"inputs":[{"name":"structure","datatype":"BYTES","shape":[1],"data":["(2 a)"]}]}'
    )
    p.sendall(b"POST /v2/models/tiny/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    p.recv(100)


def break_things():
    draw = random.Random(99)
    while not over.is_set():
        try:
            with s.connect() as p:
                p.settimeout(5)
                draw.choice((break_off, send_garbage, flood, be_late))(p, draw)
        except OSError:
            pass
        breaks[0] += 1


def swap_weights():
    scale = 1
    while not over.wait(0.1):
        scale += 1
        weights(tmp + "/tiny.safetensors", scale)
        s.send(signal.SIGHUP)
        within(lambda: s.has_said("weights of generation %d" % scale) or over.is_set())


def is_sanitized():
    """Whether what is freed stays resident for a while."""
    with open("/proc/%d/maps" % s.process.pid) as f:
        return "san.so" in f.read()


def resident():
    with open("/proc/%d/status" % s.process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


# Memory is looked at when a quarter is done, and at the end.
good = [threading.Thread(target=ask_well, args=(i,)) for i in range(clients)]
bad = [threading.Thread(target=break_things), threading.Thread(target=swap_weights)]
for t in good + bad:
    t.start()
within(lambda: len(answered) > clients * requests // 4, 3600)
before, sanitized = resident(), is_sanitized()
for t in good:
    t.join()
after = resident()
over.set()
for t in bad:
    t.join()

equal(wrong[:3], [], "each request is answered as itself")
equal((len(answered), max(map(len, answered.values()))), (clients * requests, 1), "each once")
odd = [a for answers in answered.values() for a in answers if a[1] != a[0] * a[2]]
equal(odd[:3], [], "with the results of its generation")
generations = {answers[0][0] for answers in answered.values()}
ok(len(generations) > 1, "of which there were several", generations)
ok(breaks[0] > 10, "while others broke things", breaks)
ok(sanitized or after < before + 16384, "memory stays as it is", "%d KiB, before %d" % (after, before))
ok(within(lambda: s.metric('espalier_pending{model="tiny"}') == 0), "nothing is left waiting")
equal(s.stop(), 0, "and it ends in order")
ended = {}
for line in s.lines():
    if line["path"] == infer and line["status"] == 200:
        ended[line["request_id"]] = ended.get(line["request_id"], 0) + 1
more = len(ended) - clients * requests  # of other clients, whose deadline of a microsecond was kept
ok(0 <= more <= breaks[0] and set(ended.values()) == {1}, "the log has each of them once", (len(ended), set(ended.values())))
print("# %d requests, %d refused before, %d other clients, %d generations, %d to %d KiB"
      % (clients * requests, len(refused), breaks[0], len(generations), before, after))
done()
