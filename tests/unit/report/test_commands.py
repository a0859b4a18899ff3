"""``modelbench compare``, ``power`` and ``log`` on results as runs store them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.cli import main
from pytest_modelbench.commands.power import plan_lines
from pytest_modelbench.records import FaultRecord, Stage
from pytest_modelbench.stats import cost_ratio, power
from pytest_modelbench.store.looks import LOOKS, Looks, Showing, append_look

OUTCOMES = {
    "a": {f"c{n:02}": letter for n, letter in enumerate("pppppppppppp" + "uu" + "pppppppp")},
    "b": {f"c{n:02}": letter for n, letter in enumerate("uuuuuuuuuuuu" + "pp" + "pppppppp")},
}


@pytest.fixture
def run(results: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command on the results of a test; returns (exit status, output, errors)."""
    results.root.parent.joinpath("project").mkdir()
    monkeypatch.chdir(results.root.parent / "project")
    monkeypatch.setenv("COLUMNS", "100")

    def command(*arguments: str, stored: bool = True) -> tuple[int, str, str]:
        place = ("--results", str(results.root)) if stored else ()
        status = main([*arguments, *place])
        out, err = capsys.readouterr()
        return status, out, err

    return command


def test_compare_says_where_two_differ(results: Any, run: Any) -> None:
    results.store(OUTCOMES | {"other": dict.fromkeys(OUTCOMES["a"], "p")})
    status, out, _ = run("compare", "a", "b")
    assert status == 0
    assert "p 0.013" in out
    assert "a BETTER" in out
    assert "Holm" not in out  # two candidates are one comparison
    assert "other" not in out
    assert "better   a on 12: c00, c01," in out
    assert "better   b on 2: c12, c13" in out
    assert "modelbench show" in out
    assert "modelbench compare" not in out  # this is the one
    expected = cost_ratio(
        [0.01] * 22,
        [letter == "p" for letter in OUTCOMES["a"].values()],
        [0.01] * 22,
        [letter == "p" for letter in OUTCOMES["b"].values()],
    )
    assert expected is not None
    low, high, _ = expected.interval
    assert f"cost     a / b: 0.50 times [{low:.2f} to {high:.2f}] (95% paired log-delta)" in out
    assert "time     a / b: 1.00 times [1.00 to 1.00]" in out
    assert not (results.root / LOOKS).exists()


def test_compare_goes_by_what_both_finished_whatever_the_notes(results: Any, run: Any) -> None:
    """One was tried once, the other three times; the pair, the cases and the ratios agree."""
    results.store({"a": {"x": "p", "y": "p", "z": "f"}}, run="run-1", note="monday")
    results.store({"b": {"x": "upp", "y": "puu", "z": "ppp"}}, run="run-2", note="tuesday")
    status, out, _ = run("compare", "a", "b")
    assert status == 0
    assert "3 cases x 1 repeat x 2 candidates = 6 cells     5 verdicts     1 fault" in out
    assert "of 2 cases both pass 1, only a 1, only b 0" in out
    assert "better   a on 1: x\n" in out
    assert "better   b on no case\n" in out


def test_compare_is_of_the_cases_that_were_declared_for_both(results: Any, run: Any) -> None:
    """One was to do a single case, and one has none in common with it."""
    results.store({"a": {"x": "pu-", "y": "p-u"}}, run="run-1")
    results.store({"b": {"x": "u"}}, run="run-2", note="tuesday")
    results.store({"c": {"z": "u"}}, run="run-3")
    status, out, _ = run("compare", "a", "b")
    assert status == 0
    assert "1 case x 1 repeat x 2 candidates = 2 cells     2 verdicts     0 faults" in out
    assert "INTERIM" not in out
    assert "better   a on 1: x\n" in out
    status, _, err = run("compare", "b", "c")
    assert status != 0
    assert "no pack has results of both b and c on the same case" in err


def test_compare_as_data(results: Any, run: Any) -> None:
    results.store(OUTCOMES)
    status, out, _ = run("compare", "b", "a", "--json")
    assert status == 0
    (card,) = json.loads(out)
    assert card["b_better_on"] == [f"c{n:02}" for n in range(12)]
    assert card["a_better_on"] == ["c12", "c13"]
    assert card["cost_per_pass_ratio"]["value"] == pytest.approx(2)


def test_compare_needs_two_that_are_stored(results: Any, run: Any) -> None:
    results.store(OUTCOMES)
    status, _, err = run("compare", "a", "x")
    assert status == 4
    assert "no pack has results of both a and x" in err
    assert run("compare", "a", "a")[2] == "modelbench: a cannot be compared with itself\n"


@pytest.mark.parametrize(
    "command",
    [
        ("report", "exekutor"),
        ("compare", "a", "b", "exekutor"),
        ("regrade", "exekutor"),
        ("audit", "executor", "exekutor"),
    ],
)
def test_a_misspelled_pack_is_said(results: Any, run: Any, command: tuple[str, ...]) -> None:
    results.store(OUTCOMES)
    status, _, err = run(*command)
    assert status == 4
    assert "nothing is stored of pack 'exekutor', but of executor\n" in err


@pytest.mark.parametrize("command", ["report", "regrade"])
def test_a_misspelled_candidate_is_said(results: Any, run: Any, command: str) -> None:
    results.store(OUTCOMES)
    status, _, err = run(command, "--models", "a,c")
    assert status == 4
    assert "nothing is stored of candidate 'c', but of a, b\n" in err


def test_evaluate_runs_nothing_for_a_misspelled_pack(run: Any) -> None:
    status, out, err = run("evaluate", "openai/any", "exekutor", "--note", "n")
    assert (status, out) == (4, "")
    assert "cases has no pack 'exekutor', but no pack at all" in err


def test_packs_may_stand_behind_options(
    results: Any, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    results.store(OUTCOMES)
    wanted = run("compare", "a", "b", "executor")
    assert wanted[0] == 0
    assert run("compare", "a", "b", "--results", str(results.root), "executor") == wanted
    with pytest.raises(SystemExit):
        run("power", "--cases", "executor")
    with pytest.raises(SystemExit):
        run("compare", "a", "b", "--results", str(results.root), "executor", "--wrong")
    assert "unrecognized arguments: executor --wrong" in capsys.readouterr().err


def test_power_prints_the_table_of_the_plan(run: Any) -> None:
    status, out, _ = run("power", "--disagreement", "20", stored=False)
    assert status == 0
    assert out.splitlines()[2:7] == [
        "the two differ on 20% of cases:",
        "    3 points need 1,800 cases",
        "    5 points need 658 cases",
        "    10 points need 168 cases",
        "    15 points need 72 cases",
    ]
    assert out.splitlines()[-1].startswith("below 6 cases that differ")


def test_power_of_so_many_cases() -> None:
    lines = plan_lines([10], cases=100, margin=5, differences=[5, 15])
    assert "    at 100 cases 8.8 points are shown in 80 of 100 runs" in lines
    assert "passes an equally good candidate in 47 of 100 runs" in "\n".join(lines)
    assert f"100 cases they are shown in {power(100, 0.1, 0.05) * 100:.0f} of 100" in "\n".join(
        lines
    )
    assert any("15 points cannot be" in line for line in lines)
    family = plan_lines([20], differences=[10], comparisons=10)
    assert "10 comparisons (alpha 0.005 each)" in family[0]
    assert "    10 points need 270 cases" in family
    assert family[-1].startswith("below 9 cases that differ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cases", "0"], "--cases 0 is not above 0"),
        (["--difference", "-5"], "--difference -5 is not above 0 and at most 100"),
        (["--chance", "100"], "--chance 100 is not above 0 and at most 99.9"),
    ],
)
def test_power_refuses_what_cannot_be(run: Any, arguments: list[str], said: str) -> None:
    status, _, err = run("power", *arguments, stored=False)
    assert status == 4
    assert said in err


def test_log_lists_runs_notes_and_looks_by_their_times(
    results: Any, run: Any, tmp_path: Path
) -> None:
    results.store({"a": {"x": "p", "y": "f"}, "b": {"x": "u", "y": "p"}}, note="Q4, port 8080")
    showing = Showing("executor", ("x", "y"), ("a", "b"), 1, 4, {"1": "a", "2": "b", "3": "b"})
    reading = Looks().reading(showing)
    append_look(results.root, "run-1", "2026-01-09T01:00:00.000Z", showing, reading)
    status, out, _ = run("log")
    assert status == 0
    assert out.splitlines() == [
        "2026-01-09T00:00:00Z  run run-1  executor: a, b; 3 verdicts (2 passed), 1 fault",
        "    note: Q4, port 8080",
        "2026-01-09T01:00:00Z  look 1 at executor: 2 cases x 1 repeat, a, b; interim; "
        "3 of 3 verdicts new;",
        "      decided at p < 0.001 (run run-1)",
    ]
    data = json.loads(run("log", "--json")[1])
    assert (data["runs"][0]["faults"], data["looks"][0]["shown"]) == (1, ["1", "2", "3"])


def test_log_counts_cells_and_certificates_apart(results: Any, run: Any, record: Any) -> None:
    """A built-in candidate that was asked for has verdicts; a cell that faulted twice is one."""
    results.store({"reference": {"x": "p"}, "seed": {"x": "u"}, "a": {"x": "-", "y": "-"}})
    for candidate, case, repeat, letter in (
        *(("reference", "x", n, "p") for n in (2, 3)),
        *(("a", "y", 1, letter) for letter in "ff"),
        *(("a", "x", 1, letter) for letter in "fp"),
    ):
        results.append(record(candidate, case, repeat, letter))
    status, out, _ = run("log")
    assert status == 0
    assert " ".join(out[out.index("2026-01-09") :].split()) == (
        "2026-01-09T00:00:00Z run run-1 executor: reference, seed, a; 3 verdicts (2 passed), "
        "1 fault; 2 attempts to certify"
    )


def test_log_tells_a_regrade_from_a_run_and_interrupted_work_from_faults(
    results: Any, run: Any, record: Any
) -> None:
    cut = FaultRecord(kind="interrupted", stage=Stage.GRADE)
    results.store({"a": {"x": "p", "y": "-"}}).append(
        record("a", "y", 1, "g", id="cut", fault=cut),
        record("a", "y", 1, "u", run="run-2", kind="regrade", grades="cut"),
    )
    out = " ".join(run("log")[1].split())
    assert "run run-1 executor: a; 1 verdict (1 passed), 0 faults, 1 interrupted" in out
    assert "regrade run-2 executor: a; 1 verdict (0 passed), 0 faults" in out


@pytest.mark.parametrize("width", ["40", "80"])
def test_lines_fit_the_terminal(
    results: Any, run: Any, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    results.store({f"candidate-{n}": {"x": "p"} for n in range(9)}, note="a note of words " * 9)
    monkeypatch.setenv("COLUMNS", width)
    for command in (("log",), ("power", "--cases", "100", "--margin", "5", "--comparisons", "3")):
        out = run(*command, stored=command == ("log",))[1]
        assert max(map(len, out.splitlines())) <= int(width)


def test_log_of_nothing(run: Any) -> None:
    status, _, err = run("log")
    assert status == 4
    assert "nothing is stored there" in err


def test_report_counts_as_no_look(results: Any, run: Any) -> None:
    results.store(OUTCOMES)
    before = sorted(path.name for path in results.root.rglob("*"))
    assert run("report")[0] == 0
    assert sorted(path.name for path in results.root.rglob("*")) == before
