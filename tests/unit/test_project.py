"""What a release must hold, and what its texts promise."""

from __future__ import annotations

import ast
import itertools
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_modelbench"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TEXTS = ["README.md", "CONTRIBUTING.md", "docs/getting-started.md"]


def plain(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_version_stands_in_pyproject_alone() -> None:
    version = PYPROJECT["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    copies = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*.py")
        if re.search(rf"""["']{re.escape(version)}["']""", path.read_text(encoding="utf-8"))
    ]
    assert copies == []


def test_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [PACKAGE.name]


def test_entry_points_are_named_as_documented() -> None:
    project = PYPROJECT["project"]
    assert project["entry-points"]["pytest11"] == {"modelbench": "pytest_modelbench.plugin"}
    assert project["scripts"] == {"modelbench": "pytest_modelbench.cli:main"}


def test_what_the_package_imports_is_a_declared_dependency() -> None:
    project = PYPROJECT["project"]
    extras = [extra for name, extra in project["optional-dependencies"].items() if name != "dev"]
    declared = {
        plain(re.split(r"[^\w.-]", dependency, maxsplit=1)[0])
        for dependency in [*project["dependencies"], *itertools.chain(*extras)]
    }
    owners = metadata.packages_distributions()
    undeclared = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            else:
                continue
            for top in {name.partition(".")[0] for name in names}:
                if top in sys.stdlib_module_names or top in {PACKAGE.name, "_pytest", "pluggy"}:
                    continue
                if not declared & {plain(owner) for owner in owners.get(top, [top])}:
                    undeclared.append(f"{path.relative_to(ROOT)}:{node.lineno}: {top}")
    assert undeclared == []


def test_fragments_are_named_by_issue_and_type() -> None:
    kinds = "|".join(kind["directory"] for kind in PYPROJECT["tool"]["towncrier"]["type"])
    name = re.compile(rf"(\d+|\+[\w-]+)\.({kinds})(\.\d+)?\.md")
    fragments = [path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [path.name for path in fragments if not name.fullmatch(path.name)] == []
    assert [path.name for path in fragments if not path.read_text(encoding="utf-8").strip()] == []


def test_changelog_has_the_mark_at_which_a_release_is_written() -> None:
    mark = PYPROJECT["tool"]["towncrier"]["start_string"]
    assert (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").count(mark) == 1


def test_types_of_fragments_are_explained() -> None:
    explained = (ROOT / "changelog.d" / "README.md").read_text(encoding="utf-8")
    for kind in PYPROJECT["tool"]["towncrier"]["type"]:
        assert f"| `{kind['directory']}` |" in explained


@pytest.mark.parametrize("text", TEXTS)
def test_make_targets_that_are_named_exist(text: str) -> None:
    targets = re.findall(
        r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    named = re.findall(
        r"(?:`|\$ )make ([a-z-]+)", (ROOT / text).read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert named, f"{text} names no make target: does it still use the form `make TARGET`?"
    assert sorted(set(named) - set(targets)) == []


@pytest.mark.parametrize("text", [*TEXTS, "ARCHITECTURE.md", "docs/index.md"])
def test_links_to_files_lead_somewhere(text: str) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / text).read_text(encoding="utf-8"))
    home = (ROOT / text).parent
    assert [link for link in links if not (home / link).exists()] == []


def test_ci_script_can_be_run() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")
