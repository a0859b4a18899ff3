"""A family of comparisons."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import (
    Decision,
    decide,
    holm,
    mcnemar_exact,
    min_disagreements,
    rank_intervals,
)

p_values = st.lists(st.floats(0, 1), max_size=40)


def test_holm_keeps_its_running_maximum() -> None:
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])


@given(p_values, st.integers(0, 10))
def test_holm_lies_between_raw_and_bonferroni_and_keeps_order(
    values: list[float], pending: int
) -> None:
    count = len(values) + pending
    adjusted = holm(values, count)
    for raw, p in zip(values, adjusted, strict=True):
        assert raw <= p <= min(raw * count, 1)
    order = sorted(range(len(values)), key=values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_pending_comparisons_count() -> None:
    assert holm([0.02, 0.5], 3) == pytest.approx([0.06, 1.0])
    with pytest.raises(ValueError, match="in a family of 1"):
        holm([0.1, 0.2], 1)


@pytest.mark.parametrize("p", [float("nan"), -0.1, 1.1])
def test_what_is_no_p_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="not a p-value"):
        holm([0.5, p])


@pytest.mark.parametrize(
    ("comparisons", "least"),
    [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (12, 9), (13, 10), (25, 10), (435, 15)],
)
def test_min_disagreements(comparisons: int, least: int) -> None:
    assert min_disagreements(comparisons) == least


@given(st.integers(1, 500), st.sampled_from([0.05, 0.01, 0.001, 0.1, 0.25]))
def test_min_disagreements_is_the_first_decided_sweep(comparisons: int, alpha: float) -> None:
    least = min_disagreements(comparisons, alpha)
    for sweep, decided in ((least, True), (least - 1, False)):
        p = min(mcnemar_exact(sweep, 0) * comparisons, 1.0)
        assert (decide(p, sweep, sweep, alpha) is Decision.A_BETTER) is decided
    if math.log2(comparisons / alpha) % 1:
        assert least == 1 + math.ceil(math.log2(comparisons / alpha))


def test_decisions() -> None:
    assert decide(0.0129, 10, 14) is Decision.A_BETTER
    assert decide(0.0129, -10, 14) is Decision.B_BETTER
    assert decide(0.05, 10, 14) is Decision.UNDECIDED
    assert decide(1.0, 0, 14) is Decision.UNDECIDED
    assert decide(1.0, 0, 0) is Decision.AGREE


def test_ranks_are_intervals() -> None:
    ranks = rank_intervals(["a", "b", "c"], {("a", "c")})
    assert ranks == [(1, 2), (1, 3), (2, 3)]
    assert rank_intervals(["a", "b"], set()) == [(1, 2), (1, 2)]
    with pytest.raises(ValueError, match="not ranked"):
        rank_intervals(["a"], {("a", "z")})
