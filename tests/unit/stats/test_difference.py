"""Intervals of a paired difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.stats import (
    CaseScores,
    Interval,
    newcombe_paired,
    paired_difference,
    tango_paired,
)

tables = st.tuples(*[st.integers(0, 80)] * 4).filter(any)


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


def test_newcombe_has_the_published_value() -> None:
    assert ends(newcombe_paired(1, 1, 7, 12)) == pytest.approx((-0.507, -0.026), abs=5e-4)


@pytest.mark.parametrize("method", [newcombe_paired, tango_paired])
@given(tables)
def test_exchanging_a_and_b_negates_it(method: type, table: tuple[int, int, int, int]) -> None:
    both, a_only, b_only, neither = table
    low, high = ends(method(both, a_only, b_only, neither))
    mirrored = ends(method(both, b_only, a_only, neither))
    assert mirrored == pytest.approx((-high, -low), abs=1e-9)
    value = (a_only - b_only) / sum(table)
    assert -1 - 1e-12 <= low <= value <= high <= 1 + 1e-12


@pytest.mark.parametrize("method", [newcombe_paired, tango_paired])
def test_one_way_only_and_agreement_still_have_a_width(method: type) -> None:
    for table in ((12, 0, 0, 3), (0, 5, 0, 0), (0, 0, 5, 0), (0, 0, 0, 4), (4, 0, 0, 0)):
        low, high = ends(method(*table))
        assert high - low > 0.2
    assert method(0, 0, 0, 0) is None
    with pytest.raises(ValueError, match="counts of cases"):
        method(1, -1, 0, 0)


def test_tango_without_a_disagreement_has_its_closed_form() -> None:
    z = 1.959963984540054
    assert ends(tango_paired(40, 0, 0, 60))[1] == pytest.approx(z * z / (100 + z * z), rel=1e-9)


@pytest.mark.parametrize("method", [newcombe_paired, tango_paired])
def test_less_confidence_is_narrower(method: type) -> None:
    wide, narrow = ends(method(25, 9, 3, 13)), ends(method(25, 9, 3, 13, 0.9))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


scored = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


@given(scored)
def test_exchanging_a_and_b_negates_the_difference(cases: list[tuple[int, int]]) -> None:
    a = CaseScores.of_passes([x for x, _ in cases], [4] * len(cases))
    b = CaseScores.of_passes([y for _, y in cases], [4] * len(cases))
    forward, backward = paired_difference(a, b), paired_difference(b, a)
    assert forward is not None
    assert backward is not None
    assert forward.value == -backward.value
    low, high = ends(forward.interval)
    assert ends(backward.interval) == pytest.approx((-high, -low), abs=1e-12)
    assert -1 <= low <= forward.value + 1e-12
    assert forward.value - 1e-12 <= high <= 1


def test_repeats_use_the_case_scores() -> None:
    a = CaseScores.of_passes([3, 2, 0, 3, 1, 3, 2, 2, 1, 0, 3, 2], [3] * 12)
    b = CaseScores.of_passes([2, 2, 0, 3, 1, 2, 2, 1, 1, 0, 3, 2], [3] * 12)
    result = paired_difference(a, b)
    assert result is not None
    assert result.value == pytest.approx(3 / 36)
    assert result.interval.method == "95% MOVER on case scores"
    assert result.interval.low == pytest.approx(result.value - 0.10, abs=0.1)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_copies_of_the_same_attempt_change_no_interval(cases: list[tuple[bool, bool]]) -> None:
    once = [CaseScores.of_passes([c[i] for c in cases], [1] * len(cases)) for i in (0, 1)]
    thrice = [CaseScores.of_passes([3 * c[i] for c in cases], [3] * len(cases)) for i in (0, 1)]
    table = [sum(c == pair for c in cases) for pair in ((1, 1), (1, 0), (0, 1), (0, 0))]
    result = paired_difference(once[0], once[1])
    assert result == paired_difference(thrice[0], thrice[1])
    assert result is not None
    assert result.interval == newcombe_paired(*table)


def test_no_cases_have_no_difference() -> None:
    nothing = CaseScores.of_passes([], [])
    assert paired_difference(nothing, nothing) is None
