# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Opens sessions of ONNX Runtime for its drivers. Threads spin while they wait unless OMP_WAIT_POLICY is PASSIVE, which
ONNX Runtime itself does not read. Python packages onnxruntime, onnx."""
import os

import onnx
import onnxruntime


def open_session(model, threads):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    passive = os.environ.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE"
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0" if passive else "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def versions(threads):
    return f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}, {threads} threads"
