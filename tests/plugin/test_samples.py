"""Splits and samples: the same cases in every worker and every run (FR22)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.packs.sampling import Draw, draw_cases, split_of
from pytest_modelbench.store.reader import read

if TYPE_CHECKING:
    from tests.plugin.conftest import Project, Ran


def collected(ran: Ran) -> list[str]:
    """Return the case ids of the items that --collect-only lists, in their order."""
    return re.findall(r"test_case\[([a-z0-9-]+):good:1\]", ran.out)


def test_ten_cases_at_random_are_the_same_ten_everywhere(project: Project) -> None:
    names = [f"case-{number:02}" for number in range(30)]
    project.pack(*names).scripted("good")
    draw = ("--models", "good", "--modelbench-sample", "10", "--modelbench-sample-seed", "7")
    first = project.run(*draw, "--collect-only", "-q")
    assert first.exit == 0, first.out
    chosen = collected(first)
    assert len(chosen) == 10
    assert set(chosen) < set(names)
    again = project.run(*draw, "--collect-only", "-q", environ={"PYTHONHASHSEED": "1"})
    assert collected(again) == chosen
    more = project.run(
        "--models", "good", "--modelbench-sample", "20", "--modelbench-sample-seed", "7",
        "--collect-only", "-q",
    )  # fmt: skip
    assert set(chosen) < set(collected(more))
    assert len(collected(more)) == 20


@pytest.mark.slow
def test_a_sample_runs_alike_in_all_workers_and_is_recorded(project: Project) -> None:
    project.certified(*"abcd").scripted("good")
    draw = ("--modelbench-sample", "2", "--modelbench-sample-seed", "7")
    ran = project.run("--models", "good", *draw, "-n", "4")
    assert ran.exit == 0, ran.out
    assert "different tests were collected" not in ran.out
    assert "modelbench: tiny: sample of 2, sample seed 7" in ran.out
    assert "drawn    sample of 2, sample seed 7: 2 cases" in ran.out
    tried = {cell.case for cell in project.verdicts("good")}
    assert len(tried) == 2
    (header,) = [h for h in project.index().headers if h.candidate == "good"]
    assert set(header.cases) == tried
    assert header.draw == {
        "split": "",
        "sample": 2,
        "sample_seed": 7,
        "per": "",
        "exclude_seen": False,
    }
    replay = project.run("--models", "good", *draw)
    assert "2 replayed" in replay.out

    # A fresh sample avoids what was seen; the same command goes on with the same cases.
    fresh = (
        "--modelbench-sample",
        "2",
        "--modelbench-sample-seed",
        "1",
        "--modelbench-exclude-seen",
    )
    ran = project.run("--models", "good", *fresh)
    assert ran.exit == 0, ran.out
    assert {cell.case for cell in project.verdicts("good")} == set("abcd")
    assert "2 replayed" in project.run("--models", "good", *fresh).out
    used_up = project.run("--models", "good", "--modelbench-exclude-seen")
    assert used_up.exit == 4, used_up.out
    assert "tiny: no case is left of 4 (without cases that were seen; 4 were seen)" in used_up.out


@pytest.mark.slow
def test_dev_never_gates_and_readings_of_eval_are_counted(project: Project) -> None:
    project.certified(*"abcd").scripted("good")
    from pytest_modelbench.packs.reading import read_packs

    (pack,) = read_packs([project.path / "cases/tiny"], project.path / "reference_solutions")
    dev = {case.id for case in pack.cases if split_of(case) == "dev"}
    assert dev == {case.id for case in draw_cases(pack.cases, Draw(split="dev"))}
    assert 0 < len(dev) < 4

    gate = ("--modelbench-gate", "floor:good:0.99")
    tuned = project.run("--models", "good", "--modelbench-split", "dev", *gate)
    assert tuned.exit == 0, tuned.out
    assert {cell.case for cell in project.verdicts("good")} == dev
    assert "gate floor:good:0.99: NOT JUDGED  dev: prompts and settings are chosen" in tuned.out
    assert "split    dev: prompts and settings are chosen on these cases" in tuned.out

    held_out = project.run(
        "--models", "good", "--modelbench-split", "eval", *gate, "--modelbench-report", "r.json"
    )
    assert held_out.exit == 11, held_out.out
    assert "split    eval, reading 1 of 5 of these cases" in held_out.out
    assert {cell.case for cell in project.verdicts("good")} == set("abcd")
    (card,) = json.loads((project.path / "r.json").read_text())["cards"]
    assert (card["look"]["eval_readings"], card["look"]["split"]) == (1, "eval")
    assert card["draw"] == "split eval"

    other = dev.copy().pop()
    named = project.run("--models", "good", "--modelbench-split", "eval", f"cases/tiny/{other}")
    assert named.exit == 4, named.out
    assert f"the case {other!r} is named and not among the" in named.out


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--modelbench-sample-seed", "7"], "--modelbench-sample-seed needs --modelbench-sample N"),
        (["--modelbench-sample-per", "x"], "--modelbench-sample-per needs --modelbench-sample N"),
        (["--modelbench-split", "test"], "invalid choice: 'test'"),
        (["--modelbench-baseline", "other"], "other: it is not in this run, which tries good"),
    ],
)
def test_options_that_say_nothing_are_refused(project: Project, args: list[str], told: str) -> None:
    project.pack("a").scripted("good")
    ran = project.run("--models", "good", *args)
    assert ran.exit == 4, ran.out
    assert told in ran.out
    assert read(project.results).headers == []
