# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The package for Python, which setuptools builds: tests/python/package_test.sh, or pip install ./python.
EXTRA_DIST += \
	%D%/README.md %D%/pyproject.toml %D%/setup.cfg %D%/setup.py \
	%D%/bench/overhead.py %D%/bench/pytorch.py \
	%D%/espalier/__init__.py %D%/espalier/_adapt.py %D%/espalier/_arrays.py %D%/espalier/_command.py %D%/espalier/_native.pyi %D%/espalier/_onnx.py \
	%D%/espalier/builder.py %D%/espalier/draw.py %D%/espalier/model.py %D%/espalier/profile.py %D%/espalier/py.typed \
	%D%/espalier/quantised.py %D%/espalier/ray.py %D%/espalier/result.py %D%/espalier/service.py \
	%D%/espalier/torch/README.md %D%/espalier/torch/__init__.py %D%/espalier/torch/check.py %D%/espalier/torch/contract.py \
	%D%/espalier/torch/convert.py %D%/espalier/torch/elementwise.py %D%/espalier/torch/emit.py %D%/espalier/torch/errors.py %D%/espalier/torch/extents.py \
	%D%/espalier/torch/layers.py %D%/espalier/torch/lower.py %D%/espalier/torch/operators.py %D%/espalier/torch/placeholders.py \
	%D%/espalier/torch/reduce.py %D%/espalier/torch/sequence.py %D%/espalier/torch/shapes.py %D%/espalier/torch/signature.py \
	%D%/espalier/torch/tensor.py %D%/espalier/torch/trace.py \
	%D%/native/arrays.c %D%/native/builder.c %D%/native/calibration.c %D%/native/context.c %D%/native/describe.c %D%/native/dlpack.c %D%/native/errors.c \
	%D%/native/flat.c %D%/native/model.c %D%/native/module.c %D%/native/named.c %D%/native/native.h %D%/native/profile.c %D%/native/program.c \
	%D%/native/read_batch.c %D%/native/result.c %D%/native/rows.c %D%/native/rows.h %D%/native/runner.c %D%/native/service.c \
	%D%/native/stream.c %D%/native/ticket.c %D%/native/values.c %D%/native/walk.c %D%/native/weights.c \
	%D%/tests/conftest.py %D%/tests/pytorch/cells.py %D%/tests/pytorch/test_cells.py %D%/tests/pytorch/test_operators.py \
	%D%/tests/pytorch/test_refused.py %D%/tests/pytorch/test_sequences.py %D%/tests/test_builder.py %D%/tests/test_errors.py %D%/tests/test_models.py %D%/tests/test_onnx.py %D%/tests/test_quantise.py %D%/tests/test_ray.py %D%/tests/test_serving.py %D%/tests/test_structures.py %D%/tests/test_tflite.py \
	%D%/tests/random_structures.py %D%/tests/test_docstrings.py %D%/tests/test_random_calls.py %D%/tests/test_together.py %D%/tests/test_tutorial.py %D%/tests/test_types.py \
	%D%/docs/module.html.jinja2 %D%/tutorial/sentiment.ipynb
