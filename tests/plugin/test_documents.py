"""What the documents name is there: options, ini values, commands and their switches."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@cache
def told_by(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=True
    )
    return done.stdout


def named(pattern: str) -> list[tuple[str, str]]:
    """Return (page, name) of everything that a pattern finds in the pages, once each."""
    return sorted(
        {
            (path.relative_to(ROOT).as_posix(), name)
            for path in PAGES
            for name in re.findall(pattern, path.read_text(encoding="utf-8"))
        }
    )


@pytest.mark.parametrize(("page", "option"), named(r"--modelbench-[a-z][a-z-]*[a-z]"))
def test_option_of_the_documents_is_an_option_of_pytest(page: str, option: str) -> None:
    assert re.search(rf"{option}(?![\w-])", told_by("pytest", "--help")), f"{page} names {option}"


@pytest.mark.parametrize(("page", "ini"), named(r"\bmodelbench_[a-z]+\b"))
def test_ini_value_of_the_documents_is_one_of_pytest(page: str, ini: str) -> None:
    known = told_by("pytest", "--help")
    fixtures = (ROOT / "pytest_modelbench/fixtures.py").read_text(encoding="utf-8")
    assert ini in known or f"def {ini}(" in fixtures, f"{page} names {ini}"


@pytest.mark.parametrize(("page", "command"), named(r"(?:\$ |`)modelbench ([a-z][a-z-]*)"))
def test_command_of_the_documents_is_a_command(page: str, command: str) -> None:
    assert told_by("pytest_modelbench.cli", command, "--help"), f"{page} names modelbench {command}"


def test_readme_names_every_command() -> None:
    commands = re.findall(
        r"^    ([a-z][a-z-]+)(?: |$)", told_by("pytest_modelbench.cli", "--help"), re.MULTILINE
    )
    assert "doctor" in commands
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in commands if f"`modelbench {name}" not in readme] == []
