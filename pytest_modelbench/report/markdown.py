"""A scorecard as Markdown: every table of the report, for a file or a step summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_modelbench.report.completion import asked_otherwise, what_to_run, whole_without
from pytest_modelbench.report.escape import escape_markdown
from pytest_modelbench.report.numbers import (
    UNKNOWN,
    clock,
    dollars,
    duration,
    measures_in_words,
    plural,
    scores_in_words,
    tokens,
)
from pytest_modelbench.report.pairs import Pair
from pytest_modelbench.report.resources import apart, cached_share, wall
from pytest_modelbench.report.rows import Known, Row
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.report.verdicts import interval_methods, why_not_yet
from pytest_modelbench.stats import (
    NO_ESTIMATE,
    CostPerPass,
    format_interval,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
)
from pytest_modelbench.words import BUILT_IN


def markdown(card: Scorecard) -> str:
    """Return the report of one pack; tables in GitHub's form, one newline at the end."""
    parts = [
        f"## modelbench: {_text(card.grid.pack)}",
        _text(card.note) if card.note else "",
        _completeness(card),
        "### Frontier",
        _table(_FRONTIER, [_frontier(row, card) for row in card.rows]),
        *(f"- {line}" for line in _remarks(card)),
        "### Mean reward" if any(row.scored for row in card.rows) else "",
        _table(("candidate", "mean reward [95%]", "of passes alone"), _rewards(card)),
        "### Paired comparisons" if card.pairs else "",
        _table(_PAIRS, [_pair(pair, card) for pair in card.pairs]),
        _family(card),
        _table(("A", "B", "difference of mean rewards, pt", "p"), _paired_rewards(card)),
        "### Resources",
        _table(_RESOURCES, [_resources(row) for row in card.rows]),
        "### Money",
        _table(*_known_columns(_MONEY, [_money(row) for row in card.rows])),
        "### Spent apart: judge, driver, tries that do not count" if _apart(card) else "",
        _table(("candidate", "by", "list $"), _apart(card)),
        "### Where answers fail" if any(row.reasons for row in card.rows) else "",
        _table(("candidate", "check or reason", "count"), _failures(card)),
        "### Own tests" if any(row.own for row in card.rows) else "",
        _table(("candidate", "test", "passed", "why not"), _own_tests(card)),
        "### Agent" if any(row.behaviour for row in card.rows) else "",
        _table(("candidate", "what", "attempts", "in all"), _behaviour(card)),
        "### Cases",
        _table(("case", *(_text(row.candidate) for row in card.rows)), _cases(card)),
        "### Faults and missing cells" if card.verdicts < card.cells else "",
        _table(("candidate", "why", "cells"), _missing(card)),
        "### Versions" if card.old else "",
        _table(("candidate", "case", "changed", "passed, not counted"), _old(card)),
    ]
    lines: list[str] = []
    for part in filter(None, parts):
        # Bullets stay together; everything else is a paragraph of its own.
        joined = lines and part.startswith("- ") and lines[-1].startswith("- ")
        lines += [part] if joined or not lines else ["", part]
    return "\n".join(lines) + "\n"


_FRONTIER = (
    "candidate",
    "cells",
    "passed",
    "rate [95%], %",
    "no verdict",
    "$ an attempt",
    "$ a pass [95%]",
    "tokens an attempt",
    "median s",
    "rank",
    "cost frontier",
)
_PAIRS = ("A", "B", "cases", "A only", "B only", "alike", "difference, pt", "p", "verdict")
_RESOURCES = (
    "candidate",
    "input tokens",
    "cached",
    "output",
    "reasoning",
    "median s",
    "p90 s",
    "sum of times",
    "requests",
    "retries",
    "waits",
)
_MONEY = (
    "candidate",
    "list $",
    "billed $",
    "billed $ an attempt",
    "billed $ a pass",
    "own servers, by the hour $",
    "reported by the program $",
)


def _completeness(card: Scorecard) -> str:
    status = "Scorecard" if card.complete else "**Interim**, no scorecard"
    told = (
        f"{status}: {plural(card.cells, 'cell')}, {plural(card.verdicts, 'verdict')}, "
        f"{plural(card.faults, 'fault')}; {plural(len(card.cases), 'case')}, "
        f"{plural(card.grid.repeats, 'repeat')}, {plural(len(card.rows), 'candidate')}."
    )
    excluded = [f"{_text(case)} ({_text(why)})" for case, why in card.uncertified.items()]
    return told + (f" Excluded: {', '.join(excluded)}." if excluded else "")


def _frontier(row: Row, card: Scorecard) -> Sequence[str]:
    open_cells = str(row.missing)
    if row.missing and row.bounds:
        low, high = (format_percent(end, 1) for end in row.bounds)
        open_cells = f"{row.missing} of {row.cells}: {low} to {high}"
    return (
        _text(row.candidate) + (" (scripted)" if row.scripted else ""),
        str(row.cells),
        f"{row.passes}/{row.verdicts}",
        f"{format_percent(row.rate, 1)} {format_interval(row.interval, 1)}"
        if row.rate is not None
        else NO_ESTIMATE,
        open_cells,
        *_of_a_model(
            row,
            dollars(row.cost_per_attempt),
            _cost(row.cost_per_pass),
            tokens(row.tokens["input"].mean, row.tokens["output"].mean),
        ),
        duration(row.seconds.value if row.seconds else None),
        row.shown_rank or NO_ESTIMATE,
        _place(row, card),
    )


def _of_a_model(row: Row, *figures: str) -> Sequence[str]:
    """Return figures that mean nothing where no model was asked: there they are no estimate."""
    return figures if row.asks_model else [NO_ESTIMATE] * len(figures)


def _cost(per_pass: CostPerPass | None) -> str:
    if per_pass is None:
        return dollars(None)
    if per_pass.value is None:
        return NO_ESTIMATE
    told = dollars(per_pass.value)
    if per_pass.interval is None:
        return told
    return f"{told} [{dollars(per_pass.interval.low)} to {dollars(per_pass.interval.high)}]"


def _place(row: Row, card: Scorecard) -> str:
    point = next((one for one in card.frontier if one.candidate == row.candidate), None)
    if point is None:
        return NO_ESTIMATE
    return f"yes, but {point.relation} {_text(point.alike)}" if point.alike else "yes"


def _remarks(card: Scorecard) -> Iterable[str]:
    if card.stored and card.verdicts < card.cells:
        yield f"Run what is missing: {_text(what_to_run(card))}."
    if card.stored and (whole := whole_without(card)):
        yield f"Complete: {_text(whole)}."
    if others := asked_otherwise(card):
        yield f"Apart: {_text(others)}."
    for row in card.rows if card.stored else ():
        if {*row.notes} - {card.note}:
            parts = [
                f"{_text(repr(note)) if note else 'none'} {n}" for note, n in row.notes.items()
            ]
            yield f"{_text(row.candidate)}: verdicts by note: {', '.join(parts)}."
    if methods := interval_methods(card, {row.candidate: row.candidate for row in card.rows}):
        yield f"Interval: {_text(methods)}. The case is the unit, not the attempt."
    if card.guesses:
        yield f"Guessing gets: {_text(scores_in_words(card.guesses))}."
    for row in card.rows:
        if row.scores and row.candidate not in BUILT_IN:
            yield f"{_text(row.candidate)}: {_text(scores_in_words(row.scores))}."
        if row.measures and row.candidate not in BUILT_IN:
            yield f"{_text(row.candidate)}: {_text(measures_in_words(row.measures))}."
        cost = row.list_cost
        if cost.total is not None and not cost.complete:
            cover = f"{dollars(cost.total)} for {cost.known} of {cost.of} cells"
            yield f"{_text(row.candidate)}: {cover}, unknown for the others."
        if row.superseded:
            older = plural(row.superseded, "older attempt")
            yield f"{_text(row.candidate)}: {older} superseded by a fresh start."
    trust = sorted({str(row.trust) for row in card.rows if row.verdicts})
    boxes = sorted({_text(box) for row in card.rows for box in row.boxes})
    if told := wall(card):
        yield f"Wall clock: {told}."
    if trust:
        yield f"Trust: {', '.join(trust)}." + (f" Isolation: {', '.join(boxes)}." if boxes else "")


def _pair(pair: Pair, card: Scorecard) -> Sequence[str]:
    found = pair.difference
    both = "" if pair.both is None else f" (both {pair.both}, neither {pair.neither})"
    verdict = pair.in_words
    if pair.better is not None:
        verdict = f"**{_text(pair.better)} better**"
    elif pair.sweep_could_not_decide:
        verdict += f"; even a clean sweep of {pair.disagreements} could not decide"
    elif pair.is_close(card.alpha):
        verdict = f"not yet: {why_not_yet(pair, card.alpha, complete=card.complete)}"
    elif pair.detectable is not None:
        verdict += f"; could show about {format_percent(min(pair.detectable, 1.0))} points"
    left_out = f" ({pair.left_out} left out)" if pair.left_out else ""
    return (
        _text(pair.a),
        _text(pair.b),
        f"{pair.cases}{left_out}",
        str(pair.a_more),
        str(pair.b_more),
        f"{pair.alike}{both}",
        NO_ESTIMATE
        if found is None
        else f"{format_points(found.value)} {format_points_interval(found.interval)}",
        NO_ESTIMATE if pair.adjusted_p is None else format_p(pair.adjusted_p, pair.level),
        verdict,
    )


def _family(card: Scorecard) -> str:
    if not card.pairs:
        return ""
    methods = ", ".join(sorted({pair.method for pair in card.pairs}))
    against = f"each with {_text(card.baseline)}" if card.baseline else "all pairs"
    level = "" if card.complete else f" Interim: decided below {card.level:g}."
    return (
        f"p: {methods} by case, adjusted by Holm over {plural(len(card.pairs), 'comparison')} "
        f"({against}).{level} *A only* and *B only* count the cases on which one is better."
    )


def _resources(row: Row) -> Sequence[str]:
    return (
        _text(row.candidate),
        *_of_a_model(
            row,
            _sum(row.tokens["input"], ""),
            cached_share(row),
            *(_sum(row.tokens[name], "") for name in ("output", "reasoning")),
        ),
        duration(row.seconds.value if row.seconds else None),
        duration(row.p90_seconds.value if row.p90_seconds else None),
        clock(row.summed_seconds),
        *(f"{row.counts.get(name, 0):,.0f}" for name in ("requests", "retries", "waits")),
    )


def _money(row: Row) -> Sequence[str]:
    return (
        _text(row.candidate),
        *_of_a_model(
            row,
            _sum(row.list_cost, "$"),
            _sum(row.billed_cost, "$"),
            dollars(row.billed_per_attempt),
            dollars(row.billed_per_pass),
            _sum(row.derived_cost, "$"),
            _sum(row.reported_cost, "$"),
        ),
    )


def _known_columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Leave out columns of which nothing is known, after the first two."""
    unknown = (UNKNOWN, NO_ESTIMATE)
    kept = [n for n in range(len(heads)) if n < 2 or any(row[n] not in unknown for row in rows)]
    return [heads[n] for n in kept], [[row[n] for n in kept] for row in rows]


def _apart(card: Scorecard) -> list[Sequence[str]]:
    return [
        (_text(row.candidate), _text(where), _sum(spent, "$"))
        for row in card.rows
        for where, spent in apart(row).items()
    ]


def _rewards(card: Scorecard) -> Iterable[Sequence[str]]:
    for row in card.rows:
        if not row.scored or row.mean_reward is None:
            continue
        told, interval = f"{row.mean_reward:.3f}", row.reward_interval
        if interval is not None:
            told += f" [{interval.low:.3f} to {interval.high:.3f}]"
        of_passes = row.mean_reward_of_passes
        yield _text(row.candidate), told, NO_ESTIMATE if of_passes is None else f"{of_passes:.3f}"


def _paired_rewards(card: Scorecard) -> Iterable[Sequence[str]]:
    for pair in card.pairs:
        if (found := pair.on_reward) is not None:
            ends = format_points_interval(found.difference.interval)
            difference = f"{format_points(found.difference.value)} {ends}"
            p = format_p(found.adjusted_p, pair.level)
            yield _text(pair.a), _text(pair.b), difference, p


def _sum(sums: Known, unit: str) -> str:
    if sums.total is None:
        return UNKNOWN
    text = dollars(sums.total) if unit else f"{sums.total:,.0f}"
    return text if sums.known == sums.of else f"{text} ({sums.known:,} of {sums.of:,})"


def _failures(card: Scorecard) -> Iterable[Sequence[str]]:
    for row in card.rows:
        for reason, count in row.reasons.items():
            yield _text(row.candidate), _text(reason), str(count)
        for (check, reason), count in row.failing.items():
            why = f": {_text(reason)}" if reason else ""
            yield _text(row.candidate), f"check {_text(check)}{why}", str(count)


def _own_tests(card: Scorecard) -> Iterable[Sequence[str]]:
    for row in card.rows:
        for test, (passed, of) in row.own_tests.items():
            why = [f"{_text(w)} {n}" for (name, w), n in row.own.items() if name == test and w]
            yield _text(row.candidate), _text(test), f"{passed}/{of}", ", ".join(why)


def _behaviour(card: Scorecard) -> Iterable[Sequence[str]]:
    for row in card.rows:
        for name, count in row.behaviour.items():
            yield _text(row.candidate), _text(name), str(row.misbehaved[name]), str(count)


def _cases(card: Scorecard) -> Iterable[Sequence[str]]:
    measured = any(row.candidate not in BUILT_IN for row in card.rows)
    for case in card.cases:
        cells = (f"{passed}/{judged}" for passed, judged in (r.by_case[case] for r in card.rows))
        mark = " (all)" if measured and case in card.solved_by_all else ""
        mark = " (none)" if measured and case in card.solved_by_none else mark
        yield _text(case) + mark, *cells


def _missing(card: Scorecard) -> Iterable[Sequence[str]]:
    for row in card.rows:
        for kind, count in row.faults.items():
            yield _text(row.candidate), f"fault: {_text(kind)}", str(count)
        for why, count in row.waiting.items():
            yield _text(row.candidate), _text(why), str(count)


def _old(card: Scorecard) -> Iterable[Sequence[str]]:
    for old in card.old:
        changed = " and ".join(old.changed) or "version"
        yield _text(old.candidate), _text(old.case), changed, f"{old.passes}/{old.verdicts}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    from tabulate import tabulate

    body = list(rows)
    if not body:
        return ""
    return tabulate(body, headers=heads, tablefmt="github", disable_numparse=True)


def _text(text: str) -> str:
    return escape_markdown(text)
