"""FR04: a cost that a program reports stands beside the list price, and is doubted aloud."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_modelbench.gateway.prices import Price
from pytest_modelbench.gateway.usage import read_usage
from pytest_modelbench.records import Usage
from pytest_modelbench.report.attempt import _sum
from pytest_modelbench.report.costs import FACTOR, oddity, summed
from pytest_modelbench.report.decisions import Shown, reading_data
from pytest_modelbench.store.entry import Spent

ODD = "it reports $3.67, 127 times more than the $0.0289 that its tokens come to at list price"


def test_the_three_figures_of_the_field_report_are_apart_and_the_odd_one_is_told(
    data: Path,
) -> None:
    files = data / "field-reports" / "files"
    told = json.loads((files / "FR04-cli-result.json").read_text())
    prices = json.loads((files / "FR04-prices.json").read_text())
    right = prices["right"]
    of = prices["acme-small"]
    price = Price(
        input=of["input_per_mtok"] / 1e6,
        cached=of["cached_input_per_mtok"] / 1e6,
        cache_written=of["cache_write_per_mtok"] / 1e6,
        output=of["output_per_mtok"] / 1e6,
        source="here",
    )
    listed = price.cost(read_usage(told))
    assert listed == pytest.approx(right["list_usd"], rel=1e-9)
    usage = Usage(calls=3, list_usd=listed, reported_usd=told["total_cost_usd"])
    assert (usage.reported_usd, usage.billed_usd) == (right["reported_by_the_cli_usd"], None)
    shown = _sum(usage)
    assert "list price $0.0289" in shown
    assert "billed ?" in shown
    assert "reported by the program $3.67" in shown
    assert f"WARNING: {ODD}" in shown


@pytest.mark.parametrize(
    ("listed", "reported", "words"),
    [
        (1.0, FACTOR, ""),
        (FACTOR, 1.0, ""),
        (1.0, 2.01, "2.01 times more"),
        (2.5, 1.0, "2.5 times less"),
        (0.0, 0.5, "far more"),
        (0.5, 0.0, "far less"),
        (0.0, 0.0, ""),
        (None, 5.0, ""),
        (5.0, None, ""),
    ],
)
def test_oddity(listed: float | None, reported: float | None, words: str) -> None:
    told = oddity(listed, reported)
    assert words in told
    assert bool(told) == bool(words)


def test_sums_are_over_the_attempts_that_know_both() -> None:
    both = Spent(list_usd=0.5, reported_usd=2.0)
    found = summed(
        [("a", both), ("a", both), ("a", Spent(reported_usd=9.0)), ("b", Spent()), ("c", None)]
    )
    assert found == {"a": (1.0, 4.0)}
    assert reading_data(Shown(None, reported=found))["reported_costs"] == {
        "a": {"list_usd": 1.0, "reported_usd": 4.0}
    }


def test_a_derived_cost_is_shown_as_that() -> None:
    shown = _sum(Usage(calls=1, derived_usd=0.31))
    assert "derived from the server's price an hour $0.31" in shown
    assert "list price ?" in shown
