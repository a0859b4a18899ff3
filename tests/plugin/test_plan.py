from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_plan_says_what_runs_and_why_and_asks_nobody(
    project: Any, model: Any, model_server: Callable[..., Any]
) -> None:
    server = model_server(model)
    project.certified("a", "b", "c").served(
        "asked", server.url, price={"input": 1.0, "output": 2.0}
    )
    assert project.run("--models", "asked", "cases/tiny/a", "cases/tiny/b").exit == 0
    asked = len(server.seen)
    text = (project.path / "cases/tiny/b/hidden/test_answer.py").read_text()
    project.write("cases/tiny/b/hidden/test_answer.py", text + "\n\ndef test_more():\n    pass\n")
    project.candidate("asked", **project.candidates["asked"], api_key_env="NO_SUCH_KEY")
    before = {path: path.stat().st_mtime_ns for path in project.results.rglob("*.jsonl")}

    for args in ((), ("-n", "4")):
        ran = project.run("--models", "asked", "--modelbench-plan", *args)
        assert ran.exit == 0, ran.out
        assert "tiny: replay 1: verdict stored\n    a:asked:1" in ran.out
        assert "tiny: regrade 1: the check changed\n    b:asked:1" in ran.out
        assert "tiny: run 1: no attempt yet\n    c:asked:1" in ran.out
        assert "asked: 1 cell to run" in ran.out
        assert "about $0.0001" in ran.out  # 100 tokens in at $1 and 10 out at $2 a million
        assert "asked: cannot be asked: the variable NO_SUCH_KEY is not set\n" in ran.out
    project.candidate("foo", model="foo/bar")
    narrow = project.run("--models", "asked,foo", "--modelbench-plan", "-k", "c:")
    assert "foo: cannot be asked: 'foo/bar' names no provider that LiteLLM knows" in narrow.out
    assert "c:asked:1" in narrow.out
    assert "a:asked:1" not in narrow.out
    changed = project.run("--models", "asked", "--modelbench-plan", "--modelbench-fresh")
    assert "tiny: run 3: afresh, as asked" in changed.out

    assert len(server.seen) == asked
    assert {path: path.stat().st_mtime_ns for path in project.results.rglob("*.jsonl")} == before
    assert not project.leftovers()


def test_plan_names_what_is_stale(project: Any) -> None:
    project.certified("a").scripted("right")
    # Too large for the results' line, so that the harvest lies in the evidence that git leaves out.
    project.write("cases/tiny/a/seed/large.txt", "".join(f"{n}\n" for n in range(4000)))
    assert project.run("--models", "right").exit == 0
    for path in (project.results / ".evidence").rglob("*"):
        if path.is_file():
            path.unlink()
    text = (project.path / "cases/tiny/a/hidden/test_answer.py").read_text()
    project.write("cases/tiny/a/hidden/test_answer.py", text + "\n\ndef test_more():\n    pass\n")
    ran = project.run("--models", "right", "--modelbench-plan")
    assert "tiny: old 1: the check changed and the evidence is gone" in ran.out, ran.out
    ran = project.run("--models", "right", "--modelbench-plan", "--modelbench-rerun-stale")
    assert "tiny: run 1: the check changed and the evidence is gone" in ran.out


def test_plan_of_all_packs_needs_no_path_and_no_candidate_runs(project: Any) -> None:
    project.pack("a", damaged=True).scripted("right")
    ran = project.run("--models", "right", "--modelbench-plan")
    assert ran.exit == 0, ran.out
    assert "tiny: run 7 to certify with: no attempt yet" in ran.out
    assert "tiny: run 1: no attempt yet" in ran.out
    assert "right: 1 cell to run, time unknown, cost unknown" in ran.out
    assert not project.results.exists()


@pytest.mark.parametrize("workers", ["0", "4"])
def test_fresh_reaches_every_worker_and_starts_a_new_series(project: Any, workers: str) -> None:
    project.certified("a", "b", "c", "d").scripted("right")
    assert project.run("--models", "right", "-n", "2").exit == 0
    ran = project.run("--models", "right", "-n", workers, "--modelbench-fresh", "-v")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 4}
    assert "(stored)" not in ran.out
    assert {len(found) for found in project.verdicts("right").values()} == {2}
    index = project.index()
    for cell in project.cells("right"):
        assert index.superseded(cell) == 1
        assert len(index.current(cell)) == 1
    again = project.run("--models", "right", "-n", workers)
    assert again.exit == 0
    assert {len(found) for found in project.verdicts("right").values()} == {2}
