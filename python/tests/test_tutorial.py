# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""The notebooks of python/tutorial: their cells run one after the other, without Jupyter, and what they show can be shown.  The
program of doc/tutorial.md."""
import ast
import asyncio
import inspect
import json
import linecache
import re
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest
from conftest import EXAMPLES

TUTORIAL = Path(__file__).parents[1] / "tutorial"
PAGE = EXAMPLES.parent / "doc/tutorial.md"
SHOWN = "_"  # the value of the last expression of a cell


def read_cells(path):
    """The source of each cell of code."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


async def run_cell(source, file, names):
    """Runs a cell, which may await outside of functions, and returns the value of its last expression, or None."""
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)  # for tracebacks, and traces of PyTorch
    tree = ast.parse(source, file)
    if isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(SHOWN, ast.Store())], tree.body[-1].value), tree.body[-1])
    code = compile(ast.fix_missing_locations(tree), file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names[SHOWN] = None
    waiting = eval(code, names)
    if inspect.iscoroutine(waiting):
        await waiting
    return names[SHOWN]


async def run_notebook(path, names):
    """Runs all cells in one event loop; returns the pictures that it shows."""
    pictures = []
    for number, source in enumerate(read_cells(path), 1):
        shown = await run_cell(source, f"<{path.name}, cell {number}>", names)
        if hasattr(shown, "_repr_svg_"):
            pictures.append(shown._repr_svg_())
        else:
            repr(shown)
    return pictures


def test_sentiment(monkeypatch, capsys):
    monkeypatch.setenv("ESPALIER_EXAMPLES", str(EXAMPLES))
    names = {"__name__": "__main__"}
    pictures = asyncio.run(run_notebook(TUTORIAL / "sentiment.ipynb", names))
    assert [xml.dom.minidom.parseString(each).documentElement.tagName for each in pictures] == ["svg"] * 3
    assert ">very negative<" in pictures[0] and ">boring<" in pictures[1]
    assert names["tree"].texts("sentiment")[:3] == ["neutral", "very negative", "neutral"]  # Never, boring, both
    printed = capsys.readouterr().out
    assert "positive       0.584  A lovely film ." in printed
    assert ("largest difference" if names["torch"] else "The cells of this part do nothing") in printed
    assert names["answers"][0].label("sentiment") == ["positive"]


@pytest.mark.parametrize("path", sorted(TUTORIAL.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_kept_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert path.read_text(encoding="utf-8") == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def test_a_cell_may_await_and_its_fault_is_found():
    names = {"asyncio": asyncio}
    assert asyncio.run(run_cell("x = await asyncio.sleep(0, 3)\nx + 1", "<cell>", names)) == 4
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_cell("1 / 0", "<cell>", names))


# --- doc/tutorial.md ---


def test_the_program_of_the_tutorial(tmp_path):
    pytest.importorskip("torch", minversion="2.10")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    program = tmp_path / "phrases.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "t2 = sigmoid(gate.weight @ t1 + gate.bias)" in done.stdout and "largest difference" in done.stdout
    assert (tmp_path / "phrases.espalier").stat().st_size > 4 * 1000 * 128
