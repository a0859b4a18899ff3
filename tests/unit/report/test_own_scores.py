"""What a benchmark itself says of a candidate: scores, guesses, and figures that decide nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_modelbench.records import Verdict
from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.markdown import markdown
from pytest_modelbench.report.terminal import render


def weigh(shares: Mapping[str, float]) -> Mapping[str, float]:
    return {"weighted": shares["x"] * 0.75 + shares["y"] * 0.25}


def test_scores_are_of_candidates_that_have_a_verdict_on_every_case(results: Any) -> None:
    outcomes = {"whole": {"x": "p", "y": "u"}, "part": {"x": "p", "y": "f"}}
    card = results.card(outcomes, scores=weigh, guesses={"the commonest": 0.125})
    rows = {row.candidate: row for row in card.rows}
    assert rows["whole"].scores == {"weighted": 0.75}
    assert rows["part"].scores == {}
    text = "\n".join(render(card, 100, True))
    assert "  guessing gets: the commonest 12.5 %" in text
    assert "  whole: weighted 75.0 %" in text
    assert "part: weighted" not in text
    assert "- Guessing gets: the commonest 12.5 %." in markdown(card)
    data = as_data(card)
    assert data["guesses"] == {"the commonest": 0.125}
    assert {one["name"]: one["scores"] for one in data["candidates"]} == {
        "whole": {"weighted": 0.75},
        "part": {},
    }


def test_measures_are_told_as_means_over_verdicts(results: Any, record: Any) -> None:
    verdicts = [
        Verdict(passed=True, reward=1.0, measures={"r-ves": 100.0}),
        Verdict(passed=False, reward=0.0, reason="wrong", measures={"r-ves": 0.0}),
        Verdict(passed=False, reward=0.0, reason="wrong"),
    ]
    for case, verdict in zip("xyz", verdicts, strict=True):
        letter = "p" if verdict.passed else "u"
        results.append(record("c", case, 1, letter, verdict=verdict))
    card = results.count({"c": {"x": "p", "y": "u", "z": "u"}})
    assert card.rows[0].measures == {"r-ves": 50.0}
    assert "  c: mean r-ves 50 (decides nothing)" in "\n".join(render(card, 100, True))
    assert as_data(card)["candidates"][0]["measures"] == {"r-ves": 50.0}


def test_a_verdict_without_measures_is_stored_as_ever(record: Any) -> None:
    assert "measures" not in record("c", "x", 1, "p").to_line()
