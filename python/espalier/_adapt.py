# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Structures of other libraries, as the extension module takes them.  None of these libraries is imported here."""
from __future__ import annotations

from typing import Any


def _is_graph(value: Any) -> bool:
    return hasattr(value, "pred") and hasattr(value, "succ") and hasattr(value, "nodes")


def _graph(graph: Any) -> Any:
    """A directed graph of networkx: edges lead from a node to its children, in the order in which they were added; nodes and
    edges have what they carry as attributes.  The root is the node that is no child."""
    roots = [node for node in graph.nodes if not graph.pred[node]]
    if len(roots) != 1:
        raise ValueError(f"a graph has one root, a node to which no edge leads; this one has {len(roots)}")
    made = {node: dict(data) for node, data in graph.nodes(data=True)}
    for node, record in made.items():
        record["children"] = [made[child] for child in graph.succ[node]]
        record["edges"] = list(graph.succ[node].values())
    return made[roots[0]]


def structure(value: Any) -> Any:
    """A structure that the extension module reads: a tuple, a dict, a text or arrays."""
    if isinstance(value, list) and value:
        sentences = [value] if hasattr(value, "serialize") else value  # a TokenList of conllu, or a list of them
        if all(hasattr(each, "serialize") for each in sentences):
            return "".join(each.serialize() for each in sentences)
    if _is_graph(value):
        return _graph(value)
    return value
