# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""A model of TensorFlow Lite from tests/tflite: by its path, and by its bytes."""
import shutil

import numpy as np
import pytest
from conftest import EXAMPLES

import espalier

CASE = EXAMPLES.parent / "tests/tflite/cases/chain"


@pytest.fixture(params=["path", "bytes"])
def source(request, tmp_path):
    model = CASE.with_suffix(".tflite")
    if not model.exists():
        pytest.skip("the tests of the source tree are not here")
    if request.param == "bytes":
        return model.read_bytes()
    return shutil.copy(model, tmp_path / "m.tflite")


def test_gives_the_bytes_of_tensorflow_lite(source):
    x = np.fromfile(CASE.with_suffix(".input"), np.int8).reshape(1, 9, 9, 3)
    y = espalier.load(source)(x0=x)["y0"]
    assert np.array_equal(np.asarray(y).reshape(-1), np.fromfile(CASE.with_suffix(".wanted"), np.int8))


def test_has_no_choices(source):
    with pytest.raises(espalier.Error, match="no sizes, constants or outputs are chosen"):
        espalier.load(source, sizes={"batch": 2})
