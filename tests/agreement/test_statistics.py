"""Agreement with reference values that were computed by at least two independent routes each."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench import stats

DATA = Path(os.environ.get("MODELBENCH_DATA") or Path(__file__).parents[1] / "data")
REFERENCE = DATA / "stats" / "reference.jsonl"
ROWS = [json.loads(line) for line in REFERENCE.read_text("utf-8").splitlines() if line.strip()]


def scores(
    passes: list[int] | None = None,
    attempts: list[int] | None = None,
    values: list[float] | None = None,
) -> stats.CaseScores:
    if values is not None:
        return stats.CaseScores.of_values(values)
    assert passes is not None
    assert attempts is not None
    return stats.CaseScores.of_passes(passes, attempts)


# What a row calls `fn`, with its arguments as the row names them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "wilson": lambda k, n, conf=0.95: stats.wilson(k, n, conf),
    "jeffreys": lambda k, n, conf=0.95: stats.jeffreys(k, n, conf),
    "jeffreys_raw": lambda k, n, conf=0.95: stats.jeffreys_raw(k, n, conf),
    "mcnemar_exact": stats.mcnemar_exact,
    "mcnemar_midp": stats.mcnemar_midp,
    "holm": lambda p: stats.holm(p),
    "holm_mcnemar": lambda pairs: stats.holm([stats.mcnemar_exact(*pair) for pair in pairs]),
    "min_disagreements": lambda comparisons=1, alpha=0.05: stats.min_disagreements(
        comparisons, alpha
    ),
    "newcombe_paired": stats.newcombe_paired,
    "tango_paired": stats.tango_paired,
    "pass_at_k": lambda n, c, k: stats.pass_at_k(n, c, k),
    "pass_hat_k": lambda n, c, k: stats.pass_hat_k(n, c, k),
    "signflip": lambda diffs: stats.sign_flip(diffs).p,
    "case_score_interval": lambda conf=0.95, **cases: stats.case_score_interval(
        scores(**cases), conf
    ),
    "case_mean_t": lambda conf=0.95, **cases: stats.case_mean_t(scores(**cases), conf),
}


def test_there_are_rows() -> None:
    assert ROWS


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{row['fn']}" for i, row in enumerate(ROWS)])
def test_agrees_with_the_reference(row: dict[str, Any]) -> None:
    result = FUNCTIONS[row["fn"]](**row["args"])
    found: Any
    if isinstance(result, stats.Interval):
        found = [result.low, result.high]
    else:
        found = result if isinstance(result, list) else float(result)
    # Relative alone: an end that should be 0 must be exactly 0.
    assert found == pytest.approx(row["value"], rel=1e-9, abs=0)
