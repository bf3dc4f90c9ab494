# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The annotations of the package agree with each other, as mypy's strict mode says with the settings of pyproject.toml."""
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]


def check(*arguments):
    """What mypy prints, and whether it found nothing."""
    command = [sys.executable, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", "/dev/null", *arguments]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr, done.returncode == 0


@pytest.fixture(autouse=True)
def needs_mypy():
    pytest.importorskip("mypy.version", minversion="1.8", reason="mypy 1.8 is missing")


def test_annotations():
    found, right = check()
    assert right, found


def test_a_wrong_call_would_be_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import espalier.torch\nespalier.torch.compile(abs, 3, {})\nespalier.load('m').swapped()\n")
    found, right = check(program)
    assert not right and '"compile" has incompatible type "int"' in found and 'no attribute "swapped"' in found
