# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""All that users see says what it is."""
import inspect

import espalier


def undocumented(owner, names):
    """The names of functions, classes and properties that lack a docstring, those of classes' members among them."""
    found = []
    for name in names:
        member = inspect.getattr_static(owner, name)
        if not getattr(member, "__doc__", None):
            found.append(f"{owner.__name__}.{name}")
        if inspect.isclass(member):
            found += undocumented(member, members(member))
    return found


def members(of):
    """The public names of a class and of those that it is derived from, but of Python's own."""
    own = [base for base in of.__mro__ if base.__module__ != "builtins"]
    return sorted({name for base in own for name in vars(base) if not name.startswith("_")})


def test_public_names_have_docstrings():
    assert undocumented(espalier, espalier.__all__) == []
    assert "label" in members(espalier.Result)


def test_one_without_would_be_found():
    class Owner:
        def bare(self):
            pass

        class Inner:
            """Has one."""

            bare = property(lambda self: None)

    assert undocumented(Owner, ["bare", "Inner"]) == ["Owner.bare", "Inner.bare"]
