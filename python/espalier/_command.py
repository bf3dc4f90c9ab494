# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The command `espalier`, which comes with the package."""
import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the command, which finds its library in the package."""
    library = Path(__file__).parent / "_lib"
    command = library / "bin/espalier"
    others = os.environ.get("LD_LIBRARY_PATH")
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{library}:{others}" if others else str(library))
    os.execve(command, ["espalier", *sys.argv[1:]], environment)
