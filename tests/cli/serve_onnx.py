# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""ONNX files are served: arrays in and out with the shapes and the names of the graph."""
import json
import math

from onnx_file import *
from serving import *


def write_model(path, scale=1.0, size="batch"):
    """scaled = w * x and its sum along the last axis; k + 1; the file appears whole."""
    nodes = [
        node("Mul", ["in/x", "w"], ["scaled"]),
        node("ReduceSum", ["scaled", "axes"], ["out/sum"], keepdims=0),
        node("Add", ["root", "one"], ["next"]),
    ]
    inputs = [value("in/x", FLOAT, [size, 3]), value("root", INT64, [])]
    outputs = [value("scaled", FLOAT, [size, 3]), value("out/sum", FLOAT, [size]), value("next", INT64, [])]
    tensors = [
        tensor("w", FLOAT, [3], [scale, 2 * scale, 3 * scale]),
        tensor("axes", INT64, [1], [1]),
        tensor("one", INT64, [], [1]),
    ]
    with open(path + ".new", "wb") as f:
        f.write(model(nodes, inputs, outputs, tensors))
    os.rename(path + ".new", path)


path = tmp + "/scale.onnx"
write_model(path)
probe = subprocess.run([espalier, "check", path], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
if b"no-onnx" in probe.stderr:
    ok(True, "ONNX files are served # SKIP no protobuf-c")
    done()

s = Server("--sizes", "batch=2", models=(path,))
url = "/v2/models/scale"


def infer(inputs, **more):
    status, headers, text = s.ask("POST", url + "/infer", json.dumps({"inputs": inputs, **more}))
    return status, json.loads(text)


def array(name, datatype, shape, elements):
    return {"name": name, "datatype": datatype, "shape": shape, "data": elements}


def refused(found, status, text, what):
    ok(found[0] == status and text in found[1].get("error", ""), what, found)


# --- metadata ---

about = json.loads(s.ask("GET", url)[2])
equal(
    about["inputs"],
    [
        {"name": "in/x", "datatype": "FP32", "shape": [2, 3]},
        {"name": "root", "datatype": "INT64", "shape": []},
    ],
    "its inputs are those of the graph, and an input may have the name of what describes structures",
)
equal(
    about["outputs"],
    [
        {"name": "scaled", "datatype": "FP32", "shape": [2, 3]},
        {"name": "out/sum", "datatype": "FP32", "shape": [2]},
        {"name": "next", "datatype": "INT64", "shape": []},
    ],
    "so are its outputs",
)

# --- arrays ---

x = array("in/x", "FP32", [2, 3], [[1, 1, 1], [0, -1, 2]])
k = array("root", "INT64", [], [41])
status, result = infer([x, k])
equal(
    (status, [(o["name"], o["datatype"], o["shape"], o["data"]) for o in result.get("outputs", [])]),
    (
        200,
        [
            ("scaled", "FP32", [2, 3], [1, 2, 3, 0, -2, 6]),
            ("out/sum", "FP32", [2], [6, 4]),
            ("next", "INT64", [], [42]),
        ],
    ),
    "arrays of the graph's shapes are computed to arrays of its shapes",
)
status, result = infer([k, dict(x, name="in_x")], outputs=[{"name": "out_sum"}])
equal(
    (status, [(o["name"], o["data"]) for o in result.get("outputs", [])]),
    (200, [("out_sum", [6, 4])]),
    "names may be those that the language has, which the answer has then, too",
)
status, result = infer([array("in/x", "FP32", [2, 2, 3], list(range(12))), array("root", "INT64", [2], [5, 7])])
equal(
    (status, [(o["name"], o["shape"], o["data"]) for o in result.get("outputs", [])][1:]),
    (200, [("out/sum", [2, 2], [8, 26, 44, 62]), ("next", [2], [6, 8])]),
    "with an axis more before them there are several rows",
)

# --- refusals ---

refused(infer([x]), 400, "'root' is missing", "an array that is missing is named")
refused(infer([x, dict(k, shape=[3], data=[1, 2, 3])]), 400, "must be []", "so is one of another shape")
refused(infer([dict(x, shape=[3, 2]), k]), 400, "must be [2, 3]", "or of other extents")
refused(infer([dict(x, datatype="FP64"), k]), 400, "must be FP32", "or of another type")
refused(infer([x, k, array("children", "INT32", [1], [0])]), 400, "no input 'children'", "nothing describes structures")
refused(infer([x, k], outputs=[{"name": "sum"}]), 400, "no output 'sum'", "an output that is not there is named")
refused(
    infer([x, k], outputs=[{"name": "out_sum"}, {"name": "out/sum"}]), 400, "twice", "one under two names is one"
)

# --- reloads ---

write_model(path, 10)
s.send(signal.SIGHUP)
ok(within(lambda: infer([x, k])[1]["outputs"][1]["data"] == [60, 40]), "SIGHUP brings the weights of a new file")
equal(json.loads(s.ask("GET", url)[2])["versions"], ["2"], "which are of another generation")
s.send(signal.SIGHUP)
time.sleep(0.2)
equal(json.loads(s.ask("GET", url)[2])["versions"], ["2"], "a file that has not changed stays as it is")
write(path, "no model")
s.send(signal.SIGHUP)
ok(within(lambda: s.has_said("model scale stays as it was")), "a file that is no model leaves the old one")
equal(infer([x, k])[1]["outputs"][1]["data"], [60, 40], "and its weights")
equal(s.stop(), 0, "the server ends")

# --- a folder ---

folder = tmp + "/models"
os.mkdir(folder)
write_model(folder + "/one.onnx")
header = json.dumps({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]},
                     "one": {"dtype": "I64", "shape": [], "data_offsets": [12, 20]}}).encode()
s = Server("--sizes", "batch=2", "--models", folder, models=())
url = "/v2/models/one"
equal(infer([x, k])[1]["outputs"][1]["data"], [6, 4], "a file of a folder is served under its name")
with open(folder + "/one.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header + struct.pack("<3fq", 1, 1, 1, 100))
s.send(signal.SIGHUP)
ok(within(lambda: infer([x, k])[1]["outputs"][2]["data"] == [141]), "weights beside it take the place of its own")
os.remove(folder + "/one.safetensors")
s.send(signal.SIGHUP)
ok(within(lambda: infer([x, k])[1]["outputs"][2]["data"] == [42]), "until they are removed")
equal(s.stop(), 0, "the server ends")

# --- sizes and outputs of one of several models ---

for name, size in (("first", "batch"), ("second", "batch"), ("third", "rows")):
    write_model(tmp + f"/{name}.onnx", size=size)
several = [tmp + f"/{name}.onnx" for name in ("first", "second", "third")]


def shapes(name):
    return [(o["name"], o["shape"]) for o in json.loads(s.ask("GET", "/v2/models/" + name)[2])["outputs"]]


def all_of(rows):
    return [("scaled", [rows, 3]), ("out/sum", [rows]), ("next", [])]


s = Server("--sizes", "first:batch=5,batch=2,second:batch=4,third:rows=7,third:batch=1", models=several, wait=False)
equal(s.process.wait(patience), 1, "a size that the named model does not have is refused")
s = Server("--sizes", "second:batch=4,batch=2,third:rows=7", models=several, wait=False)
equal(s.process.wait(patience), 1, "so is one for all that one of them does not have")
s = Server(
    *("--sizes", "first:batch=2,second:batch=4,third:rows=7", "--outputs", "third:out/sum"), models=several
)
equal([shapes("first"), shapes("second")], [all_of(2), all_of(4)], "sizes are given for one of several models")
equal(shapes("third"), [("out/sum", [7])], "and so are outputs")
equal(s.stop(), 0, "the server ends")
s = Server("--sizes", "batch=2,second:batch=4", "--outputs", "next,second:scaled", models=several[:2])
equal([shapes("first"), shapes("second")], [[("next", [])], [("scaled", [4, 3])]], "which go before those of all")
equal(s.stop(), 0, "the server ends")

# --- a recurrent layer, whose sequence is scanned inside of a row ---


def lstm_weights():
    """[gates * hidden, inputs] and [gates * hidden, hidden]: 2 hidden units, 3 inputs."""
    return [[(5 * i + 3 * k) % 7 / 4 - 0.7 for k in range(3)] for i in range(8)], [
        [(3 * i + 5 * k) % 7 / 4 - 0.6 for k in range(2)] for i in range(8)
    ]


def lstm(x):
    """The states of all steps, by the equations of the standard; gates are i, o, f, c."""
    w, r = lstm_weights()
    h, c, all = [0.0] * 2, [0.0] * 2, []
    for step in x:
        gate = [sum(a * b for a, b in zip(w[i], step)) + sum(a * b for a, b in zip(r[i], h)) for i in range(8)]
        i, o, f = ([1 / (1 + math.exp(-g)) for g in gate[n : n + 2]] for n in (0, 2, 4))
        c = [f[k] * c[k] + i[k] * math.tanh(gate[6 + k]) for k in range(2)]
        h = [o[k] * math.tanh(c[k]) for k in range(2)]
        all += h
    return all


def near(found, wanted):
    return len(found) == len(wanted) and all(abs(a - b) < 1e-6 for a, b in zip(found, wanted))


w, r = lstm_weights()
with open(tmp + "/lstm.onnx", "wb") as f:
    f.write(
        model(
            [node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)],
            [value("x", FLOAT, [5, 1, 3])],
            [value("y", FLOAT, [5, 1, 1, 2])],
            [tensor("w", FLOAT, [1, 8, 3], sum(w, [])), tensor("r", FLOAT, [1, 8, 2], sum(r, []))],
        )
    )
s = Server(models=(tmp + "/lstm.onnx",))
url = "/v2/models/lstm"
first, second = ([[(a * t + k) % 5 / 2 - 1 for k in range(3)] for t in range(5)] for a in (2, 3))
one = infer([array("x", "FP32", [5, 1, 3], sum(first, []))])
ok(one[0] == 200 and near(one[1]["outputs"][0]["data"], lstm(first)), "an LSTM is served", one)
two = infer([array("x", "FP32", [2, 5, 1, 3], sum(first + second, []))])
ok(two[0] == 200 and near(two[1]["outputs"][0]["data"], lstm(first) + lstm(second)), "and for two rows", two)
equal(two[1]["outputs"][0]["data"][:10], one[1]["outputs"][0]["data"], "with the same numbers in company")
equal(s.stop(), 0, "the server ends")

# --- a size that is not given ---

s = Server(models=(path.replace("scale", "open"),), wait=False)
equal(s.process.wait(patience), 1, "a file that is not there ends the server")
write_model(tmp + "/open.onnx")
s = Server(models=(tmp + "/open.onnx",), wait=False)
equal(s.process.wait(patience), 1, "so does one whose sizes are not all known")
ok(s.has_said("--sizes batch="), "and it is said how to give them", s.text())
done()
