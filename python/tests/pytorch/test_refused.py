# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""What is refused: where, by which operator, and what to do."""
import inspect

import pytest

torch = pytest.importorskip("torch", minversion="2.10")
nn = torch.nn

import espalier.torch
from espalier.torch import TraceError

NET = nn.Linear(4, 4)
ARGUMENTS = {"x": "x[4]", "h": "children.h"}


def refused(function, structure="tree(*)", arguments=ARGUMENTS, states="h[4]", **options):
    NET.eval()
    with pytest.raises(TraceError) as raised:
        espalier.torch.compile(function, structure, arguments, states, backend="interpreter", **{"module": NET, **options})
    return raised.value


def line_of(function, text):
    lines, begin = inspect.getsourcelines(function)
    return begin + next(i for i, line in enumerate(lines) if text in line)


def test_a_loop_over_children():
    def cell(x, h):
        for k in h:
            x = x + k
        return x
    error = refused(cell)
    assert (error.file, error.line) == (__file__, line_of(cell, "for k"))
    assert "one by one" in error.message and "sum" in error.hint


def test_control_flow_on_values():
    def cell(x, h):
        if h.sum() > 0:
            return x
        return -x
    error = refused(cell)
    assert error.line == line_of(cell, "if h") and "values" in error.message


def test_control_flow_on_the_number_of_children():
    def cell(x, h):
        return h.sum(0) if len(h) > 3 else x
    assert "number of children" in refused(cell).message


def test_an_operator_without_a_lowering():
    def cell(x, h):
        y = x + h.sum(0)
        return torch.cumsum(y, 0)
    error = refused(cell)
    assert error.operator == "aten.cumsum" and error.line == line_of(cell, "cumsum") and error.file == __file__


@pytest.mark.parametrize("cell, text", [
    (lambda x, h: x + h[0], "one child or node is picked"),
    (lambda x, h: x + torch.softmax(h @ h.T, -1).sum(0) @ h, "pairs of children"),
    (lambda x, h: x + h.max(0).values, "of no children"),
    (lambda x, h: x + h.mean(0), "the mean of no children"),
    (lambda x, h: x[:3] + h.sum(0)[:3], "the shape [3]"),
    (lambda x, h: (x, h.sum(0)), "does not fit the states"),
    (lambda x, h: x.add_(h.sum(0)), "changed in place"),
])
def test_what_nodes_cannot_compute(cell, text):
    assert text in refused(cell).message


@pytest.mark.parametrize("arguments, text", [
    ({"x": "x[4]"}, "nothing says what the argument 'h' is"),
    ({**ARGUMENTS, "y": "x[4]"}, "no argument 'y'"),
    ({"x": "x[4]", "h": "children.g"}, "no state 'g'"),
    ({"x": "x[4]", "h": "children[0].h"}, "no child 0"),
    ({"x": "x[4]", "h": "children.h[children, 5]"}, "another shape"),
    ({"x": "x[n]", "h": "children.h"}, "no parameter 'x'"),
    ({"x": "x[4][4]", "h": "children.h"}, "too many brackets"),
    ({"x": "4 x", "h": "children.h"}, "describes no argument"),
])
def test_arguments_that_name_nothing(arguments, text):
    assert text in refused(lambda x, h: x + h.sum(0), arguments=arguments).message


@pytest.mark.parametrize("options, text", [
    ({"structure": "forest"}, "no structure"),
    ({"states": "h[D]"}, "must be numbers"),
    ({"states": ""}, "no state 'h'"),
    ({"module": None}, "which module"),
    ({"module": nn.Dropout()}, "training mode"),
    ({"leaf": "ones"}, "leaf='ones'"),
])
def test_options(options, text):
    assert text in refused(lambda x, h: NET(x) + h.sum(0), **options).message


@pytest.mark.parametrize("network, arguments, text", [
    (lambda x, net: net(x)[0], "x[nodes, 2, 4]", "minibatches"),
    (lambda x, net: torch.softmax(net(x)[0], 0), "x[nodes, 1, 4]", "all nodes are needed"),
    (lambda x, net: net(x)[0][2], "x[nodes, 1, 4]", "one by one"),
])
def test_sequences(network, arguments, text):
    net = nn.GRU(4, 4).eval()
    error = refused(lambda x: network(x, net), "sequence", {"x": arguments}, "", module=net)
    assert text in error.message


def test_projections():
    net = nn.LSTM(4, 4, proj_size=2).eval()
    assert "proj_size" in str(refused(lambda x: net(x)[0], "sequence", {"x": "x[nodes, 1, 4]"}, "", module=net))


def test_a_difference_from_pytorch():
    def cell(x, h):
        return x * (3.0 if torch.compiler.is_compiling() else 2.0) + h.sum(0)
    error = refused(cell)
    assert "state 'h' differs from PyTorch's by" in error.message and "one node" in error.message


def test_a_case_that_the_trace_did_not_see():
    def cell(x, h):
        return x if len(h) == 1 else h.sum(0) - x
    assert "on a chain of 3 nodes" in refused(cell).message


def test_diagnostics_of_the_language_are_about_lines_of_python():
    def cell(x, h):
        return x + h.sum(0)

    def read(h):
        return h * 2
    with pytest.raises(espalier.InputError) as raised:
        espalier.torch.compile(cell, "tree(*)", ARGUMENTS, "h[4]", module=NET.eval(), outputs={"input": (read, "h")})
    found = raised.value.diagnostics[0]
    assert (found.id, found.file, found.line) == ("reserved-word", __file__, line_of(read, "h * 2"))
