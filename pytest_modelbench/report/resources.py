"""What a grid used, in words: tokens, time, requests and money."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pytest_modelbench.report.counts import OTHER_TRIES
from pytest_modelbench.report.numbers import clock, dollars, duration, plural, thousands
from pytest_modelbench.report.rows import Known, Row
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.stats import NO_ESTIMATE, format_percent
from pytest_modelbench.words import BUILT_IN


def used(row: Row) -> list[str]:
    """Return what a candidate's attempts used, as parts of a sentence; nothing where none ended."""
    if not row.verdicts or row.candidate in BUILT_IN:
        return []
    given, made = row.tokens["input"], row.tokens["output"]
    parts = []
    if not row.asks_model:
        pass  # no model had tokens to count
    elif given.total is None or made.total is None:
        parts.append("tokens unknown")
    else:
        parts.append(f"{thousands(given.total)} tokens in ({cached_share(row)} cached)")
        thought = row.tokens["reasoning"].total
        told = "" if thought is None else f" ({thousands(thought)} reasoning)"
        parts.append(f"{thousands(made.total)} out{told}")
    parts += [
        f"p90 {duration(row.p90_seconds.value if row.p90_seconds else None)} s",
        f"{clock(row.summed_seconds)} in all",
    ]
    for name, one in (("requests", "request"), ("retries", "retry"), ("waits", "wait")):
        if count := int(row.counts.get(name, 0)):
            parts.append(f"{count:,} {one if count == 1 else name}")
    return parts


def cached_share(row: Row) -> str:
    """Return which share of all input was read from a cache; ``-`` where that was not recorded."""
    given, cached = row.tokens["input"], row.tokens["cached"]
    if not given.total or cached.total is None:
        return NO_ESTIMATE
    return f"{format_percent(min(cached.total / given.total, 1.0))}%"


def spend(card: Scorecard) -> list[str]:
    """Return what was spent, list price first; what is unknown is told and never 0.

    Of candidates that asked no model there is nothing to tell, save for their judge's and driver's.
    """
    measured = [row for row in card.rows if row.candidate not in BUILT_IN]
    rows = [row for row in measured if row.asks_model]
    attempts = sum(row.verdicts for row in rows)
    if not attempts:
        return _elsewhere(measured)
    parts = []
    listed = _sum([row.list_cost for row in rows])
    told = _covered(listed, "list", "cell")
    every = "all " if attempts > 1 else ""
    parts.append(told or f"list price unknown for {every}{plural(attempts, 'cell')}")
    for name, costs in (
        ("billed", [row.billed_cost for row in rows]),
        ("for the hours of own servers", [row.derived_cost for row in rows]),
        ("reported by agent programs (not counted)", [row.reported_cost for row in rows]),
    ):
        if told := _covered(_sum(costs), name, "cell"):
            parts.append(told)
    return parts + _elsewhere(measured)


def apart(row: Row) -> dict[str, Known]:
    """Return what was spent beside the counted attempts; not what tries without a model cost."""
    return {
        where: cost
        for where, cost in row.elsewhere.items()
        if row.asks_model or where != OTHER_TRIES
    }


def wall(card: Scorecard) -> str:
    """Return how long a grid took, in words; empty where that is not known.

    No run need have taken so long: it may have been measured in several, days apart.
    """
    seconds = wall_seconds(card)
    if seconds is None:
        return ""
    return f"{clock(seconds)} from first start to last end, pauses between runs included"


def wall_seconds(card: Scorecard) -> float | None:
    """Return the time from the first start to the last end of a grid's stored attempts."""
    try:
        first, last = map(datetime.fromisoformat, (card.first_started, card.last_ended))
    except ValueError:
        return None
    return (last - first).total_seconds()


def _covered(cost: Known, name: str, noun: str) -> str:
    if cost.total is None:
        return ""
    cover = "" if cost.known == cost.of else f" for {cost.known:,} of {plural(cost.of, noun)}"
    return f"{dollars(cost.total)} {name}{cover}"


def _elsewhere(rows: Sequence[Row]) -> list[str]:
    parts = []
    spent = [apart(row) for row in rows]
    for where in sorted({name for one in spent for name in one}):
        cost = _sum([one[where] for one in spent if where in one])
        if cost.total == 0 and cost.known == cost.of:
            continue  # no reply came, or a free one: nothing was spent
        cover = "" if cost.known == cost.of else f" for {cost.known:,} of {cost.of:,}"
        parts.append(f"{where} {dollars(cost.total)}{cover}, apart")
    return parts


def _sum(costs: Sequence[Known]) -> Known:
    known = sum(one.known for one in costs)
    total = sum(one.total or 0.0 for one in costs)
    return Known(total if known else None, known, sum(one.of for one in costs))
