# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What is asked and answered over HTTP, and with which status."""
import http.client
import json
import threading

from serving import *

s = Server("--at", "model", "--body-bytes", "100000")
tiny = "/v2/models/tiny"
# (a b) b: 5 nodes, of which the last is the root.
tree = {
    "id": "one",
    "inputs": [
        {"name": "word", "datatype": "INT32", "shape": [5], "data": [0, 1, -1, 1, -1]},
        {"name": "child_begin", "datatype": "INT32", "shape": [6], "data": [0, 0, 0, 2, 2, 4]},
        {"name": "children", "datatype": "INT32", "shape": [4], "data": [0, 1, 2, 3]},
    ],
}
as_json = {"Content-Type": "application/json"}


def infer(body, path=tiny + "/infer", headers=as_json):
    status, headers, text = s.ask("POST", path, body if isinstance(body, (str, bytes)) else json.dumps(body), headers)
    return status, json.loads(text) if text.startswith("{") else text, headers


def refused(found, status, text, what):
    ok(found[0] == status and text in found[1]["error"], what, found)


# --- health and metadata ---

equal(s.ask("GET", "/v2/health/live")[0], 200, "it lives")
equal(s.ask("GET", "/v2/health/ready")[0], 200, "it is ready")
equal(json.loads(s.ask("GET", "/v2")[2])["name"], "espalier", "it says what it is")
about = json.loads(s.ask("GET", tiny)[2])
equal(
    (about["name"], about["versions"], [o["name"] for o in about["outputs"]][:2], about["inputs"][0]["datatype"]),
    ("tiny", ["1"], ["twice", "total"], "INT32"),
    "and what the model takes and gives",
)
equal(s.ask("GET", tiny + "/versions/1")[2], s.ask("GET", tiny)[2], "the version is the generation of the weights")
equal(json.loads(s.ask("GET", tiny + "/versions/1/ready")[2]), {"name": "tiny", "ready": True}, "it is ready, too")
status, headers, text = s.ask("HEAD", "/v2/health/live")
equal((status, text, headers["Content-Length"]), (200, "", "13"), "HEAD is GET without a body")

# --- inference ---

status, result, headers = infer(tree)
outputs = {o["name"]: o["data"] for o in result["outputs"]}
equal(
    (status, outputs["total"], result["id"]),
    (200, [17], "one"),
    "a tree is computed, and has the name that it was given",
)
equal(outputs["twice"], [2, 4, 6, 8, 10, 10, 6, 8, 16, 18], "with a row for each node")
equal(infer(tree, tiny + "/versions/1/infer")[1], result, "so it is by the number of the version")
equal(infer(tree, headers={})[0], 200, "a body without a type is taken for JSON")
equal(
    infer(tree, headers={"Content-Type": "application/x-www-form-urlencoded"})[0],
    200,
    "and one of the type that curl gives untold",
)
status, headers, text = s.ask("POST", "/v1/run/tiny", "((2 a) (2 b)) ", {"Content-Type": "text/plain"})
ok(status == 200 and "8" in text, "a tree in brackets is computed", (status, text))
equal(
    s.ask("POST", "/v1/run", "(2 (2 a) (2 b))")[2],
    s.ask("POST", "/v1/run/tiny", "(2 (2 a) (2 b))")[2],
    "the only model needs no name",
)
equal(s.ask("GET", "/v2", headers={"X-Request-Id": "mine"})[1]["X-Request-Id"], "mine", "a request keeps its name")
answered = s.ask("GET", "/v2", headers={"X-Request-Id": "ü".encode().decode("latin-1")})[1]
ok(len(answered["X-Request-Id"]) == 16, "but not any")

# --- refusals ---

refused(infer(tree, "/v2/models/none/infer"), 404, "no model 'none'", "404: no such model")
refused(infer(tree, tiny + "/versions/7/infer"), 404, "version 1 now", "404: no such version")
refused(infer(tree, tiny + "/infer/more"), 404, "nothing at", "404: no such path")
equal(s.ask("GET", "/v2/models/" + "x" * 500)[0], 404, "404: a name longer than any")
status, headers, text = s.ask("GET", tiny + "/infer")
equal((status, headers["Allow"]), (405, "POST"), "405: GET of what is posted")
status, headers, text = s.ask("POST", "/metrics", "x")
equal((status, headers["Allow"]), (405, "GET, HEAD"), "405: POST of what is got")
equal(s.ask("BREW", "/v2")[0], 405, "405: a method of its own")
as_text = infer(tree, headers={"Content-Type": "text/plain"})
refused(as_text, 415, "application/json", "415: a text is no request for inference")
refused(infer(tree, "/v1/run", {"Content-Type": "image/png"}), 415, "", "415: nor is a picture a tree")
compressed = infer(tree, headers={**as_json, "Content-Encoding": "gzip"})
refused(compressed, 415, "gzip", "415: what is compressed is not read")
refused(infer("{"), 400, "", "400: JSON that ends early")
refused(infer(b"\xff\x00"), 400, "", "400: bytes")
refused(infer(""), 400, "", "400: nothing")
wrong = json.loads(json.dumps(tree))
wrong["inputs"][0]["data"][0] = 99
refused(infer(wrong), 400, "99", "400: a word that is none is named")
cyclic = json.loads(json.dumps(tree))
cyclic["inputs"][2]["data"][0] = 4
refused(infer(cyclic), 400, "", "400: a cycle")
refused((*infer("(2 (2 zzz", "/v1/run", {}),), 400, "", "400: a bracket that is not closed")
refused(infer(b" " * 100001), 413, "100000", "413: a body that is too long")
bounded = write(
    tmp + "/bounded.ra",
    "model bounded\nstructure none\ninput x[D] within 0.5\nparam E[V, D], W[D, D]\noutput y = E @ (W @ x)\n",
)
b = Server(models=(bounded, "--weights", tmp + "/tiny.safetensors"))


def rows(*numbers):
    x = {"name": "x", "datatype": "FP32", "shape": [len(numbers) // 2, 2], "data": numbers}
    status, headers, text = b.ask("POST", "/v2/models/bounded/infer", json.dumps({"inputs": [x]}), as_json)
    return status, json.loads(text)


equal(rows(0.5, -0.5)[0], 200, "what a model reads within a bound may be at the bound")
refused(rows(0, 0, 0, 0.75), 400, "'x[1]'", "400: an element beyond it is named")
refused(rows(0, 0, 0, 0.75), 400, "input-beyond-bound", "by the id of the diagnostic")
equal(rows(0, 0)[0], 200, "and the next request is answered")
b.stop()
late = {**tree, "parameters": {"deadline_ms": 0.000001}}
refused(infer(late), 504, "", "504: a deadline that has passed")
equal(infer(tree)[1], result, "after all of that it answers as before")

# --- connections ---

c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=patience)
found = [ask(c, "POST", tiny + "/infer", json.dumps(tree), as_json)[0]]
first = c.sock
found += [ask(c, "GET", "/v2/models/none")[0], ask(c, "POST", "/v1/run", "(2 a)")[0], ask(c, "HEAD", "/metrics")[0]]
ok(
    found == [200, 404, 200, 200] and c.sock is first,
    "a connection takes one request after the other, refused ones as well",
    found,
)
c.close()

body = json.dumps(tree).encode()
head = b"POST /v2/models/tiny/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n"
p = s.connect()
p.sendall((head % (len(body), b"") + body) * 3 + b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
text = answer(p)
equal((text.count(b"200 OK"), text.count(b'"id":"one"')), (4, 3), "requests that come at once are answered in order")
p.close()
p = s.connect()
p.sendall(head % (len(body), b"Expect: 100-continue\r\nConnection: close\r\n"))
going = p.recv(100)
p.sendall(body)
ok(b"100 Continue" in going and b"200 OK" in answer(p), "Expect: 100-continue is answered")
p.close()
p = s.connect()
p.sendall(head % (10**9, b"Expect: 100-continue\r\n"))
ok(b" 413 " in p.recv(100), "and a body that is too long is refused before it comes")
p.close()
p = s.connect()
p.sendall(b"POST /v1/run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
for part in (b"(2 (2 a", b") (2 b", b"))"):
    p.sendall(b"%x\r\n%s\r\n" % (len(part), part))
p.sendall(b"0\r\n\r\n")
ok(b"200 OK" in answer(p), "a body may come in chunks")
p.close()
p = s.connect()
p.sendall(b"POST /v1/run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
for i in range(3):
    p.sendall(b"c350\r\n%s\r\n" % (b" " * 50000))
p.sendall(b"0\r\n\r\n")
ok(b" 413 " in answer(p), "but no more of them than of a body")
p.close()

# --- many clients: each gets its own answer ---


def answers_of(word, wanted, wrong):
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=patience)
    for _ in range(25):
        text = ask(c, "POST", "/v1/run", "(2 (2 %s) (2 %s))" % (word, word))[2]
        if text != wanted:
            wrong.append(text)
    c.close()


alone = {w: s.ask("POST", "/v1/run", "(2 (2 %s) (2 %s))" % (w, w))[2] for w in "abc"}
wrong = []
threads = [threading.Thread(target=answers_of, args=(w, alone[w], wrong)) for w in "abcabcab"]
[t.start() for t in threads]
[t.join() for t in threads]
ok(len(set(alone.values())) == 3 and not wrong, "eight clients at a time get what one gets alone", wrong[:3])

# --- metrics ---

status, headers, text = s.ask("GET", "/metrics")
ok(headers["Content-Type"].startswith("text/plain; version=0.0.4"), "metrics are those of Prometheus")
families = [l.split()[2] for l in text.splitlines() if l.startswith("# TYPE")]
equal(len(families), len(set(families)), "each family has one head")
ok(s.metric('espalier_http_requests_total{status="404"}') >= 5, "answers are counted by status", text)
ok(s.metric('espalier_requests_total{model="tiny",outcome="done"}') > 200, "and requests by outcome")
equal(s.metric("espalier_http_in_flight"), 1, "one is in flight: the one that asks")
equal(s.stop(), 0, "it ends with 0")

lines = s.lines()
inferred = [l for l in lines if l["path"] == tiny + "/infer" and l["status"] == 200]
equal(
    {k: inferred[0][k] for k in ("method", "model", "nodes", "generation")},
    {"method": "POST", "model": "tiny", "nodes": 5, "generation": 1},
    "each request has a line in the log",
)
ok(all(0 <= l["queue_us"] + l["compute_us"] <= l["whole_us"] + 2 for l in inferred), "whose times add up", inferred[:3])
done()
