# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Arrays of other types and other libraries, as the extension module takes them; weights as a safetensors file."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _native

_TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
}
_KINDS = {"b": "truth values", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers"}


def _refuse(message: str) -> Exception:
    return _native.InputError(f"error: {message}")


def on_this_processor(value: Any, what: str) -> Any:
    """The value, or of a tensor that requires gradients its data; refuses one that lies on another device."""
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        kind, _ = device()
        if int(kind) != 1:
            raise _refuse(f"'{what}' lies on another device (DLPack's type {int(kind)}); move it by .cpu() or the like")
    if getattr(value, "requires_grad", False):
        value = value.detach()
    return value


def coerce(value: Any, dtype: str, what: str) -> np.ndarray:
    """A contiguous array of `dtype`: integers of other types are converted when they fit, floats only from Python's own."""
    value = on_this_processor(value, what)
    wanted = np.dtype(_TYPES[dtype])
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _refuse(f"'{what}' is no array of {dtype}: {error}") from error
    if array.dtype == wanted:
        return np.ascontiguousarray(array)
    own = not hasattr(value, "dtype")
    if wanted.kind in "iu" and array.dtype.kind in "iu":
        limits: Any = np.iinfo(wanted.name)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise _refuse(f"'{what}' has numbers that {dtype} cannot hold")
    elif array.size == 0 and own or wanted.kind == "f" and own and array.dtype.kind in "iuf":
        pass
    else:
        kind = _KINDS.get(array.dtype.kind, "objects")
        raise _refuse(f"'{what}' holds {kind} of type {array.dtype}; the model takes {dtype}: convert by .astype(numpy.{wanted})")
    return np.ascontiguousarray(array, dtype=wanted)


def constant(name: str, value: Any) -> tuple[str, str, np.ndarray]:
    """A value with its name and its type; Python's own floats are f32."""
    array = np.asarray(on_this_processor(value, name), order="C")
    if array.dtype == np.float64 and not hasattr(value, "dtype"):
        array = array.astype(np.float32)
    for dtype, own in _TYPES.items():
        if array.dtype == own and dtype != "bf16":
            return name, dtype, array
    raise _refuse(f"the constant '{name}' holds {array.dtype}; constants are {', '.join(sorted(set(_TYPES) - {'bf16'}))}")


# --- weights ---

_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int8": "I8", "uint8": "U8", "int16": "I16", "int32": "I32",
          "int64": "I64", "bool": "BOOL"}


def _tensor(name: str, value: Any) -> tuple[str, np.ndarray]:
    """The name of a tensor's type in the format, and its elements."""
    value = on_this_processor(value, name)
    kind = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if kind == "bfloat16" and hasattr(value, "view") and not isinstance(value, np.ndarray):
        import torch  # type: ignore[import-not-found,unused-ignore]

        return "BF16", np.ascontiguousarray(value.contiguous().view(torch.int16).numpy())
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype.name not in _NAMES:
        raise _refuse(f"the weight '{name}' holds {array.dtype}; weights are float32, float16, bfloat16 or integers")
    return _NAMES[array.dtype.name], np.ascontiguousarray(array)


def pack_weights(tensors: Mapping[str, Any]) -> bytes:
    """The bytes of a safetensors file with these tensors."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    at = 0
    for name, value in tensors.items():
        kind, array = _tensor(name, value)
        parts.append(array.tobytes())
        end = at + len(parts[-1])
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])
