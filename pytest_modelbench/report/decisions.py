"""Which look a report is and what the gates came to, as lines, as Markdown and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_modelbench.report.costs import oddity
from pytest_modelbench.report.escape import escape, escape_markdown
from pytest_modelbench.report.gates import Judged
from pytest_modelbench.report.numbers import plural
from pytest_modelbench.report.rows import Row
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.store.looks import EVAL_READINGS, Reading
from pytest_modelbench.words import BUILT_IN

PARTIAL = "a partial run has no scorecard, compares nothing, judges no gate and counts as no look"
DEV = "dev: prompts and settings are chosen on these cases, so this gates nothing and proves little"


@dataclass(frozen=True)
class Shown:
    """What stands beside a scorecard. ``reading`` is None in a partial run.

    ``draw`` says how cases were chosen; ``alike`` maps candidates to (cases whose repeats all left
    the same work, cases with all repeats). ``reported`` maps them to (list price, cost that the
    program reports), in USD over the attempts that know both.
    """

    reading: Reading | None
    draw: str = ""
    alike: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    reported: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    threshold: float | None = None
    """The reward from which on an attempt passes, where the pack declares one."""


def remarks(card: Scorecard, shown: Shown) -> dict[str, str]:
    """Return what is to be said of a scorecard's looks, by a short label."""
    said: dict[str, str] = {}
    reading = shown.reading
    if reading is None:
        # A run of built-in candidates asks whether cases are sound: there is nothing to look at.
        if any(name not in BUILT_IN for name in card.grid.candidates):
            said["partial"] = PARTIAL
    elif card.verdicts:
        said["look"] = _look(reading, one=len(card.rows) == 1)
    if shown.threshold is not None:
        said["passes"] = f"at a reward of {shown.threshold:g} or more, as the pack declares"
    if shown.draw:
        said["drawn"] = f"{shown.draw}: {plural(len(card.grid.cases), 'case')}"
    if reading is not None and reading.split == "dev":
        said["split"] = DEV
    elif reading is not None and reading.split == "eval" and reading.eval_readings:
        told = f"eval, reading {reading.eval_readings} of {EVAL_READINGS} of these cases"
        if reading.fresh_sample_due:
            told += "; a fresh sample is due: --modelbench-sample N --modelbench-exclude-seen"
        said["split"] = told
    afresh = [
        f"{row.candidate} {row.fresh_starts} time{'s' if row.fresh_starts > 1 else ''}"
        for row in card.rows
        if row.fresh_starts
    ]
    if afresh:
        said["afresh"] = f"{', '.join(afresh)}: what was stored before is superseded"
    same = [
        f"{name} in {count} of {plural(cases, 'case')}"
        for name, (count, cases) in shown.alike.items()
        if count * 2 > cases
    ]
    if same:
        said["alike"] = (
            f"all repeats left the same work: {', '.join(same)}; if answers are cached or drawn "
            "without chance, more repeats add nothing"
        )
    unread = [told for row in card.rows if (told := _unread(row))]
    if unread:
        said["tools"] = f"WARNING: {'; '.join(unread)}: look at the server's tool parser"
    unpriced = [_with_models(row) for row in card.rows if _unpriced(row)]
    if unpriced:
        said["price"] = (
            f"no list price is known of {', '.join(unpriced)}: give one by price or list_price_of "
            "in [candidates.NAME]"
        )
    told_odd = {name: oddity(*costs) for name, costs in shown.reported.items()}
    odd = [f"{name}: {words}" for name, words in told_odd.items() if words]
    if odd:
        said["reported"] = f"WARNING: {'; '.join(odd)}; what a program reports is counted nowhere"
    return said


def remark_lines(card: Scorecard, shown: Shown, width: int = 80, *, utf8: bool = True) -> list[str]:
    """Return the remarks as lines of a terminal, below those of the scorecard."""
    return [
        line
        for label, text in remarks(card, shown).items()
        for line in _folded(f"{label:9}{escape(text, utf8=utf8)}", width)
    ]


def gate_lines(judged: Sequence[Judged], width: int = 80, *, utf8: bool = True) -> list[str]:
    """Return a stable line a gate, never folded, and below each what an equal would come to."""
    lines = [""] if judged else []
    for one in judged:
        lines.append(escape(one.line, utf8=utf8))
        if one.chance is not None:
            lines += _folded(f"    {one.chance.said}", width, "    ")
        if one.enough is not None:
            lines += _folded(f"    to decide: {one.enough.said}", width, "    ")
    return lines


def markdown_remarks(card: Scorecard, shown: Shown) -> str:
    """Return the remarks as a list."""
    found = remarks(card, shown)
    lines = [f"- {label}: {escape_markdown(text)}\n" for label, text in found.items()]
    return "### Looks, splits and repeats\n\n" + "".join(lines) if lines else ""


def markdown_gates(judged: Sequence[Judged]) -> str:
    """Return the gates as a table; empty without any."""
    if not judged:
        return ""
    rows = [("gate", "pack", "outcome", "found", "an equally good candidate")]
    for one in judged:
        late = "; rule set after data" if one.late else ""
        said = one.chance.said if one.chance is not None else "–"
        said += f". To decide: {one.enough.said}" if one.enough is not None else ""
        rows.append((one.rule.name, one.pack or "–", one.outcome.upper(), one.said + late, said))
    lines = ["| " + " | ".join(escape_markdown(cell) for cell in row) + " |" for row in rows]
    lines.insert(1, "|---|---|---|---|---|")
    return "## Gates\n\n" + "\n".join(lines) + "\n"


def reading_data(shown: Shown) -> dict[str, object]:
    """Return the look for JSON; ``look`` is null in a partial run."""
    reading = shown.reading
    return {
        "look": None
        if reading is None
        else {
            "number": reading.number,
            "new": bool(reading.new),
            "stage": str(reading.stage),
            "level": reading.level,
            "split": reading.split or None,
            "eval_readings": reading.eval_readings or None,
            "fresh_sample_due": reading.fresh_sample_due,
        },
        "draw": shown.draw or None,
        "threshold": shown.threshold,
        "reported_costs": {
            name: {"list_usd": listed, "reported_usd": reported}
            for name, (listed, reported) in shown.reported.items()
        },
        "same_work_in_all_repeats": {
            name: {"cases": count, "of": cases} for name, (count, cases) in shown.alike.items()
        },
    }


def gate_data(one: Judged) -> dict[str, object]:
    """Return a judged gate for JSON, unrounded."""
    rule, interval = one.rule, one.interval
    return {
        "name": rule.name,
        "rule": rule.text,
        "kind": str(rule.kind),
        "candidate": rule.candidate,
        "baseline": rule.baseline or None,
        "limit": rule.limit,
        "on": rule.on,
        "pack": one.pack or None,
        "alpha": rule.alpha,
        "level": one.level,
        "outcome": str(one.outcome),
        "line": one.line,
        "value": one.value,
        "interval": None
        if interval is None
        else {"low": interval.low, "high": interval.high, "method": interval.method},
        "cases": one.cases,
        "p": one.p,
        "adjusted_p": one.adjusted_p,
        "family": one.family,
        "chance_of_an_equal": None if one.chance is None else one.chance.equal,
        "chance_in_words": None if one.chance is None else one.chance.said,
        "cases_to_decide": None if one.enough is None else one.enough.cases,
        "set_after_data": one.late,
        "declared_in": rule.source,
    }


def _unread(row: Row) -> str:
    """Say how many of a candidate's replies held a tool call as text; '' for none."""
    count, turns = row.behaviour.get("tool_calls_as_text", 0), row.behaviour.get("turns", 0)
    return f"{row.candidate}: {count} of {turns} replies held an unread tool call" if count else ""


def _unpriced(row: Row) -> bool:
    """Tell whether a candidate has attempts whose tokens are known, and whose price is not."""
    return row.tokens["input"].known > row.list_cost.known


def _with_models(row: Row) -> str:
    return f"{row.candidate} ({', '.join(row.served)})" if row.served else row.candidate


def _look(reading: Reading, *, one: bool) -> str:
    which = f"{reading.number}" if reading.new else f"{reading.number} again, nothing new is shown"
    if reading.complete:
        told = "the grid is complete"
        told += "; its declared size changed after a look" if reading.resized else ""
    else:
        told = "interim: the grid is not complete"
    return f"{which}; {told}" + ("" if one else f"; a pair is decided at p < {reading.level:.2g}")


def _folded(text: str, width: int, indent: str = " " * 11) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 40),
        subsequent_indent=indent,
        replace_whitespace=False,
        break_on_hyphens=False,
    )
