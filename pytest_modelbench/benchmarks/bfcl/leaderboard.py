"""BFCL's leaderboard weighs categories, and not cases: its score and what that is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

SCORE = "BFCL single-turn AST"
"""What a score of the single-turn part may be called; the leaderboard's own has more in it."""

_SIMPLE = ("simple_python", "simple_java", "simple_javascript")
_NON_LIVE = ("multiple", "parallel", "parallel_multiple")
_LIVE = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")
_IRRELEVANCE = ("irrelevance", "live_irrelevance")


def weighted(shares: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return scores of the shares of passes of each category's cases.

    Non-live is the mean of four: simple (the mean of its three languages), multiple, parallel and
    parallel multiple. Live goes by the number of cases. Irrelevance is the mean of its two
    categories. These weigh alike in `SCORE`, as they do on the leaderboard, 10 % each. What lacks a
    category is left out, and so is what would be made of it; relevance stands apart.
    """
    means = {name: mean(found) for name, found in shares.items() if found}
    scores: dict[str, float] = {}
    if all(name in means for name in (*_SIMPLE, *_NON_LIVE)):
        simple = mean(means[name] for name in _SIMPLE)
        scores["non-live"] = mean([simple, *(means[name] for name in _NON_LIVE)])
    if all(name in means for name in _LIVE):
        scores["live"] = mean(share for name in _LIVE for share in shares[name])
    if all(name in means for name in _IRRELEVANCE):
        scores["irrelevance"] = mean(means[name] for name in _IRRELEVANCE)
    whole = len(scores) == 3
    if "live_relevance" in means:
        scores["live relevance"] = means["live_relevance"]
    if not whole:
        return scores
    return {SCORE: mean(scores[name] for name in ("non-live", "live", "irrelevance")), **scores}
