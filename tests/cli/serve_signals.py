# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Starting, reloading and ending; sockets; the access log."""
import shutil
import threading

from serving import *

# --- what is refused before anything is served ---


def refused(arguments, status, text, what):
    r = subprocess.run([espalier, "serve", *arguments], capture_output=True, text=True, timeout=patience)
    ok(r.returncode == status and text in r.stderr and not r.stdout, what, (r.returncode, r.stderr))


tiny = here + "tiny.ra"
refused([], 2, "needs a model", "no model")
refused([tiny, tiny, "--weights", "x"], 2, "--weights", "weights of one model for two")
for address in ("nonsense", "127.0.0.1:http", "::1:80", "[::1]", ":80", "1.2.3.4:", "unix:" + "x" * 200):
    refused([tiny, *given, "--listen", address], 1, "--listen", "an address as %.20s" % address)
refused([tiny, *given, "--socket-mode", "999", "--listen", "0"], 1, "--socket-mode", "a mode that is none")
refused([tiny, "--backend", "interpreter", "--listen", "0"], 1, "weights are missing", "a model without weights")
refused([tmp + "/none.ra", *given, "--listen", "0"], 1, "none.ra", "a model that is not there")
nowhere = "/nonexistent/log"
refused([tiny, *given, "--listen", "0", "--access-log", nowhere], 1, nowhere, "a log that cannot be")
refused(["--models", "/nonexistent", "--listen", "0"], 1, "/nonexistent", "a folder that is not there")
taken = socket.create_server(("127.0.0.1", 0))
refused([tiny, *given, "--listen", "%d" % taken.getsockname()[1]], 1, "cannot listen", "a port that is taken")
taken.close()

# --- while models are loaded ---

os.mkfifo(tmp + "/slow.ra")
s = Server(models=(tmp + "/slow.ra", *given), wait="listening")
equal(s.ask("GET", "/v2/health/live")[0], 200, "it lives before its model is there")
status, headers, text = s.ask("GET", "/v2/health/ready")
equal((status, headers["Retry-After"]), (503, "1"), "and is not ready")
equal(s.ask("POST", "/v2/models/slow/infer", "{}")[0], 503, "nor is the model")
with open(tiny) as f, open(tmp + "/slow.ra", "w") as to:
    to.write(f.read())
ok(within(lambda: s.ask("GET", "/v2/health/ready")[0] == 200), "it is when the model is there")
equal(s.ask("POST", "/v1/run/slow", "(2 a)")[0], 200, "and answers")
equal(s.stop(), 0, "SIGTERM ends it with 0")
s = Server(models=(tmp + "/slow.ra", *given), wait="listening")
equal(s.stop(signal.SIGINT), 0, "SIGINT ends it with 0 while it loads")

# --- killed and started again ---

where = os.environ.get("ESPALIER_BACKEND_PATH", "").split(":")[0]
compilers = [name for name in ("llvm", "gccjit") if os.path.exists("%s/espalier-%s.so" % (where, name))]
if compilers:
    kept = tmp + "/kept"
    s = Server("--backend", compilers[0], "--cache-dir", kept)
    equal(s.ask("POST", "/v1/run/tiny", "(2 a)")[0], 200, "a server with a cache of its own answers")
    s.stop(signal.SIGKILL)
    equal(len(os.listdir(kept + "/images")), 1, "killed, it has left its program in the cache")
else:
    ok(True, "a killed server has left its program in the cache # SKIP no back end")

# --- weights exchanged under load ---

live = tmp + "/live.safetensors"
weights(live)
s = Server(models=(tiny, "--weights", live, "--vocab", words))
tree = json.dumps(
    {
        "inputs": [
            {"name": "word", "datatype": "INT32", "shape": [3], "data": [0, 1, -1]},
            {"name": "child_begin", "datatype": "INT32", "shape": [4], "data": [0, 0, 0, 2]},
            {"name": "children", "datatype": "INT32", "shape": [2], "data": [0, 1]},
        ]
    }
)
seen, stop = set(), threading.Event()


def load():
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=patience)
    while not stop.is_set():
        status, _, text = ask(c, "POST", "/v2/models/tiny/infer", tree)
        r = json.loads(text)
        total = next(o["data"] for o in r["outputs"] if o["name"] == "total") if status == 200 else None
        seen.add((status, r.get("model_version"), str(total)))
    c.close()


threads = [threading.Thread(target=load) for _ in range(3)]
[t.start() for t in threads]
ok(within(lambda: any(v == "1" for _, v, _ in seen)), "requests are answered")
for generation in (2, 3):
    weights(live, generation)
    s.send(signal.SIGHUP)
    ok(
        within(lambda: any(v == str(generation) for _, v, _ in seen)),
        "SIGHUP exchanges the weights: generation %d" % generation,
    )
with open(live + ".new", "w") as f:
    f.write("these are no weights")
os.rename(live + ".new", live)
s.send(signal.SIGHUP)
ok(within(lambda: s.has_said("stays as it was")), "weights that are none change nothing", s.text())
ok("live.safetensors" in s.text(), "and the reason is told")
weights(live, 4)
s.send(signal.SIGHUP)
ok(within(lambda: any(v == "4" for _, v, _ in seen)), "the next ones are taken")
stop.set()
[t.join() for t in threads]
# (a b): 2 + 1, and 3 + 4 of b, exchanged; each generation has a multiple of it.
wanted = {(200, str(g), "[%d]" % (10 * g)) for g in (1, 2, 3, 4)}
equal(seen, wanted, "each answer is of one generation, and says of which")
ok(
    within(lambda: s.metric('espalier_loads_total{outcome="done"}') == 4),
    "exchanges are counted, after requests may have the weights",
)
equal(s.metric('espalier_loads_total{outcome="failed"}'), 1, "and so are failures")
equal(s.ask("GET", "/v2/models/tiny/versions/4")[0], 200, "the version is the generation")
equal(s.stop(), 0, "it ends with 0")

# --- a folder ---

folder = tmp + "/models"
os.mkdir(folder)


def place(name):
    weights("%s/%s.safetensors" % (folder, name))
    shutil.copy(words, "%s/%s.vocab" % (folder, name))
    shutil.copy(tiny, "%s/%s.ra" % (folder, name))


def status_of(name):
    return s.ask("GET", "/v2/models/%s/ready" % name)[0]


place("one")
write(folder + "/broken.ra", "model ?")
write(folder + "/not here.ra", "")
s = Server(models=("--models", folder))
equal(
    (status_of("one"), status_of("broken"), status_of("not%20here")),
    (200, 503, 404),
    "models of a folder are served, broken ones are not",
)
equal(s.ask("GET", "/v2/health/ready")[0], 200, "which does not stop the others")
place("two")
os.unlink(folder + "/one.ra")
s.send(signal.SIGHUP)
ok(within(lambda: status_of("two") == 200), "a model that came is served at SIGHUP")
equal(status_of("one"), 404, "one that vanished is not")
with open(folder + "/two.ra", "a") as f:
    f.write("output first = h[0:1] at root\n")
s.send(signal.SIGHUP)
ok(within(lambda: '"first"' in s.ask("GET", "/v2/models/two")[2]), "one that changed is opened anew", s.text())
equal(json.loads(s.ask("GET", "/v2/models/two")[2])["versions"], ["2"], "and goes on counting generations")
equal(s.stop(), 0, "it ends with 0")

# --- the end with requests in flight ---

large = perfect(16)


def late_request():
    """A connection whose request is being computed."""
    p = s.connect()
    p.sendall(b"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(large) + large.encode())
    ok(within(lambda: s.metric('espalier_pending{model="tiny"}') == 1 or s.process.poll()), "a request is in flight")
    return p


s = Server("--rows", "1000000")
p = late_request()
idle = http.client.HTTPConnection("127.0.0.1", s.port, timeout=patience)
ask(idle, "GET", "/v2")
s.send(signal.SIGTERM)
ok(b" 200 OK" in answer(p), "it is answered after SIGTERM")
equal(s.stop(), 0, "then the server ends with 0")
p.close()
s = Server("--rows", "1000000", "--drain", "0.001")
p = late_request()
s.send(signal.SIGTERM)
text = answer(p)
ok(b" 503 " in text, "it is given up when the time is over", text[:300])
equal(s.stop(), 0, "then the server ends with 0")
p.close()

# --- unix sockets ---

path = tmp + "/socket"
stale = socket.socket(socket.AF_UNIX)
stale.bind(path)
stale.close()
s = Server(listen=("unix:" + path, "0", *(["[::1]:0"] if socket.has_ipv6 else [])))
equal(oct(os.stat(path).st_mode & 0o777), "0o660", "a socket that a dead process left is replaced")
u = socket.socket(socket.AF_UNIX)
u.connect(path)
u.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
ok(b"200 OK" in answer(u), "requests come through it")
u.close()
refused([tiny, *given, "--listen", "unix:" + path], 1, "cannot listen", "one that is in use is not replaced")
refused([tiny, *given, "--listen", "unix:" + words], 1, "cannot listen", "nor is a file")
ok(s.stop() == 0 and not os.path.exists(path), "it is removed in the end")
ok(os.path.exists(words), "the file is not")

# --- systemd ---

notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notices.bind(tmp + "/notify")
notices.settimeout(patience)
passed = socket.create_server(("127.0.0.1", 0))
port = passed.getsockname()[1]
command = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"' % passed.fileno()
p = subprocess.Popen(
    ["sh", "-c", command, "sh", espalier, "serve", tiny, *given, "--backend", "interpreter"],
    env={**os.environ, "NOTIFY_SOCKET": tmp + "/notify"},
    pass_fds=[passed.fileno()],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
passed.close()
equal(notices.recv(1000), b"READY=1", "systemd is told that it is ready")
c = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
equal(ask(c, "GET", "/v2/health/ready")[0], 200, "it listens on the socket that was passed")
c.close()
p.terminate()
equal(notices.recv(1000), b"STOPPING=1", "systemd is told that it ends")
equal(p.wait(patience), 0, "with 0")

# --- the access log ---

log = tmp + "/access"
s = Server("--access-log", log, log=tmp + "/nothing")
s.ask("GET", "/v2/models/%22%5C%0A%C3%A9%FF", headers={"X-Request-Id": 'a "b"'})
s.ask("POST", "/v1/run", "(2 a)")


def lines(file):
    with open(file) as f:
        return f.readlines()


ok(within(lambda: len(lines(log)) == 2), "each request is a line")
line = json.loads(lines(log)[0])
when, remote, took = line.pop("time"), line.pop("remote"), line.pop("whole_us")
ok(when.endswith("Z") and remote.startswith("127.0.0.1:") and took >= 0, "with the time, the client and how long")
name = '"\\\né\ufffd'
wanted = {
    "method": "GET",
    "path": "/v2/models/" + name,
    "status": 404,
    "bytes": line["bytes"],
    "model": name,
    "nodes": 0,
}
equal(line, {**wanted, "queue_us": 0, "compute_us": 0, "generation": 0, "request_id": 'a "b"'}, "whatever the path is")
os.rename(log, log + ".1")
s.send(signal.SIGHUP)
ok(within(lambda: os.path.exists(log)), "SIGHUP opens the file again")
s.ask("GET", "/v2")
ok(within(lambda: len(lines(log)) == 1) and len(lines(log + ".1")) == 2, "and lines go there")
equal(s.metric('espalier_loads_total{outcome="done"}'), 1, "models that did not change are left alone")
equal(s.stop(), 0, "it ends with 0")

s = Server("--access-log", "/dev/full")
equal([s.ask("GET", "/v2")[0] for _ in range(3)], [200] * 3, "a full disk does not stop it")
ok(s.metric("espalier_access_log_lost_total") >= 2, "lines that are lost are counted")
equal(s.stop(), 0, "it ends with 0")

# The trace of two models at SIGHUP and at the end.
trace = tmp + "/trace.json"
folder = tmp + "/pair"
os.mkdir(folder)
place("one")
place("two")
s = Server("--trace", trace, "--models", folder, models=())
equal(json.load(open(trace)), [], "a trace is begun")


def traced():
    """How often each model's requests ended, by outcome, and events by process."""
    events = json.load(open(trace))
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    ended = [
        (names[e["pid"]], e["args"]["outcome"])
        for e in events
        if e["ph"] == "e" and e["name"].startswith("request ")
    ]
    return {each: ended.count(each) for each in ended}, {names[e["pid"]] for e in events if e["ph"] == "X"}


for name in ("one", "two", "two"):
    equal(s.ask("POST", "/v1/run/" + name, "(3 (2 a) (4 b))")[0], 200, "a request of model %s" % name)
s.send(signal.SIGHUP)
both = ({("one", "done"): 1, ("two", "done"): 2}, {"one", "two"})
ok(within(lambda: os.path.getsize(trace) > 10), "SIGHUP writes the trace")
equal(traced(), both, "with the requests and supersteps of each model")
equal(s.ask("POST", "/v1/run/one", "(3 (2 a) (4 b))")[0], 200, "another request")
equal(s.stop(), 0, "it ends with 0")
both[0][("one", "done")] = 2
equal(traced(), both, "and the trace has it")
os.mkdir(tmp + "/gone")
s = Server("--trace", tmp + "/gone/trace.json")
shutil.rmtree(tmp + "/gone")
s.send(signal.SIGHUP)
ok(within(lambda: "/gone/trace.json" in s.text()), "a trace that can no longer be written is told")
equal((s.ask("GET", "/v2/health/ready")[0], s.stop()), (200, 0), "and it goes on")
s = Server("--trace", tmp + "/none/trace.json", wait=False)
equal(s.process.wait(patience), 1, "a trace that cannot be written ends it")
ok("/none/trace.json" in s.text(), "and the reason is printed")

# A pipe that nobody reads: what does not fit is lost.
reading, writing = os.pipe()
p = subprocess.Popen(
    [espalier, "serve", tiny, *given, "--backend", "interpreter", "--listen", "unix:" + path],
    stdout=writing,
    stderr=subprocess.DEVNULL,
)
os.close(writing)
within(lambda: os.path.exists(path))
u = socket.socket(socket.AF_UNIX)
within(lambda: u.connect_ex(path) == 0)
u.settimeout(patience)
u.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n" * 1000 + b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
equal(answer(u).count(b"200 OK"), 1001, "a pipe that nobody reads does not stop it either")
os.close(reading)
p.terminate()
equal(p.wait(patience), 0, "it ends with 0")
done()
