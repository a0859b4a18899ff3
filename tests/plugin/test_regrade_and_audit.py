"""Stored work is judged again by today's check; a verdict must be what its evidence gives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.records import sealed
from pytest_modelbench.settings import utc_now
from pytest_modelbench.store.lock import RunLock

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def modelbench(project: Project, *args: str) -> tuple[int, str]:
    """Run the command in a project; return exit status and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_modelbench.cli", *args],
        cwd=project.path,
        env=os.environ | project._environ() | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def measured(project: Project) -> Project:
    """A project with one right and one wrong answer stored."""
    project.certified("one", "two").scripted("half", wrong=["two"])
    ran = project.run("--models", "half", "-q")
    assert ran.exit == 0, ran.out
    return project


def lines(project: Project, candidate: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the lines of attempts and regrades of a candidate, with their files."""
    found = []
    for path in sorted((project.results / "tiny" / candidate).glob("*.jsonl")):
        for text in path.read_text().splitlines():
            raw = json.loads(text)
            if raw["kind"] != "run":
                found.append((path, raw))
    return found


def rewrite(path: Path, old: dict[str, Any], new: str) -> None:
    """Put another text in the place of a line."""
    text = path.read_text()
    before = next(line for line in text.splitlines() if json.loads(line).get("id") == old["id"])
    path.write_text(text.replace(before, new))


def test_an_untouched_store_has_no_findings(measured: Project) -> None:
    status, said = modelbench(measured, "audit")
    assert status == 0, said
    # Two answers; and by case three references and three seeds, that certify it.
    assert "14 attempts" in said
    assert "14 verdicts repeated" in said
    assert "findings: 0" in said


def test_an_edited_line_is_found(measured: Project) -> None:
    path, raw = next(one for one in lines(measured, "half") if one[1]["outcome"] == "unsolved")
    edited = dict(raw, seconds=0.001)
    rewrite(path, raw, json.dumps(edited, separators=(",", ":")))
    status, said = modelbench(measured, "audit")
    assert status == 1
    assert f"{path.name}:" in said
    assert "changed after it was written" in said
    assert "findings: 1" in said


def test_a_forged_verdict_with_a_new_seal_is_found_by_its_evidence(measured: Project) -> None:
    path, raw = next(one for one in lines(measured, "half") if one[1]["outcome"] == "unsolved")
    forged = {name: value for name, value in raw.items() if name != "digest"}
    forged["outcome"] = "passed"
    forged["verdict"] = {
        "passed": True,
        "reward": 1.0,
        "checks": [{"name": c["name"], "passed": True} for c in raw["verdict"]["checks"]],
    }
    rewrite(path, raw, sealed(forged))
    status, said = modelbench(measured, "audit")
    assert status == 1
    assert "not what its evidence gives: stored passed" in said
    assert "from the evidence not passed" in said
    assert "test_answer" in said


@pytest.mark.parametrize("how", ["harmed", "replaced"])
def test_harmed_evidence_is_found(how: str, measured: Project) -> None:
    _, raw = lines(measured, "half")[0]
    digest = raw["evidence"]["observation"].removeprefix("sha256:")
    blob = measured.results / ".evidence" / digest[:2] / digest
    if how == "harmed":
        blob.write_bytes(blob.read_bytes()[:-7])
    else:
        other = next(p for p in (measured.results / ".evidence").glob("*/*") if p != blob)
        shutil.copy(other, blob)
    status, said = modelbench(measured, "audit")
    assert status == 1
    assert "observation: " in said
    assert "not what sha256:" in said


def test_an_edited_harvest_is_found(measured: Project) -> None:
    path, raw = next(one for one in lines(measured, "half") if one[1]["case"] == "two")
    forged = {name: value for name, value in raw.items() if name != "digest"}
    (name,) = [name for name in forged["harvest"] if name != "manifest"]
    forged["harvest"] = dict(forged["harvest"], **{name: "dHdvCg=="})
    rewrite(path, raw, sealed(forged))
    status, said = modelbench(measured, "audit")
    assert status == 1
    assert "the harvest is not what its manifest says" in said


def test_lines_of_before_and_evidence_elsewhere_are_no_findings(measured: Project) -> None:
    for path in measured.results.glob("tiny/*/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row.pop("digest", None)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shutil.rmtree(measured.results / ".evidence")
    status, said = modelbench(measured, "audit")
    assert status == 0, said
    assert "14 lines are not sealed" in said
    assert "14 pieces of evidence (observation) are not on this machine" in said


def test_committed_lines_quote_nothing_of_the_checks(measured: Project) -> None:
    hidden = "solution.files['answer.txt']"
    texts = [path.read_text() for path in measured.results.glob("tiny/*/*.jsonl")]
    assert not any("assert " in text or hidden in text for text in texts)
    _, raw = next(one for one in lines(measured, "half") if one[1]["outcome"] == "unsolved")
    digest = raw["evidence"]["observation"].removeprefix("sha256:")
    import zlib

    kept = zlib.decompress((measured.results / ".evidence" / digest[:2] / digest).read_bytes())
    assert hidden in json.loads(kept)["rows"][0]["text"]


def test_a_changed_check_judges_stored_work(measured: Project) -> None:
    before = {raw["id"] for _, raw in lines(measured, "half")}
    measured.write(
        "cases/tiny/one/hidden/test_answer.py",
        "def test_answer(solution):\n"
        "    assert solution.files['answer.txt'] == b'never'\n\n\n"
        "def test_one_line(solution):\n"
        "    assert solution.files['answer.txt'].count(b'\\n') == 1\n",
    )
    status, said = modelbench(measured, "regrade", "--models", "half")
    assert status == 0, said
    assert "2 to judge again; no candidate and no judge is called" in said
    assert "tiny/one:half:1: passed -> unsolved [test_answer]" in said
    assert "tiny/two:half:1" not in said, "what stays as it was is counted, and not listed"
    assert "changed: 1; same: 1" in said
    new = [raw for _, raw in lines(measured, "half") if raw["id"] not in before]
    assert [raw["kind"] for raw in new] == ["regrade", "regrade"]
    assert {raw["grades"] for raw in new} == before
    status, said = modelbench(measured, "audit")
    assert status == 0, said
    assert "16 verdicts repeated, 2 regrades" in said
    status, said = modelbench(measured, "regrade", "--models", "half", "--stale")
    assert "0 to judge again" in said
    assert "2 left out: today's check has judged it" in said


def test_a_plan_changes_nothing(measured: Project) -> None:
    before = {path: path.read_bytes() for path in measured.results.glob("tiny/*/*")}
    status, said = modelbench(measured, "regrade", "--plan", "--isolation", "vacuum")
    assert status == 4
    assert "isolation 'vacuum' is not known" in said
    status, said = modelbench(measured, "regrade", "--plan")
    assert status == 0
    assert "14 to judge again" in said
    assert {path: path.read_bytes() for path in measured.results.glob("tiny/*/*")} == before


def test_a_regrade_waits_for_no_run_but_refuses(measured: Project) -> None:
    with RunLock.take(measured.results, "other", utc_now()):
        status, said = modelbench(measured, "regrade")
    assert status == 4
    assert f"another run is measuring into this folder: pid {os.getpid()}" in said


def test_harvests_that_are_elsewhere_are_left_out(measured: Project) -> None:
    for path, raw in lines(measured, "half"):
        gone = {name: value for name, value in raw.items() if name not in ("harvest", "digest")}
        rewrite(path, raw, sealed(gone))
    status, said = modelbench(measured, "regrade", "--models", "half")
    assert status == 0
    assert "2 left out: its harvest is not on this machine" in said


def test_damaged_variants_are_of_today_and_their_regrades_are_repeated(project: Project) -> None:
    project.pack("one", damaged=True).scripted("right")
    ran = project.run("--models", "right", "-q")
    assert ran.exit == 0, ran.out
    status, said = modelbench(project, "audit")
    assert (status, said.splitlines()[1:]) == (0, []), said
    status, said = modelbench(project, "regrade")
    assert (status, said.splitlines()[-1]) == (0, "same: 8"), said
    status, said = modelbench(project, "audit")
    assert (status, said.splitlines()[1:]) == (0, []), said
    assert "16 verdicts repeated" in said
    shutil.rmtree(project.path / "reference_solutions/tiny/one.damaged")
    status, said = modelbench(project, "audit")
    assert "2 results are of tiny/one by candidates, or of cases, that are no longer here" in said


def test_judging_again_without_a_change_is_no_look(project: Project) -> None:
    project.certified("one", "two").scripted("half", wrong=["two"])
    assert project.run("--models", "half").exit == 0
    twice = ("--models", "half", "--modelbench-repeats", "2")
    assert "2; the grid is complete; its declared size changed" in project.run(*twice).out
    before = (project.results / "looks.jsonl").read_bytes()
    assert modelbench(project, "regrade")[1].splitlines()[-1] == "same: 16"
    told = "look     2 again, nothing new is shown; the grid is complete; its declared size changed"
    assert told in project.run(*twice).out
    assert (project.results / "looks.jsonl").read_bytes() == before

    check = project.path / "cases/tiny/one/hidden/test_answer.py"
    check.write_text(check.read_text().replace("== 1", "== 2"))
    project.write("reference_solutions/tiny/one/answer.txt", "one\none\n")
    changed = project.run(*twice)
    assert "look     3; the grid is complete; its declared size changed" in changed.out
    (look,) = map(json.loads, (project.results / "looks.jsonl").read_text().splitlines()[2:])
    assert len(look["shown"]) == 2, "of the case whose verdicts changed"
