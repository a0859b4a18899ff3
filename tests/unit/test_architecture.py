"""Hold the code to the table of ARCHITECTURE.md: who may import whom."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "pytest_modelbench"

MAY_IMPORT_PYTEST = {"plugin", "checks"}
"""First words of the rows that may: the plugin's own, and the trusted process of ``checks``."""

STARTS_CHEAP = {"__init__", "plugin", "fixtures", "collection", "usertests"}
"""Modules that every project with the plugin installed imports; they may import each other."""

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc"}


def read_table(text: str) -> list[list[str]]:
    """Return the rows of modules, top first, of the table under ``| module | duty |``."""
    table = text.partition("| module | duty |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`(\w+)/?`", line.split("|")[1]) for line in table.splitlines() if line]
    return [row for row in rows if row]


@dataclass(frozen=True)
class Import:
    """One imported name, ``target`` in full, where it stands, and whether starting meets it."""

    target: str
    line: int
    at_start: bool


def imports_of(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Yield what a module imports anywhere, relative names resolved, ``import_module("…")`` too."""
    home = module if is_package else module.rpartition(".")[0]

    def visit(node: ast.AST, *, runs: bool) -> Iterator[Import]:
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(alias.name, node.lineno, runs)
            case ast.ImportFrom():
                origin = node.module or ""
                if node.level:
                    parts = home.split(".")
                    origin = ".".join([*parts[: len(parts) - node.level + 1], *origin.split(".")])
                for alias in node.names:
                    yield Import(f"{origin.strip('.')}.{alias.name}", node.lineno, runs)
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(name, node.lineno, runs)
        for child in ast.iter_child_nodes(node):
            later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            unseen = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            yield from visit(child, runs=runs and not later and not unseen)

    yield from visit(ast.parse(source), runs=True)


def findings(
    source: str, module: str, rows: list[list[str]], *, is_package: bool = False
) -> list[str]:
    """Say what is wrong with a module's name (``pytest_modelbench.store.lines``) and imports."""
    place = {name: number for number, row in enumerate(rows) for name in row}
    words = module.split(".")[1:] or ["__init__"]
    own = words[0]
    wrong = [f"{module}: a module is one noun, not {w!r}" for w in words if w in VAGUE_NAMES]
    if own not in {*place, "__init__", "__main__"}:
        return [*wrong, f"{module}: not in the table of ARCHITECTURE.md"]
    # The package itself and its __main__ stand below all rows: they only hand on.
    row = place.get(own, len(rows))
    row_head = rows[row][0] if row < len(rows) else ""
    for found in imports_of(source, module, is_package=is_package):
        top, _, rest = found.target.partition(".")
        name = rest.partition(".")[0]
        at = f"{module}:{found.line}: imports {found.target}"
        if top == PACKAGE and name in place:
            if place[name] > row:
                wrong.append(f"{at}, which stands below it")
        elif top == PACKAGE and name and not name.startswith("__") and own != "__init__":
            wrong.append(f"{at}, which is no module of the table")
        if top in {"pytest", "_pytest", "xdist", "pluggy"} and row_head not in MAY_IMPORT_PYTEST:
            wrong.append(f"{at}: only the plugin's row knows pytest")
        if words[-1] in STARTS_CHEAP and len(words) == 1 and found.at_start:
            allowed = top in {*sys.stdlib_module_names, "pytest", "_pytest"}
            if not allowed and not (top == PACKAGE and name in {"", *STARTS_CHEAP}):
                wrong.append(f"{at} when it starts: the standard library and pytest only")
    return wrong


def modules() -> list[Path]:
    """Return the files of all modules that exist now."""
    return sorted((ROOT / PACKAGE).rglob("*.py"))


def dotted(path: Path) -> str:
    """Return the name by which a module is imported."""
    words = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


@pytest.fixture(scope="session")
def rows() -> list[list[str]]:
    """The table of ARCHITECTURE.md."""
    return read_table((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def test_table_is_read_whole(rows: list[list[str]]) -> None:
    assert rows[0] == ["errors", "words", "parsing", "records"]
    assert ["protocols", "benchmarks"] in rows
    assert rows[-1][0] == "cli"
    names = [name for row in rows for name in row]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_module_imports_only_from_rows_above(path: Path, rows: list[list[str]]) -> None:
    source = path.read_text(encoding="utf-8")
    assert findings(source, dotted(path), rows, is_package=path.name == "__init__.py") == []


# The rules themselves, tried on sources that break them and on sources that look as if they did.

BREAKS = {
    "row-below": ("store.lines", "from pytest_modelbench.plan import Plan", "below"),
    "row-below-in-a-function": (
        "stats",
        "def f():\n    from pytest_modelbench import store",
        "below",
    ),
    "row-below-relative": ("store.lines", "from ..gateway.client import Client", "below"),
    "row-below-from-the-package": ("store.lines", "from pytest_modelbench import cli", "below"),
    "row-below-by-name": ("store", "import_module('pytest_modelbench.plan')", "below"),
    "row-below-for-types": (
        "store.lines",
        "if TYPE_CHECKING:\n    from ..plan import Plan",
        "below",
    ),
    "cli-from-plugin": ("plugin", "def f():\n    import pytest_modelbench.cli", "below"),
    "no-module": ("store", "from pytest_modelbench import Verdict", "no module"),
    "pytest-outside": ("attempt", "import pytest", "knows pytest"),
    "xdist-outside": ("plan", "from xdist.scheduler import LoadScheduling", "knows pytest"),
    "plugin-starts-slow": ("plugin", "import pydantic", "when it starts"),
    "plugin-starts-ours": ("plugin", "from pytest_modelbench import records", "when it starts"),
    "plugin-starts-in-try": ("plugin", "try:\n    import xdist\nexcept ImportError: ...", "starts"),
    "package-starts-slow": ("", "from pytest_modelbench.records import Cell", "when it starts"),
    "unknown": ("judge", "", "not in the table"),
    "vague": ("store.utils", "", "one noun"),
}

KEEPS = {
    "row-above": ("store.lines", "from pytest_modelbench.records import Cell"),
    "same-row": ("records", "from pytest_modelbench.errors import Fault"),
    "sibling": ("store.lines", "from . import evidence\nfrom .evidence import Blob"),
    "plugin-later": ("plugin", "def f():\n    from pytest_modelbench import settings"),
    "plugin-for-types": ("plugin", "if TYPE_CHECKING:\n    from .settings import Settings"),
    "grader": ("checks.grader", "import pytest"),
    "own-row-of-pytest": ("scheduling", "from xdist.scheduler import LoadScheduling"),
    "a-word-in-a-name": ("store.lines", "import pytest_timeout"),
    "hand-on": ("", "def __getattr__(n):\n    from pytest_modelbench import records"),
}


def name_of(module: str) -> str:
    """Return the full name of a made-up module, the package itself for an empty one."""
    return f"{PACKAGE}.{module}".rstrip(".")


@pytest.mark.parametrize(("module", "source", "said"), BREAKS.values(), ids=BREAKS)
def test_rule_finds(module: str, source: str, said: str, rows: list[list[str]]) -> None:
    found = findings(source, name_of(module), rows, is_package=not module)
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(("module", "source"), KEEPS.values(), ids=KEEPS)
def test_rule_lets_pass(module: str, source: str, rows: list[list[str]]) -> None:
    assert findings(source, name_of(module), rows, is_package=not module) == []
