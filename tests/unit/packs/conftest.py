from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_modelbench.errors import PackProblem, PackProblems
from pytest_modelbench.packs.model import Pack
from pytest_modelbench.packs.reading import read_pack

SOUND = {
    "cases/tiny/pack.toml": '[pack]\ntitle = "Tiny"\n[limits]\nturns = 5\n',
    "cases/tiny/one/case.toml": 'prompt = "Do it."\n',
    "cases/tiny/one/seed/calc.py": "def add(a, b):\n    return a - b\n",
    "cases/tiny/one/hidden/test_calc.py": "def test_adds(solution):\n    assert True\n",
    "references/tiny/one/calc.py": "def add(a, b):\n    return a + b\n",
    "references/tiny/one.damaged/off/calc.py": "def add(a, b):\n    return a + b + 1\n",
    "references/tiny/one.damaged/off/damaged.toml": 'loses = ["test_adds"]\n',
}


class Project:
    """A project with one sound pack, whose files a test changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write(SOUND)

    @property
    def pack_folder(self) -> Path:
        return self.root / "cases" / "tiny"

    @property
    def case_folder(self) -> Path:
        return self.pack_folder / "one"

    @property
    def references(self) -> Path:
        return self.root / "references"

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def read(self) -> Pack:
        return read_pack(self.pack_folder, self.references)

    def problems(self) -> list[tuple[str, int | None, str]]:
        """Return place (from the root), line and text of each problem; [] for a sound pack."""
        try:
            self.read()
        except PackProblem as problem:
            found = problem.problems if isinstance(problem, PackProblems) else (problem,)
            assert all(one.remedy for one in found), "a problem without a remedy"
            return [
                (
                    "" if one.path is None else one.path.relative_to(self.root).as_posix(),
                    one.line,
                    one.what,
                )
                for one in found
            ]
        return []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def make_project(tmp_path: Path) -> Callable[[str], Project]:
    """Return a maker of further projects, each in a folder of its own."""

    def make(name: str) -> Project:
        return Project(tmp_path / name)

    return make
