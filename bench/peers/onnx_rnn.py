#!/usr/bin/env python3
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's LSTM and GRU on what `espalier bench --keep FOLDER` wrote for a sequence model over vectors.

  onnx_rnn.py FOLDER [--threads N] [--int8]

Works like torch_rnn.py. The GRU has linear_before_reset = 1, as in PyTorch and here: the reset gate multiplies the product. With
--int8 weights have 8 bits, and inputs and states become bytes as they are read (DynamicQuantizeLSTM); there is no such GRU.

Python packages onnxruntime, onnx, numpy.
"""
import argparse
import logging
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import common
import onnx_session

# torch's index of each gate of ONNX: LSTM i o f c, in torch i f g o; GRU z r h, in torch r z n.
ORDER = {4: (0, 3, 1, 2), 3: (1, 0, 2)}


def reordered(array, gates):
    parts = np.split(array, gates)
    return np.concatenate([parts[gate] for gate in ORDER[gates]])


def model_of(s):
    w, r, b_ih, b_hh = (reordered(array, s.gates) for array in (s.w_ih, s.w_hh, s.b_ih, s.b_hh))
    constants = {"W": w, "R": r, "B": np.concatenate([b_ih, b_hh])}
    node = helper.make_node("LSTM" if s.gates == 4 else "GRU", ["x", *constants], ["y", "last"], hidden_size=s.hidden,
                            **({} if s.gates == 4 else {"linear_before_reset": 1}))
    graph = helper.make_graph(
        [node], "unit", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "sequences", s.inputs])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "last")],
        [numpy_helper.from_array(np.ascontiguousarray(array[None]), name) for name, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def quantised(model):
    logging.disable(logging.WARNING)  # that shapes were not inferred first
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "int8.onnx")
        quantize_dynamic(model, path, op_types_to_quantize=["LSTM"], weight_type=QuantType.QInt8, per_channel=True)
        model = onnx.load(path)
    if not any(node.op_type == "DynamicQuantizeLSTM" for node in model.graph.node):
        sys.exit("ONNX Runtime quantises no such layer")
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--int8", action="store_true")
    options = parser.parse_args()
    s = common.Sequences(options.folder)
    session = onnx_session.open_session(quantised(model_of(s)) if options.int8 else model_of(s), options.threads)
    print(onnx_session.versions(options.threads), file=sys.stderr)
    common.serve(len(s.x), lambda x: session.run(None, {"x": x}), lambda x: session.run(["last"], {"x": x})[0],
                 s.minibatch)


if __name__ == "__main__":
    main()
