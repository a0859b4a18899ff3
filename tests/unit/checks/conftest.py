"""A grader on this machine's box, and a way to grade a few lines of code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.levels import choose

Grade = Callable[..., Observation]


@pytest.fixture(scope="session")
def box() -> Box:
    """The kernel's box of this machine; skips where it has none."""
    try:
        return choose("strict")
    except UsageProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="session")
def grader(box: Box, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    """One grader for all tests: gradings must not see each other."""
    grader = Grader(box, scratch=tmp_path_factory.mktemp("grader"))
    yield grader
    grader.close()


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write dedented texts below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def grade(grader: Grader, tmp_path: Path) -> Grade:
    """Grade the files of a candidate by hidden files; a text stands for one file of its kind."""

    def grade(
        hidden: str | Mapping[str, str],
        files: str | Mapping[str, str],
        *,
        seconds: float = 240.0,
        seed: int = 7,
        environment: Path | None = None,
    ) -> Observation:
        checks = {"test_hidden.py": hidden} if isinstance(hidden, str) else hidden
        work = {"calc.py": files} if isinstance(files, str) else files
        folder = write(tmp_path / "harvest", work)
        folder.mkdir(exist_ok=True)
        return grader.observe(
            write(tmp_path / "hidden", checks), folder, environment, seconds, seed
        )

    return grade


def reasons(observation: Observation) -> dict[str, str]:
    """Return outcome and reason of each row: ``passed``, ``failed: ValueError`` and so on."""
    return {
        row.name: row.outcome + (f": {row.reason}" if row.reason else "")
        for row in observation.rows
    }


@pytest.fixture
def outcome() -> Callable[[Observation], dict[str, str]]:
    """Return ``reasons``: a test cannot import its conftest."""
    return reasons
