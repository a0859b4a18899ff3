from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

FILES = Path("field-reports/files")


def fr24(project: Any, data: Path) -> None:
    """Lay the files of FR24 in this product's layout: seeds with tests, conftest and ini files."""
    source = data / FILES / "FR24-seed-with-tests" / "cases"
    project.write("cases/pack24/pack.toml", "[pack]\nname = 'pack24'\n[limits]\nturns = 3\n")
    for case in ("one", "two"):
        folder = project.path / "cases/pack24" / case
        shutil.copytree(source / case / "seed", folder / "seed")
        project.write(
            f"cases/pack24/{case}/hidden/test_calc.py",
            "def test_add(solution):\n    assert solution.load('calc').add(2, 3) == 5\n",
        )
        shutil.copytree(
            source / case / "reference", project.path / "reference_solutions/pack24" / case
        )
        prompt = (source / case / "prompt.md").read_text()
        project.write(f"cases/pack24/{case}/prompt.md", prompt)
        project.write(f"cases/pack24/{case}/case.toml", f"title = '{case}'\n")


@pytest.mark.parametrize("args", [(), ("-n", "2"), (".",), ("cases",), ("--co",)])
def test_plain_pytest_collects_no_pack_and_enters_no_seed(
    project: Any, data: Path, args: tuple[str, ...]
) -> None:
    fr24(project, data)
    project.write("test_x.py", "def test_x():\n    pass\n")
    ran = project.run("-v", *args)
    assert "calc" not in ran.out, ran.out
    assert "rootdir: " + str(project.path) in ran.out
    if args == ("cases",):
        assert ran.exit == 5
    else:
        assert ran.exit == 0
        assert "test_x.py" in ran.out
    assert not project.results.exists()


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("path", ["", "cases/pack24"])
def test_two_cells_and_nothing_below_a_seed(
    project: Any, data: Path, workers: str, path: str
) -> None:
    fr24(project, data)
    ran = project.run("--models", "seed", "-v", "-n", workers, *filter(None, [path]))
    assert set(ran.junit) == {"test_case[one:seed:1]", "test_case[two:seed:1]"}, ran.out
    assert "import file mismatch" not in ran.out
    assert "conftest" not in ran.out
    assert ran.exit == 0, ran.out


def test_pack_named_without_candidates_is_a_usage_error_that_lists_them(project: Any) -> None:
    project.pack("a").scripted("right")
    for path in ("cases/tiny", "cases/tiny/a", "cases/tiny/pack.toml"):
        ran = project.run(path)
        assert ran.exit == 4
        assert "no candidate is named to try it: --models" in ran.out
        assert "known: right, reference, seed" in ran.out
    assert not project.results.exists()


def test_ini_names_default_candidates(project: Any) -> None:
    project.certified("a").scripted("right").scripted("other")
    project.write("pytest.ini", "[pytest]\nmodelbench_models = right\n")
    ran = project.run("cases/tiny")
    assert ran.exit == 0, ran.out
    assert set(ran.junit) == {"test_case[a:right:1]"}
    ran = project.run("--models", "other", "cases/tiny")
    assert set(ran.junit) == {"test_case[a:other:1]"}, ran.out


def test_ini_candidates_leave_a_run_of_plain_tests_alone(project: Any) -> None:
    project.certified("a").scripted("right")
    project.write("pytest.ini", "[pytest]\nmodelbench_models = right\n")
    project.write("tests/test_x.py", "def test_x():\n    pass\n")
    ran = project.run("tests")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 1}
    assert "modelbench:" not in ran.out
    assert not project.tries("right")


def test_models_without_any_pack_is_a_usage_error(project: Any) -> None:
    project.scripted("right")
    project.write("test_x.py", "def test_x():\n    pass\n")
    for args in ((), ("test_x.py",)):
        ran = project.run("--models", "right", *args)
        assert ran.exit == 4
        assert "there is no pack to try them on" in ran.out
