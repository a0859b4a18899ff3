"""Every case that we ship is sound: its reference passes, its seed does not, damage is seen."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.identity import content_files
from pytest_modelbench.packs.model import Case, Damaged, Pack
from pytest_modelbench.packs.reading import find_packs, read_pack, read_packs
from pytest_modelbench.packs.solutions import solution_files
from pytest_modelbench.packs.writing import new_pack
from pytest_modelbench.records import Trust, Verdict
from pytest_modelbench.worlds.environment import environment
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.repository import REPOSITORY, TREE, seed_repository

ROOT = Path(__file__).parents[2]
PACKS = {
    pack.name: pack
    for pack in read_packs(find_packs([ROOT / "cases"]), ROOT / "reference_solutions")
    if pack.protocol == "agent"  # the others: tests/agreement/test_shipped_benchmarks.py
}


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if "writes-tests" in case.tags else []


CASES = [
    pytest.param(case, id=f"{pack.name}:{case.id}", marks=_marks(case))
    for pack in PACKS.values()
    for case in pack.cases
]
VARIANTS = [
    pytest.param(case, one, id=f"{pack.name}:{case.id}:{one.name}", marks=_marks(case))
    for pack in PACKS.values()
    for case in pack.cases
    for one in case.damaged
]


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    """Return a grader in the strongest box of this machine."""
    found = Grader(choose("auto"))
    yield found
    found.close()


def judged(grader: Grader, case: Case, files: dict[str, Path], folder: Path) -> Verdict:
    """Return the verdict on a case's seed with some files laid over it."""
    try:
        packages = environment(case.environment)
    except UsageProblem as problem:
        pytest.skip(f"the environment of {case.pack} cannot be built here: {problem}")
    seed = {} if case.seed is None else {one.name: one.path for one in content_files(case.seed)}
    for name, source in (seed | files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
    assert case.hidden
    observed = grader.observe(case.hidden, folder, packages, case.check.seconds, seed=1)
    return verify(observed)


@pytest.mark.parametrize("case", CASES)
def test_the_reference_passes(grader: Grader, case: Case, tmp_path: Path) -> None:
    verdict = judged(grader, case, solution_files(case), tmp_path)
    assert [check for check in verdict.checks if not check.passed] == []
    assert verdict.passed
    writes_tests = "writes-tests" in case.tags
    assert verdict.trust is (Trust.EVIDENT if writes_tests else Trust.TRUSTED)


@pytest.mark.parametrize("case", CASES)
def test_the_untouched_seed_does_not_pass(grader: Grader, case: Case, tmp_path: Path) -> None:
    assert not judged(grader, case, {}, tmp_path).passed


@pytest.mark.parametrize(("case", "variant"), VARIANTS)
def test_a_damaged_variant_loses_exactly_its_checks(
    grader: Grader, case: Case, variant: Damaged, tmp_path: Path
) -> None:
    verdict = judged(grader, case, solution_files(case, variant.name), tmp_path)
    lost = {check.name for check in verdict.checks if not check.passed}
    assert lost == set(variant.loses)


def test_what_is_shipped() -> None:
    executor, small = PACKS["executor"], PACKS["small-steps"]
    assert [case.id for case in executor.cases] == [
        "fix-bug",
        "long-output",
        "multi-file",
        "write-function",
    ]
    assert all(len(case.damaged) >= 2 for case in executor.cases)
    assert len(small.cases) >= 14
    assert all(case.damaged for case in small.cases)


@pytest.mark.parametrize("case", CASES)
def test_every_check_is_lost_by_the_seed_or_a_variant(
    grader: Grader, case: Case, tmp_path: Path
) -> None:
    """A check that nothing ever loses proves nothing."""
    assert case.hidden
    kept = set(grader.collect(case.hidden)) - {name for one in case.damaged for name in one.loses}
    if kept:
        seed = judged(grader, case, {}, tmp_path)
        kept -= {check.name for check in seed.checks if not check.passed}
    assert kept == set()


def test_broken_implementations_are_told_apart_from_the_right_one() -> None:
    """Where a candidate writes tests, at least three broken implementations try them."""
    for case in PACKS["executor"].cases:
        if "writes-tests" not in case.tags:
            continue
        assert case.hidden
        folders = {one.name: one for one in (case.hidden / "implementations").iterdir()}
        assert len(folders) >= 4
        texts = [
            tuple((file.name, file.path.read_bytes()) for file in content_files(folder))
            for folder in folders.values()
        ]
        assert len(set(texts)) == len(folders)


def test_copies_of_seed_files_in_hidden_folders_are_exact() -> None:
    for name in ("fix-bug", "long-output"):
        case = PACKS["executor"].case(name)
        assert case.hidden
        assert case.seed
        for original in (case.hidden / "original").iterdir():
            stem = original.name.removesuffix(".txt")
            candidates = [case.seed / stem, case.seed / "tests" / f"{stem}.py"]
            (source,) = [path for path in candidates if path.is_file()]
            assert original.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_a_world_holds_the_seed_and_nothing_hidden(case: Case, tmp_path: Path) -> None:
    """Neither the work tree nor any object of its repository is a hidden file or a reference."""
    assert case.seed
    assert case.hidden
    seed_repository(case.seed, tmp_path / "cache").fork(tmp_path)
    seed = {file.name: file.path.read_bytes() for file in content_files(case.seed)}
    tree = {
        file.name: file.path.read_bytes()
        for file in content_files(tmp_path / TREE)
        if file.name != ".git"
    }
    assert tree == seed
    objects = subprocess.run(
        ["git", "cat-file", "--batch-check=%(objectname)", "--batch-all-objects"],
        cwd=tmp_path / REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    private = [file.path.read_bytes() for file in content_files(case.hidden)]
    private += [path.read_bytes() for path in solution_files(case).values()]
    blobs = {_blob(data) for data in private if data not in seed.values()}
    assert {_blob(data) for data in seed.values()} <= set(objects)
    assert blobs
    assert blobs.isdisjoint(objects)


def _blob(data: bytes) -> str:
    """Return git's name of a file's content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def test_the_long_output_is_long(tmp_path: Path) -> None:
    """The one failure stands in the middle of what is many times the limit on output."""
    case = PACKS["executor"].case("long-output")
    assert case.seed
    limit = case.limits.output_chars
    assert limit
    for file in content_files(case.seed):
        (tmp_path / file.name).parent.mkdir(exist_ok=True)
        (tmp_path / file.name).write_bytes(file.path.read_bytes())
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "1 failed, 299 passed" in run.stdout
    assert len(run.stdout) > 5 * limit
    assert run.stdout.count("FAILED") == 1
    assert "FAILED" not in run.stdout[:limit] + run.stdout[-limit:]


def test_a_new_pack_is_sound(grader: Grader, tmp_path: Path) -> None:
    new_pack("mine", tmp_path / "cases", tmp_path / "references")
    pack: Pack = read_pack(tmp_path / "cases" / "mine", tmp_path / "references")
    (case,) = pack.cases
    assert judged(grader, case, solution_files(case), tmp_path / "1").passed
    assert not judged(grader, case, {}, tmp_path / "2").passed
    for variant in case.damaged:
        damaged = judged(grader, case, solution_files(case, variant.name), tmp_path / variant.name)
        assert {one.name for one in damaged.checks if not one.passed} == set(variant.loses)
