"""Looks, mid-p and partial runs: what they change in a scorecard."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.terminal import render


def outcomes(a_only: int, b_only: int, both: int = 0) -> dict[str, dict[str, str]]:
    letters = ["pu"] * a_only + ["up"] * b_only + ["pp"] * both
    return {
        "a": {f"c{n:02}": pair[0] for n, pair in enumerate(letters)},
        "b": {f"c{n:02}": pair[1] for n, pair in enumerate(letters)},
    }


def test_an_extended_grid_decides_at_alpha_over_its_looks(results: Any) -> None:
    found = outcomes(12, 2, 20)  # p = 0.013
    assert results.card(found).pairs[0].better == "a"
    second = results.count(found, looks=2, resized=True)
    assert (second.level, second.pairs[0].better) == (0.025, "a")
    fourth = results.count(found, looks=4, resized=True)
    assert (fourth.level, fourth.pairs[0].better) == (0.0125, None)
    text = "\n".join(render(fourth, 200))
    assert "level 0.013 since the grid was resized after a look" in text
    assert results.count(found, looks=9).level == 0.05  # looks at one declared size cost nothing


def test_mid_p_decides_only_when_asked_for_and_by_its_name(results: Any) -> None:
    found = outcomes(9, 2, 9)  # exact 0.0654, mid-p 0.0386: FR36's
    exact = results.card(found)
    assert exact.pairs[0].p == pytest.approx(0.0654, abs=5e-5)
    assert exact.pairs[0].better is None
    card = results.count(found, midp=True)
    assert card.pairs[0].p == pytest.approx(0.0386, abs=5e-5)
    assert card.pairs[0].better == "a"
    assert "paired by case (McNemar mid-p)" in "\n".join(render(card, 80))
    assert as_data(card)["pairs"]["compared"][0]["method"] == "McNemar mid-p"


def test_a_partial_run_compares_nothing(results: Any) -> None:
    card = results.card(outcomes(12, 2), compare=False)
    assert card.pairs == ()
    assert all(row.rank is None for row in card.rows)
    assert "BETTER" not in "\n".join(render(card, 80))


def test_versions_name_what_was_asked_and_how_it_was_judged(results: Any, record: Any) -> None:
    from pytest_modelbench.records import Identity

    card = results.card({"a": {"x": "p", "y": "p"}})
    same = card.versions["x"]
    assert card.versions == {"x": same, "y": same}
    changed = Identity(task="t1", check="c2", candidate="m1")
    results.append(record("a", "y", 1, "p", identity=changed))
    assert results.count({"a": {"x": "p", "y": "p"}}).versions["y"] != same
