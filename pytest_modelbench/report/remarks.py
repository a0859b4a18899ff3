"""What has to be known about one candidate's figures, in words."""

from __future__ import annotations

from pytest_modelbench.report.numbers import dollars, measures_in_words, plural, scores_in_words
from pytest_modelbench.report.rows import Row
from pytest_modelbench.stats import format_interval, format_percent
from pytest_modelbench.words import BUILT_IN


def row_remarks(row: Row) -> list[str]:
    """Return what has to be known about a candidate's figures; names in it are not yet escaped."""
    remarks = []
    if row.missing and row.bounds and row.verdicts:
        low, high = (format_percent(end, 1) for end in row.bounds)
        rate = format_percent(row.rate, 1)
        remarks.append(
            f"{row.passes} of {row.verdicts} verdicts, {rate} % "
            f"{format_interval(row.interval, 1)}; {row.missing} of {row.cells} cells "
            f"{'has' if row.missing == 1 else 'have'} no verdict, as fails or as passes they "
            f"make it {low} to {high} %"
        )
    if row.scores and row.candidate not in BUILT_IN:
        remarks.append(scores_in_words(row.scores))
    if row.measures and row.candidate not in BUILT_IN:
        remarks.append(measures_in_words(row.measures))
    if row.scored and row.mean_reward is not None:
        remarks.append(_mean_reward(row))
    if row.scripted:
        remarks.append("scripted: answers were played from a file, no model was asked")
    cost = row.list_cost
    if cost.total is not None and not cost.complete:
        remarks.append(
            f"list price {dollars(cost.total)} for {cost.known} of {cost.of} cells, "
            "unknown for the others"
        )
    metered = row.tokens["input"]
    if 0 < metered.known < metered.of:
        remarks.append(f"tokens known for {metered.known} of {metered.of} attempts")
    if row.superseded:
        remarks.append(f"{plural(row.superseded, 'older attempt')} superseded by a fresh start")
    if len(row.boxes) > 1:
        remarks.append(f"isolation differed: {', '.join(row.boxes)}")
    if len(row.served) > 1:
        remarks.append(f"served by several models: {', '.join(row.served)}")
    return remarks


def _mean_reward(row: Row) -> str:
    """Return a mean reward with failures, and never only without them."""
    told = f"mean reward {row.mean_reward:.3f}"
    if row.reward_interval is not None:
        told += f" [{row.reward_interval.low:.3f} to {row.reward_interval.high:.3f}]"
    apart = row.mean_reward_of_passes
    return told + ("" if apart is None else f", failures among them; of passes alone {apart:.3f}")
