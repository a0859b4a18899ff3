from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.plan import CERTIFYING_REPEATS

WHY = {
    "seed-already-passes": "the untouched seed passes",
    "reference-fails": "the reference fails",
    "check-broken": "No module named 'no_such_module'",
}


@pytest.fixture
def fr33(project: Any, data: Path) -> Any:
    """FR33's pack in this product's layout: one sound case, three that are not."""
    source = data / "field-reports/files/FR33-certification/cases"
    project.write("cases/tiny/pack.toml", "[pack]\nname = 'tiny'\n[limits]\nturns = 3\n")
    for case in ("sound", *WHY):
        folder = project.path / "cases/tiny" / case
        shutil.copytree(source / case / "seed", folder / "seed")
        shutil.copytree(
            source / case / "reference", project.path / "reference_solutions/tiny" / case
        )
        project.write(f"cases/tiny/{case}/prompt.md", (source / case / "prompt.md").read_text())
        project.write(f"cases/tiny/{case}/case.toml", f"title = '{case}'\n")
        # The files' own checks import the candidate's code; ours load it behind a wire.
        body = "    assert solution.load('calc').add(2, 3) == 5\n"
        head = "import no_such_module\n\n\n" if case == "check-broken" else ""
        project.write(
            f"cases/tiny/{case}/hidden/test_calc.py", f"{head}def test_add(solution):\n{body}"
        )
    project.write(
        "scripts/right.toml",
        "[[default.steps]]\ncalls = [{ name = 'write_file', arguments = { path = 'calc.py', "
        'content = "def add(a, b):\\n    return a + b\\n" } }, { name = "finish" }]\n',
    )
    return project.candidate("right", agent="scripted", script="scripts/right.toml")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_unusable_cases_are_in_no_denominator_and_their_reasons_are_shown(
    fr33: Any, workers: str
) -> None:
    for _ in range(2):  # when certificates are made, and from the store
        ran = fr33.run("--models", "right", "-n", workers, "-rs")
        assert ran.exit == 1, ran.out
        for case, why in WHY.items():
            (found,) = ran.junit[f"test_case[{case}:right:1]"]
            assert found.outcome == "skipped"
            assert why in found.message
        assert ran.junit["test_case[sound:right:1]"][0].outcome == "passed"
        assert "1/1" in ran.out, ran.out
    assert [cell.case for cell in fr33.verdicts("right")] == ["sound"]
    assert len(fr33.tries("right")) == 1


def test_reference_that_fails_and_seed_that_passes_are_ordinary_failures(fr33: Any) -> None:
    for _ in range(2):  # run, then replayed
        ran = fr33.run("--models", "reference,seed")
        assert ran.exit == 1
        outcome = {name: found[0].outcome for name, found in ran.junit.items()}
        assert outcome == {
            "test_case[sound:reference:1]": "passed",
            "test_case[sound:seed:1]": "passed",
            "test_case[seed-already-passes:reference:1]": "passed",
            "test_case[seed-already-passes:seed:1]": "failed",
            "test_case[reference-fails:reference:1]": "failed",
            "test_case[reference-fails:seed:1]": "passed",
            "test_case[check-broken:reference:1]": "error",
            "test_case[check-broken:seed:1]": "error",
        }
        assert "the untouched seed passes" in ran.out
        assert "the reference does not pass: test_add" in ran.out


def test_damaged_variant_that_loses_the_wrong_checks_is_found(project: Any) -> None:
    project.pack("a", "b", damaged=True).scripted("right")
    project.write("reference_solutions/tiny/b.damaged/two-lines/answer.txt", "b\n")
    ran = project.run("--models", "right", "-n", "2")
    assert ran.exit == 1
    (skipped,) = ran.junit["test_case[b:right:1]"]
    assert skipped.outcome == "skipped"
    assert "damaged variant two-lines should lose test_one_line and loses nothing" in ran.out
    assert [cell.case for cell in project.verdicts("right")] == ["a"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_to_ask_whether_cases_are_sound_tries_their_damaged_variants(
    project: Any, workers: str
) -> None:
    project.pack("a", "b", damaged=True)
    args = ("--models", "reference,seed", "-n", workers)
    sound = project.run(*args)
    assert sound.exit == 0, sound.out
    assert sound.outcomes() == {"passed": 2, "unsolved": 2, "certified": 2}
    again = project.run(*args)
    assert again.exit == 0, again.out
    assert again.outcomes() == {"passed": 2, "unsolved": 2}
    project.write("reference_solutions/tiny/b.damaged/two-lines/answer.txt", "b\n")
    for certified in ({"failed": 1}, {}):
        ran = project.run(*args)
        assert ran.exit == 1, ran.out
        assert ran.outcomes() == {"passed": 2, "unsolved": 2} | certified
        assert "damaged variant two-lines should lose test_one_line and loses nothing" in ran.out


def test_certificate_is_made_again_when_the_reference_changes(project: Any) -> None:
    project.certified("a").scripted("right")
    assert "certified" not in project.run("--models", "right").outcomes()
    project.write("reference_solutions/tiny/a/answer.txt", "a")  # no end of line
    ran = project.run("--models", "right")
    assert ran.exit == 1
    assert "the reference fails: test_one_line" in ran.out
    assert len(project.tries("right")) == 1


@pytest.mark.parametrize("chosen", [(), ("-k", "right")], ids=["whole", "chosen"])
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_reference_of_the_grid_is_part_of_the_certificate(
    project: Any, workers: str, chosen: tuple[str, ...]
) -> None:
    """Its attempts pass, but for the last: the case is unsound."""
    seen = project.path / "seen"
    project.pack("a").scripted("right")
    project.write(
        "cases/tiny/a/hidden/test_answer.py",
        "from pathlib import Path\n\n\n"
        "def test_one_line(solution):\n"
        "    assert solution.files['answer.txt'] == b'a\\n'\n"
        f"    with Path({str(seen)!r}).open('a+') as file:\n"
        "        file.write('.')\n"
        "        file.seek(0)\n"
        f"        assert file.read() != {'.' * CERTIFYING_REPEATS!r}\n",
    )
    ran = project.run("--models", "right,reference", "-n", workers, *chosen)
    assert ran.exit == 1, ran.out
    (skipped,) = ran.junit["test_case[a:right:1]"]
    assert skipped.outcome == "skipped", ran.out
    assert "the reference fails: test_one_line" in skipped.message
    assert project.tries("right") == []
    assert "test_case[a:reference:1]" in ran.junit


def test_a_reference_that_was_not_chosen_is_not_run_for_nothing(project: Any) -> None:
    project.certified("a").scripted("right")
    ran = project.run("--models", "right,reference", "-n", "0", "-k", "right")
    assert list(ran.junit) == ["test_case[a:right:1]"], ran.out


@pytest.mark.parametrize("workers", ["0", "2"])
def test_case_without_a_reference_is_reported_in_one_line_and_never_tried(
    project: Any, workers: str
) -> None:
    project.certified("a", "b").scripted("right")
    shutil.rmtree(project.path / "reference_solutions/tiny/b")
    why = "no reference; write reference_solutions/tiny/b/"
    ran = project.run("--models", "right,reference,seed", "-n", workers)
    assert ran.exit == 1, ran.out
    assert ran.outcomes() == {"passed": 2, "skipped": 2, "unsolved": 2}
    assert f"excluded case b: {why}" in ran.out
    assert "Traceback" not in ran.out
    assert "INTERIM" not in ran.out
    for name in ("right", "reference"):
        assert why in ran.junit[f"test_case[b:{name}:1]"][0].message
    assert [cell.case for cell in project.verdicts("right")] == ["a"]
    assert project.faulted("reference") == {}
    planned = project.run("--models", "reference", "--modelbench-plan", "cases/tiny/b")
    assert f"tiny: refuse 1: {why}" in planned.out
