"""The corpus against in-process grading: fooled by the kinds that no single process can hold."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_modelbench.checks.inprocess import observe_in_process
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.records import Trust
from pytest_modelbench.worlds.box import INTERPRETER, Box
from pytest_modelbench.worlds.harvest import Harvest, read_folder
from pytest_modelbench.worlds.levels import choose

DATA = Path(__file__).parents[1] / "data"
CORPUS = Path(os.environ.get("MODELBENCH_DATA", DATA)) / "attacks"
OWN = DATA / "own-attacks"

CANNOT_BE_HELD = {
    "patch-testreport": "patches the report builder",
    "patch-runtest": "patches the runner of tests",
    "rigged-int": "an int whose comparison is rigged",
    "frame-peek": "reads the expected value from the caller's frame",
    "reads-test-source": "parses the source of the test",
}
"""The five kinds of docs/isolation.md; a fixture of any other kind must fail."""


def _attacks() -> dict[str, Path]:
    """Return the fixtures that act at grade time alone, so that their files are all of them."""
    found = {}
    for path in sorted((*CORPUS.glob("*/attack.toml"), *OWN.glob("*/attack.toml"))):
        attack = tomllib.loads(path.read_text())
        if attack["acts_in"] in ("grade", "none") and "script" not in attack:
            found[attack["name"]] = path.parent
    return found


ATTACKS = _attacks()


@pytest.fixture(scope="module")
def box() -> Box:
    """The kernel's box of this machine; skips where it has none."""
    try:
        return choose("strict")
    except UsageProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as a pack's would be, with pytest in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run(
        [INTERPRETER, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
    )
    theirs = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py"):
        spec = find_spec(name)
        assert spec is not None
        ours = Path(str(spec.origin))
        if ours.name == "__init__.py":
            shutil.copytree(
                ours.parent, theirs / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(ours, theirs)
    folder.chmod(0o755)
    return folder


@pytest.mark.parametrize("name", ATTACKS)
def test_in_process_grading_is_fooled_by_no_other_kind(
    name: str, box: Box, environment: Path, tmp_path: Path
) -> None:
    task = CORPUS / "_task"
    hidden = tmp_path / "hidden" / "tests"
    shutil.copytree(task / "hidden", hidden)
    files = read_folder(task / "seed") | read_folder(ATTACKS[name] / "files")
    solved = read_folder(task / "seed") | read_folder(task / "reference")
    seen = observe_in_process(
        box,
        tmp_path / "hidden",
        solved,
        Harvest(files, dict.fromkeys(files, 0o644)),
        environment,
        tmp_path,
        2.0 if name == "hang-forever" else 240.0,
    )
    verdict = verify(seen)
    assert verdict.trust is Trust.EVIDENT
    expected = tomllib.loads((ATTACKS[name] / "attack.toml").read_text())["expected"]
    if expected == "pass":
        assert verdict.passed, seen
    elif name not in CANNOT_BE_HELD:
        assert not verdict.passed, seen


def test_there_is_a_corpus() -> None:
    assert len(ATTACKS) >= 20
    assert set(CANNOT_BE_HELD) <= set(ATTACKS)
