"""Categories are weighed as the leaderboard weighs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.bfcl.leaderboard import SCORE, weighted
from pytest_modelbench.benchmarks.bfcl.provider import Bfcl

SHARES = {
    "simple_python": [1.0, 1.0, 1.0, 1.0],
    "simple_java": [0.0, 1.0],
    "simple_javascript": [0.0],
    "multiple": [1.0],
    "parallel": [0.0, 1.0],
    "parallel_multiple": [0.0],
    "irrelevance": [1.0, 1.0, 1.0, 0.0],
    "live_simple": [1.0, 1.0, 0.0],
    "live_multiple": [1.0],
    "live_parallel": [0.0, 0.0, 0.0],
    "live_parallel_multiple": [0.0],
    "live_irrelevance": [0.25],
    "live_relevance": [1.0, 0.0],
}


def test_languages_weigh_alike_live_goes_by_cases_and_three_parts_weigh_alike() -> None:
    found = weighted(SHARES)
    assert list(found) == [SCORE, "non-live", "live", "irrelevance", "live relevance"]
    assert found["non-live"] == pytest.approx((0.5 + 1 + 0.5 + 0) / 4)
    assert found["live"] == pytest.approx(3 / 8)
    assert found["irrelevance"] == pytest.approx((0.75 + 0.25) / 2)
    assert found[SCORE] == pytest.approx((0.5 + 3 / 8 + 0.5) / 3)
    assert found["live relevance"] == 0.5


def test_what_lacks_a_category_has_no_score() -> None:
    assert list(weighted({k: v for k, v in SHARES.items() if k != "simple_java"})) == [
        "live",
        "irrelevance",
        "live relevance",
    ]
    assert weighted({"simple_python": [1.0]}) == {}


def test_a_pack_has_it_for_the_cases_that_count() -> None:
    benchmark = Bfcl(Path(__file__).parents[3] / "data" / "bfcl", {"data": "cases"})
    cases = list(benchmark.cases())
    everything = benchmark.scores(cases, {case.id: 1.0 for case in cases})
    assert set(everything.values()) == {1.0}
    assert SCORE in everything
    java = {case.id: 1.0 for case in cases if case.public["category"] != "simple_java"}
    assert SCORE not in benchmark.scores(cases, java)
