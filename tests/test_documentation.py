"""Every public function, class, method and command is documented with an example.

Public is what ``__all__`` of ``quartic`` and of its public modules names, and what public classes have without a
leading underscore.  The examples run as doctests; here it is made sure that they are there, and among those that run.
"""

import argparse
import dataclasses
import doctest
import functools
import importlib
import inspect
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from quartic.cli import _parser
from quartic.samples import Samples

ROOT = Path(__file__).parent.parent
MODULES = ("quartic", "quartic.datasets", "quartic.metrics", "quartic.report")

# How the stages read samples; callers make a Collection and hand it on.  Documented, but without examples.
EXCLUDED = {f"quartic.Collection.{name}" for name in vars(Samples)}

# Of numpydoc, in its order.
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "Examples")


def _members(cls):
    """Public methods and properties of a class that are ours: ``(name, value)``."""
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        function = getattr(value, "fget", None) or getattr(value, "func", value)  # of a property, cached or not
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("quartic"):
            yield name, value


def _public():
    """Functions, classes and their members by name, each once: what is inherited is documented where it is defined."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value, name = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.isfunction(value) or inspect.isclass(value):  # otherwise a module, or a constant
                found.setdefault(value, name)
            for member, attribute in _members(value) if inspect.isclass(value) else ():
                found.setdefault(attribute, f"{name}.{member}")
    return {name: value for value, name in found.items()}


PUBLIC = _public()
CALLED = {name: value for name, value in PUBLIC.items() if callable(value) and name not in EXCLUDED}


def _sections(value):
    """The text below each heading of a docstring, in its order."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(value.__doc__ or ""), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _described(section):
    """The names that a section is about: ``a, b : type`` on lines that are not indented."""
    lines = re.findall(r"^(?! )(.+?)(?: :.*)?$", section, flags=re.MULTILINE)
    return {name.strip(" *") for line in lines for name in line.split(",")}


@functools.cache
def _with_doctests(module):
    """Names of what has examples that run with the doctests of a module."""
    return {test.name for test in doctest.DocTestFinder().find(importlib.import_module(module)) if test.examples}


def test_enough_is_found():
    # So that none of the others passes because there is nothing to look at.
    for name in ("decompose", "Frame.load", "SpectralICA.transform", "metrics.Match.found", "report.plot"):
        assert f"quartic.{name}" in CALLED
    assert "quartic.Covariance.mean" in PUBLIC  # a property
    assert "quartic.FactoredTensor.matrices" in PUBLIC  # a cached one
    assert len(CALLED) >= 80


@pytest.mark.parametrize("name", PUBLIC)
def test_has_a_docstring(name):
    said = PUBLIC[name].__doc__ or ""
    assert said.strip(), f"{name} has no docstring"
    assert not said.startswith(f"{name.rpartition('.')[2]}("), f"{name} has none but the signature of a dataclass"


@pytest.mark.parametrize("name", CALLED)
def test_has_an_example_that_runs(name):
    value = CALLED[name]
    assert ">>>" in _sections(value).get("Examples", ""), f"{name} has no example"
    assert f"{value.__module__}.{value.__qualname__}" in _with_doctests(value.__module__), "no doctest runs it"


@pytest.mark.parametrize("name", CALLED)
def test_sections_are_in_order(name):
    headings = list(_sections(CALLED[name]))
    assert set(headings) <= set(SECTIONS)
    assert all(SECTIONS.index(a) < SECTIONS.index(b) for a, b in pairwise(headings))


@pytest.mark.parametrize("name", [name for name in CALLED if name != "quartic.DecompositionWarning"])  # as any warning
def test_parameters_are_those_that_it_takes(name):
    value = CALLED[name]
    # The fields of a dataclass are attributes as well, and described as these.
    heading = "Attributes" if dataclasses.is_dataclass(value) else "Parameters"
    described = _described(_sections(value).get(heading, ""))
    taken = set(inspect.signature(value).parameters) - {"self", "cls"}
    assert taken <= described, f"not described: {sorted(taken - described)}"
    assert described <= taken or heading == "Attributes", f"not taken: {sorted(described - taken)}"


def _commands():
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    return commands.choices


@pytest.mark.parametrize("command", _commands())
def test_help_of_a_command_has_examples_of_it(command):
    said = _commands()[command].format_help()
    found = re.search(r"^examples?\b.*:\n((?:  quartic .*\n)+)", said, flags=re.MULTILINE)
    assert found, f"quartic {command} --help shows no examples"
    lines = [shlex.split(re.split("[|>]", line)[0], comments=True) for line in found[1].splitlines()]
    assert ["quartic", command] in [line[:2] for line in lines]
    for line in lines:
        assert _parser().parse_args(line[1:]).run  # otherwise it raises


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _blocks(path):
    """The Python of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", [path for path in PAGES if _blocks(path)], ids=lambda path: path.name)
def test_blocks_of_a_page_run_from_top_to_bottom(path, tmp_path, monkeypatch, capsys):
    if path.name == "devices.md":
        pytest.importorskip("torch")
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    if path.name == "scale.md":
        pytest.importorskip("dask")
    if path.name == "reports.md":
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in _blocks(path):
        exec(compile(block, path.name, "exec"), names)  # what a reader would paste


def test_what_comments_of_the_readme_promise(capsys):
    """``# 40 atoms found and certified.``, say, is what is printed."""
    block = _blocks(ROOT / "README.md")[0]
    promised = re.findall(r"print\(.*\)  # (.*)", block)
    assert promised
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == promised
