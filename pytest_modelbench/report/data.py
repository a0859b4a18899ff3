"""A scorecard as data for JSON: unrounded numbers, and the method that gave each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_modelbench.report.pairs import Pair
from pytest_modelbench.report.resources import wall_seconds
from pytest_modelbench.report.rows import Known, Row
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.stats import Bounds, Interval, TimeQuantile

SCHEMA = 1
"""Version of this form."""


def as_data(card: Scorecard) -> dict[str, Any]:  # Any: builtins for json.dumps
    """Return everything that a scorecard knows, in builtins; unknown is null."""
    return {
        "schema": SCHEMA,
        "pack": card.grid.pack,
        "note": card.note,
        "status": "scorecard" if card.complete else "interim",
        "grid": {
            "cases": list(card.grid.cases),
            "candidates": list(card.grid.candidates),
            "repeats": card.grid.repeats,
            "versions": dict(card.versions),
        },
        "uncertified": dict(card.uncertified),
        "asked_otherwise": {
            name: {"cases": cases, "repeats": repeats}
            for name, (cases, repeats) in card.others.items()
        },
        "cells": card.cells,
        "verdicts": card.verdicts,
        "faults": card.faults,
        "first_started": card.first_started,
        "last_started": card.last_started,
        "last_ended": card.last_ended,
        "wall_seconds": wall_seconds(card),
        "candidates": [_row(row) for row in card.rows],
        "pairs": {
            "family": len(card.pairs),
            "adjusted_by": "Holm",
            "alpha": card.alpha,
            "level": card.level,
            "baseline": card.baseline,
            "compared": [_pair(pair) for pair in card.pairs],
        },
        "guesses": dict(card.guesses),
        "cost_frontier": [
            {
                "candidate": point.candidate,
                "list_usd_per_attempt": point.usd,
                "rate": point.rate,
                "not_better_than": point.alike or None,
                "compared": point.compared,
            }
            for point in card.frontier
        ],
        "solved_by_all": list(card.solved_by_all),
        "solved_by_none": list(card.solved_by_none),
        "old": [
            {
                "candidate": old.candidate,
                "case": old.case,
                "verdicts": old.verdicts,
                "passed": old.passes,
                "changed": list(old.changed),
                "replaced": old.replaced,
            }
            for old in card.old
        ],
    }


def _row(row: Row) -> dict[str, Any]:  # Any: as above
    per_pass = row.cost_per_pass
    return {
        "name": row.candidate,
        "cells": row.cells,
        "verdicts": row.verdicts,
        "passed": row.passes,
        "faults": dict(row.faults),
        "missing": dict(row.waiting),
        "notes": dict(row.notes),
        "by_case": {
            case: {"passed": passed, "verdicts": judged}
            for case, (passed, judged) in row.by_case.items()
        },
        "figures": {
            case: {"rewards": list(one.rewards), "list_usd": one.list_usd, "seconds": one.seconds}
            for case, one in row.figures.items()
        },
        "rate": row.rate,
        "scores": dict(row.scores),
        "measures": dict(row.measures),
        "interval": _interval(row.interval),
        "effective_cases": row.effective_cases,
        "bounds": _bounds(row.bounds),
        "pass_hat": {str(k): chance for k, chance in row.pass_hat.items()},
        "mean_reward": row.mean_reward,
        "mean_reward_of_passes": row.mean_reward_of_passes,
        "reward_interval": _interval(row.reward_interval),
        "list_usd": _known(row.list_cost),
        "billed_usd": _known(row.billed_cost),
        "derived_usd": _known(row.derived_cost),
        "reported_usd": _known(row.reported_cost),
        "list_usd_per_attempt": row.cost_per_attempt,
        "billed_usd_per_attempt": row.billed_per_attempt,
        "billed_usd_per_pass": row.billed_per_pass,
        "list_usd_per_pass": None
        if per_pass is None
        else {
            "value": per_pass.value,
            "interval": _interval(per_pass.interval),
            "at_least": per_pass.at_least,
        },
        "tokens": {name: _known(sums) for name, sums in row.tokens.items()},
        "working_seconds": {
            "median": _quantile(row.seconds),
            "p90": _quantile(row.p90_seconds),
            "sum": row.summed_seconds,
        },
        "path": dict(row.counts),
        "agent": dict(row.behaviour),
        "attempts_with": dict(row.misbehaved),
        "reasons": dict(row.reasons),
        "failing_checks": [
            {"check": check, "reason": reason, "count": count}
            for (check, reason), count in row.failing.items()
        ],
        "own_tests": {
            test: {
                "passed": passed,
                "of": of,
                "reasons": {why: n for (name, why), n in row.own.items() if name == test and why},
            }
            for test, (passed, of) in row.own_tests.items()
        },
        "trust": str(row.trust),
        "boxes": list(row.boxes),
        "served_models": list(row.served),
        "scripted": row.scripted,
        "superseded": row.superseded,
        "fresh_starts": row.fresh_starts,
        "spent_elsewhere_usd": {where: _known(sums) for where, sums in row.elsewhere.items()},
        "rank": None if row.rank is None else [row.rank.best, row.rank.worst],
    }


def _pair(pair: Pair) -> dict[str, Any]:  # Any: as above
    found = pair.difference
    return {
        "a": pair.a,
        "b": pair.b,
        "cases": pair.cases,
        "left_out": pair.left_out,
        "both": pair.both,
        "a_only": None if pair.both is None else pair.a_more,
        "b_only": None if pair.both is None else pair.b_more,
        "neither": pair.neither,
        "a_more": pair.a_more,
        "b_more": pair.b_more,
        "alike": pair.alike,
        "disagreements": pair.disagreements,
        "difference": None if found is None else found.value,
        "interval": _interval(found.interval if found else None),
        "method": pair.method,
        "p": pair.p,
        "adjusted_p": pair.adjusted_p,
        "mid_p": pair.midp,
        "verdict": pair.in_words,
        "better": pair.better,
        "least_disagreements": pair.needed,
        "sweep_could_decide": not pair.sweep_could_not_decide,
        "least_detectable_difference": pair.detectable,
        "on_reward": None
        if pair.on_reward is None
        else {
            "difference": pair.on_reward.difference.value,
            "interval": _interval(pair.on_reward.difference.interval),
            "p": pair.on_reward.p,
            "adjusted_p": pair.on_reward.adjusted_p,
            "method": pair.on_reward.method,
        },
        "bounds": None
        if pair.bounds is None
        else {
            "difference": _bounds(pair.bounds.difference),
            "worst_for_a": str(pair.bounds.worst_for_a),
            "best_for_a": str(pair.bounds.best_for_a),
            "holds_either_way": pair.bounds.holds_either_way,
        },
    }


def _interval(interval: Interval | None) -> Mapping[str, object] | None:
    if interval is None:
        return None
    return {"low": interval.low, "high": interval.high, "method": interval.method}


def _bounds(bounds: Bounds | None) -> list[float] | None:
    return None if bounds is None else [bounds.low, bounds.high]


def _known(sums: Known) -> Mapping[str, object]:
    return {"sum": sums.total, "known": sums.known, "of": sums.of}


def _quantile(quantile: TimeQuantile | None) -> Mapping[str, object] | None:
    if quantile is None:
        return None
    return {"value": quantile.value, "interval": _interval(quantile.interval)}
