"""Gates: exit status, stable lines, JSON and JUnit; with and without xdist."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project, Ran

CASES = tuple("abcd")


@pytest.fixture
def two(project: Project) -> Project:
    """Four cases: ``good`` solves all of them, ``poor`` one."""
    return project.certified(*CASES).scripted("good").scripted("poor", wrong=CASES[1:])


def gates(ran: Ran) -> list[str]:
    return [line for line in ran.out.splitlines() if line.startswith("gate ")]


def rules(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--modelbench-gate", text)]


def suite_properties(project: Project, run: int) -> dict[str, str]:
    """Return the properties of the test suite in the JUnit file of a run."""
    tree = ET.parse(project.path.parent / f"run{run}.xml")
    found = tree.findall("./testsuite/properties/property")
    return {one.get("name", ""): one.get("value", "") for one in found}


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_exit_statuses_of_gates(two: Project, workers: str) -> None:
    models = ("--models", "good,poor", "-n", workers)
    passed = two.run(*models, *rules("floor:good:0.5"), "--modelbench-report", "all.json")
    assert passed.exit == 0, passed.out
    line = (
        "gate floor:good:0.5: PASS  tiny: good passes 100% [59.7-100], floor 50% "
        "(90% Wilson, 4 cases)"
    )
    assert gates(passed) == [line]
    assert "one exactly at the floor passes in about 6 of 100 runs at 4 cases" in passed.out
    assert suite_properties(two, 1) == {
        "modelbench.status.tiny": "scorecard",
        "modelbench.look.tiny": "1",
        "modelbench.rate.tiny.good": "4/4 100% [51.0-100]",
        "modelbench.rate.tiny.poor": "1/4 25.0% [4.6-69.9]",
        "modelbench.pair.tiny.good - poor": "no detectable difference at these cases",
        "modelbench.gate.tiny.floor:good:0.5": line,
    }
    data = json.loads((two.path / "all.json").read_text(encoding="utf-8"))
    (gate,) = data["gates"]
    assert (gate["outcome"], gate["line"], gate["set_after_data"]) == ("pass", line, False)
    assert gate["interval"]["low"] == pytest.approx(4 / (4 + 1.6448536269514722**2))
    assert data["gate_status"] == 0

    # From here on everything is replayed: a margin that is new now was set after data.
    failed = two.run(*models, *rules("floor:poor:0.7"))
    assert failed.exit == 10, failed.out
    (line,) = gates(failed)
    assert line.startswith("gate floor:poor:0.7: FAIL  tiny: poor passes 25.0% [")
    assert line.endswith("; rule set after data")

    undecided = two.run(*models, *rules("floor:good:0.7"))
    assert undecided.exit == 11, undecided.out
    assert "gate floor:good:0.7: INCONCLUSIVE" in undecided.out

    worst = two.run(*models, *rules("floor:good:0.7", "floor:poor:0.7", "floor:good:0.5"))
    assert worst.exit == 10, worst.out
    assert [line.split()[2] for line in gates(worst)] == ["INCONCLUSIVE", "FAIL", "PASS"]
    assert not gates(worst)[2].endswith("set after data")  # the first run had declared it

    # One of the four cases has no verdict in the stored scorecard that is the baseline.
    card = data["cards"][0]
    poor = next(row for row in card["candidates"] if row["name"] == "poor")
    poor["by_case"]["c"]["verdicts"] = 0
    two.write("main.json", json.dumps(data))
    incomplete = two.run(
        *models, *rules("floor:poor:0.7", "not-worse-by:5:good:baseline=main.json#poor")
    )
    assert incomplete.exit == 12, incomplete.out
    assert "INCOMPLETE  tiny: 1 of 4 cases lack verdicts of poor of main.json" in incomplete.out


@pytest.mark.parametrize("workers", ["0", "2"])
def test_faults_win_over_gates_and_leave_the_grid_incomplete(two: Project, workers: str) -> None:
    two.scripted("down", error={"status": 500, "times": 99}, failing="b")
    two.declare("gateway", retries=0)
    ran = two.run(
        "--models", "good,down", "-n", workers, "--modelbench-fault-retries", "0",
        *rules("floor:good:0.5", "floor:down:0.5"),
    )  # fmt: skip
    assert ran.exit == 1, ran.out
    assert gates(ran) == [
        f"gate floor:{name}:0.5: INCOMPLETE  tiny: 1 of 8 cells has no verdict"
        for name in ("good", "down")
    ]
    assert "interim" in suite_properties(two, 1)["modelbench.status.tiny"]


def test_gates_of_pyproject_and_those_that_are_not_about_the_run(two: Project) -> None:
    two.write(
        "pyproject.toml",
        '[tool.modelbench.gates.quality]\nkind = "not-worse-by"\ncandidate = "poor"\n'
        'baseline = "good"\nmargin = 5\n\n[tool.modelbench.gates.level]\nkind = "floor"\n'
        'candidate = "good"\nlimit = 0.5\n',
    )
    alone = two.run("--models", "good")
    assert alone.exit == 0, alone.out
    assert gates(alone) == [
        "gate quality: NOT JUDGED  poor is not in this run",
        "gate level: PASS  tiny: good passes 100% [59.7-100], floor 50% (90% Wilson, 4 cases)",
    ]
    needed = two.run("--models", "good", *rules("quality"))
    assert needed.exit == 4, needed.out
    assert "--modelbench-gate quality: poor is not in this run, which tries good" in needed.out
    both = two.run("--models", "good,poor")
    assert both.exit == 10, both.out
    assert gates(both)[0].startswith("gate quality: FAIL  tiny: poor - good: -75.0 pt")
    assert "an equally good candidate passes in about " in both.out


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("floor:good:60", "is not a share between 0 and 1"),
        ("floor:other:0.6", "other is not in this run, which tries good, poor"),
        ("regression:good", "it needs a baseline"),
        ("regression:good:baseline=x", "x is not in this run"),
        ("regression:good:baseline=x.json", "x.json: the baseline's scorecard cannot be read"),
        ("floor:good:0.6:pack=huge", "pack huge is not in this run: tiny"),
        ("quality", "pyproject.toml declares no gate of that name, but none at all"),
        ("quality:good:0.6", "there is no kind 'quality'"),
    ],
)
def test_a_rule_that_cannot_be_judged_is_refused_before_anything_runs(
    project: Project, rule: str, told: str
) -> None:
    project.pack("a").scripted("good").scripted("poor")
    ran = project.run("--models", "good,poor", *rules(rule))
    assert ran.exit == 4, ran.out
    assert told in ran.out
    assert "INTERNALERROR" not in ran.out
    assert not list(project.results.glob("*/*/*.jsonl"))
    # The folder is free again.
    assert "another run" not in project.run("--models", "x").out


def test_a_partial_run_judges_no_gate_and_counts_as_no_look(two: Project) -> None:
    ran = two.run("--models", "good,poor", "-k", "a:", *rules("floor:good:0.5"))
    assert ran.exit == 0, ran.out
    assert gates(ran) == ["gate floor:good:0.5: NOT JUDGED  a partial run judges no gate"]
    assert "partial  a partial run has no scorecard" in ran.out
    assert "paired by case" not in ran.out
    assert not (two.results / "looks.jsonl").exists()
    assert suite_properties(two, 1)["modelbench.status.tiny"] == "partial"


def test_the_step_summary_gets_the_report_in_markdown(two: Project, tmp_path: Path) -> None:
    step = tmp_path / "step.md"
    step.write_text("before\n", encoding="utf-8")
    ran = two.run(
        "--models", "good", *rules("floor:good:0.7"), "--modelbench-report", "all.md",
        environ={"GITHUB_STEP_SUMMARY": str(step)},
    )  # fmt: skip
    assert ran.exit == 11, ran.out
    text = (two.path / "all.md").read_text(encoding="utf-8")
    assert text.startswith("## modelbench: tiny\n")
    assert "| floor:good:0.7 | tiny | INCONCLUSIVE |" in text
    assert "- look: 1; the grid is complete" in text
    assert step.read_text(encoding="utf-8") == "before\n" + text

    wrong = two.run("--models", "good", "--modelbench-report", "all.html")
    assert wrong.exit == 4, wrong.out
    assert "all.html: the name must end in .md or .json" in wrong.out
    wrong = two.run("--models", "good", "--modelbench-budget", "abc")
    assert "'abc' is no number of dollars" in wrong.out
    nowhere = {"GITHUB_STEP_SUMMARY": str(two.path / "all.md" / "x.md")}
    wrong = two.run("--models", "good", environ=nowhere)
    assert wrong.exit == 1, wrong.out
    told = (
        f"modelbench the report is not complete: {two.path / 'all.md' / 'x.md'}: cannot be written"
    )
    assert told in wrong.out.partition("modelbench: tiny =")[2]
