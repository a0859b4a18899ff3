from __future__ import annotations

from typing import Any

import pytest

from pytest_modelbench.records import (
    Cell,
    Check,
    Identity,
    Role,
    Trust,
    Usage,
    Verdict,
)
from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.resources import wall_seconds
from pytest_modelbench.report.rows import Known
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.stats import Decision

# A published table, as results of two candidates: passes of five.
PUBLISHED = {
    "one": {
        "write-function": "pupup",
        "multi-file": "ppupu",
        "fix-bug": "uuuuu",
        "long-output": "uuuuu",
    },
    "two": {
        "write-function": "ppppp",
        "multi-file": "ppppp",
        "fix-bug": "upuup",
        "long-output": "uuuuu",
    },
}


def row(card: Scorecard, name: str) -> Any:
    return next(row for row in card.rows if row.candidate == name)


def spread(passed: int, unsolved: int, faults: int = 0) -> dict[str, str]:
    letters = "p" * passed + "u" * unsolved + "f" * faults
    return {f"c{number:02}": letter for number, letter in enumerate(letters, 1)}


@pytest.mark.parametrize(
    ("passed", "cases", "wilson", "jeffreys"),
    [
        (0, 20, (0, 0.1611), (0, 0.1166)),
        (20, 20, (0.8389, 1), (0.8834, 1)),
        (1, 1, (0.2065, 1), (0.1467, 1)),
        (12, 16, (0.5050, 0.8982), (0.5093, 0.9092)),
    ],
)
def test_intervals_have_width_at_the_ends(
    results: Any, passed: int, cases: int, wilson: tuple[float, ...], jeffreys: tuple[float, ...]
) -> None:
    """FR34: the interval of none and of all."""
    outcomes = {"cand": spread(passed, cases - passed)}
    results.store(outcomes)

    for method, expected in (("wilson", wilson), ("jeffreys", jeffreys)):
        interval = results.count(outcomes, interval=method).rows[0].interval
        assert interval.method.lower() == f"95% {method}"
        assert (interval.low, interval.high) == pytest.approx(expected, abs=5e-5)
        if passed in (0, cases):
            assert (interval.low if passed == 0 else interval.high) == (passed != 0)


def test_no_verdict_is_no_rate(results: Any) -> None:
    only = results.card({"cand": {"c": "f"}}).rows[0]

    assert (only.rate, only.interval, only.mean_reward) == (None, None, None)
    assert (only.cells, only.verdicts, only.passes) == (1, 0, 0)
    assert tuple(only.bounds) == (0, 1)


def test_faults_leave_the_rate_in_public(results: Any) -> None:
    """FR35: 12 of 16 verdicts; four faults that could change it to 60 or 80 percent."""
    card = results.card({"cand": spread(12, 4, 4)})

    only = card.rows[0]
    assert (only.passes, only.verdicts, only.cells, only.missing) == (12, 16, 20, 4)
    assert only.rate == 0.75
    assert (only.interval.low, only.interval.high) == pytest.approx((0.505, 0.898), abs=5e-4)
    assert tuple(only.bounds) == pytest.approx((0.6, 0.8))
    assert only.faults == {"server-error": 4}
    assert not card.complete


def test_a_pair_is_compared_on_the_cases_of_both(results: Any) -> None:
    """FR36: 9 against 2 of 20 shared cases, three left out."""
    a = "ppppppuuu" + "p" * 9 + "uu" + "ffp"
    b = "ppppppuuu" + "u" * 9 + "pp" + "ppf"
    outcomes = {
        name: {f"c{n:02}": letter for n, letter in enumerate(letters)}
        for name, letters in (("cand_a", a), ("cand_b", b))
    }
    (pair,) = results.card(outcomes).pairs

    assert (pair.cases, pair.left_out) == (20, 3)
    assert (pair.both, pair.a_more, pair.b_more, pair.neither) == (6, 9, 2, 3)
    assert pair.p == pytest.approx(0.0654, abs=5e-5)
    assert pair.midp == pytest.approx(0.0386, abs=5e-5)
    assert pair.method == "exact McNemar"
    assert pair.decision is Decision.UNDECIDED


def test_a_published_table_with_the_case_as_unit(results: Any) -> None:
    card = results.card(PUBLISHED)

    assert (card.cells, card.verdicts, card.complete) == (40, 40, True)
    assert [r.candidate for r in card.rows] == ["two", "one"]
    one, two = row(card, "one"), row(card, "two")
    assert one.by_case == {
        "write-function": (3, 5),
        "multi-file": (3, 5),
        "fix-bug": (0, 5),
        "long-output": (0, 5),
    }
    assert (one.passes, two.passes) == (6, 12)
    assert (one.rate, two.rate) == (0.3, 0.6)
    # Four cases, not twenty attempts: Wilson at n = 4, as wide as four cases are.
    assert (one.interval.low, one.interval.high) == pytest.approx((0.0626, 0.7334), abs=5e-5)
    assert (two.interval.low, two.interval.high) == pytest.approx((0.2046, 0.8974), abs=5e-5)
    assert one.pass_hat[3] == pytest.approx((0.1 + 0.1) / 4)
    assert two.pass_hat[5] == pytest.approx(0.5)
    assert one.reasons == {"wrong": 14}
    assert two.reasons == {"wrong": 8}
    assert two.failing == {("test_it", "AssertionError"): 8}
    (pair,) = card.pairs
    assert (pair.a, pair.a_more, pair.b_more, pair.alike) == ("two", 3, 0, 1)
    assert pair.difference.value == pytest.approx(0.3)
    assert pair.p == pair.adjusted_p == 0.25  # differences 2, 2, 2, 0: 2 of 8 sign choices
    assert pair.method == "exact sign-flip"
    assert pair.decision is Decision.UNDECIDED
    assert pair.sweep_could_not_decide
    assert pair.needed == 6
    assert card.solved_by_none == ("long-output",)
    assert card.solved_by_all == ()


@pytest.mark.parametrize(
    ("a_only", "b_only", "p", "better"),
    [
        (12, 2, 0.01294, "a"),
        (6, 5, 1.0, None),
        (5, 0, 0.0625, None),
        (6, 0, 0.03125, "a"),
        (42, 25, 0.0498, "a"),
    ],
)
def test_verdicts_of_a_complete_pair(
    results: Any, a_only: int, b_only: int, p: float, better: str | None
) -> None:
    a = "p" * a_only + "u" * b_only + "p" * 5
    b = "u" * a_only + "p" * b_only + "p" * 5
    (pair,) = results.card(
        {
            "a": {f"c{n}": letter for n, letter in enumerate(a)},
            "b": {f"c{n}": letter for n, letter in enumerate(b)},
        }
    ).pairs

    assert pair.p == pytest.approx(p, rel=2e-3)
    assert pair.better == better
    assert pair.sweep_could_not_decide == ((a_only, b_only) == (5, 0))


def test_before_the_grid_is_complete_only_the_interim_level_decides(results: Any) -> None:
    complete = {"a": spread(8, 0), "b": spread(0, 8)}
    open_grid = {name: cells | {"c99": "-"} for name, cells in complete.items()}

    (decided,) = results.card(complete).pairs
    (interim,) = results.count(open_grid).pairs

    assert (decided.p, decided.level, decided.better) == (0.0078125, 0.05, "a")
    assert (interim.p, interim.level, interim.better) == (0.0078125, 0.001, None)
    assert interim.bounds is not None
    assert interim.left_out == 1


def test_family_is_adjusted_by_holm(results: Any) -> None:
    outcomes = {"a": spread(9, 0), "b": spread(2, 7), "c": spread(0, 9)}
    pairs = results.card(outcomes).pairs

    assert [(p.a, p.b) for p in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [p.p for p in pairs] == [2 / 2**7, 2 / 2**9, 0.5]
    assert [p.adjusted_p for p in pairs] == [4 / 2**7, 6 / 2**9, 0.5]
    assert [r.rank for r in results.count(outcomes).rows] == [(1, 1), (2, 3), (2, 3)]

    against = results.count(outcomes, baseline="c")
    assert [(p.a, p.b) for p in against.pairs] == [("a", "c"), ("b", "c")]
    assert against.baseline == "c"


def test_built_in_candidates_have_rows_and_no_pairs(results: Any) -> None:
    card = results.card({"reference": spread(3, 0), "seed": spread(0, 3), "a": spread(1, 2)})

    assert [r.candidate for r in card.rows] == ["reference", "a", "seed"]
    assert card.pairs == ()
    assert card.solved_by_none == ("c02", "c03")


def test_uncertified_cases_are_in_no_denominator(results: Any) -> None:
    outcomes = {"a": {"good": "p", "bad": "u"}}
    results.store(outcomes)

    card = results.count(outcomes, uncertified={"bad": "the reference fails", "other": "x"})

    assert (card.cells, card.verdicts, card.complete) == (1, 1, True)
    assert card.rows[0].rate == 1
    assert card.rows[0].reasons == {}
    assert card.uncertified == {"bad": "the reference fails"}


def test_cells_without_a_verdict_say_why(results: Any) -> None:
    outcomes = {"a": {"x": "pfg-", "y": "----"}}
    results.store(outcomes)
    quota = Cell("executor", "y", "a", 1)

    only = results.count(outcomes, not_run={quota: "quota exhausted"}).rows[0]

    assert only.faults == {"server-error": 1, "grader": 1}
    assert only.waiting == {"not run": 4, "quota exhausted": 1}
    assert (only.cells, only.verdicts) == (8, 1)


def test_only_todays_version_counts_and_the_old_one_is_said(results: Any) -> None:
    outcomes = {"a": {"x": "u", "y": "p"}}
    results.store(outcomes)
    old = Identity(task="t1", check="c1", candidate="m1")

    def identify(case: str, candidate: str) -> Identity:
        return old.model_copy(update={"check": "c2"}) if case == "x" else old

    card = results.count(outcomes, identify)
    assert (card.rows[0].passes, card.rows[0].verdicts) == (1, 1)
    assert card.rows[0].waiting == {"judged by another version of the check": 1}
    (found,) = card.old
    assert (found.case, found.verdicts, found.passes, found.changed) == ("x", 1, 0, ("check",))
    assert not card.complete


def test_without_identities_the_newest_version_is_todays(results: Any, record: Any) -> None:
    outcomes = {"a": {"x": "u"}, "b": {"x": "p"}}
    results.store(outcomes)
    newer = Identity(task="t2", check="c1", candidate="m1")
    results.append(record("a", "x", 1, "p", identity=newer))

    card = results.count(outcomes)

    assert (row(card, "a").passes, row(card, "a").verdicts) == (1, 1)
    assert row(card, "b").verdicts == 0
    assert row(card, "b").waiting == {"run on another version only": 1}
    assert {(o.candidate, o.changed) for o in card.old} == {("a", ("task",)), ("b", ("task",))}


def test_unknown_prices_and_tokens_are_never_nothing(results: Any, record: Any) -> None:
    """FR01, FR03: the sums say how many cells they are of."""

    def usage(**known: Any) -> dict[Role, Usage]:
        return {Role.CANDIDATE: Usage(calls=1, **known)}

    results.append(
        record("a", "x", 1, "p", usage=usage(input=100, output=10, list_usd=0.25)),
        record("a", "y", 1, "u", usage=usage(input=300, output=30)),
        record("a", "z", 1, "p", usage=usage(unmetered=1, input=7, list_usd=0.01)),
        record("a", "w", 1, "p", usage={}),
    )
    only = results.count({"a": dict.fromkeys("wxyz", "-")}).rows[0]

    assert (only.list_cost.total, only.list_cost.known, only.list_cost.of) == (0.25, 1, 4)
    assert only.cost_per_attempt is None
    assert only.cost_per_pass is None
    assert (only.tokens["input"].total, only.tokens["input"].known) == (400, 2)
    assert only.tokens["reasoning"].total is None


def test_cost_per_pass_counts_failed_attempts_and_no_judge(results: Any, record: Any) -> None:
    spent = {
        Role.CANDIDATE: Usage(calls=1, list_usd=0.1),
        Role.JUDGE: Usage(calls=1, list_usd=7.0),
    }
    results.append(
        record("a", "x", 1, "p", usage=spent),
        record("a", "y", 1, "u", usage=spent),
        record("a", "z", 1, "f", usage=spent),
    )
    only = results.count({"a": dict.fromkeys("xyz", "-")}).rows[0]

    assert only.cost_per_attempt == pytest.approx(0.1)
    assert only.cost_per_pass.value == pytest.approx(0.2)
    assert only.elsewhere["judge"].total == pytest.approx(21.0)
    assert only.elsewhere["other tries"].total == pytest.approx(0.1)


def test_a_regrade_gives_the_verdict_and_the_attempt_the_cost(results: Any, record: Any) -> None:
    first = record("a", "x", 1, "u", working=9.0)
    again = record(
        "a",
        "x",
        1,
        "p",
        kind="regrade",
        grades=first.id,
        usage={},
        working=0.1,
        identity=Identity(task="t1", check="c2", candidate="m1"),
    )
    results.append(first, again)

    card = results.count({"a": {"x": "-"}})

    assert (card.rows[0].passes, card.rows[0].verdicts) == (1, 1)
    assert card.rows[0].list_cost.total == 0.01
    assert card.rows[0].seconds.value == 9.0
    assert [(o.passes, o.verdicts, o.changed) for o in card.old] == [(0, 1, ("check",))]


def test_what_the_agent_did_and_how_it_was_judged(results: Any, record: Any) -> None:
    checks = (Check(name="a", passed=False, reason="boom"), Check(name="b", passed=True))
    lost = Verdict(passed=False, reward=0.5, reason="wrong", checks=checks, trust=Trust.JUDGED)
    results.append(
        record("a", "x", 1, "u", verdict=lost, counts={"turns": 4, "invented_tools": 3}, box="one"),
        record("a", "y", 1, "p", counts={"turns": 2}, box="two", scripted=True, served_model="m"),
    )
    card = results.count({"a": {"x": "-", "y": "-"}})

    only = card.rows[0]
    assert only.behaviour == {"turns": 6, "invented_tools": 3}
    assert only.misbehaved == {"turns": 2, "invented_tools": 1}
    assert only.failing == {("a", "boom"): 1}
    assert only.failing_checks == {"a": 1}
    assert (only.trust, only.boxes, only.scripted) == (Trust.JUDGED, ("one", "two"), True)
    assert only.served == ("m",)
    assert (only.mean_reward, only.mean_reward_of_passes) == (0.75, 1.0)


def test_median_time_is_over_cases(results: Any, record: Any) -> None:
    times = {"x": (1.0, 1.0, 90.0), "y": (2.0, 2.0, 2.0), "z": (5.0, 6.0, 7.0)}
    results.append(
        *(
            record("a", case, repeat, "p", working=seconds)
            for case, per_repeat in times.items()
            for repeat, seconds in enumerate(per_repeat, 1)
        )
    )
    only = results.count({"a": dict.fromkeys(times, "---")}).rows[0]

    assert only.seconds.value == 2.0
    assert only.summed_seconds == 116.0


def test_repeats_that_only_repeat_change_no_interval_and_no_p(results: Any, tmp_path: Any) -> None:
    once = {"a": spread(12, 8), "b": {case: "p" for case in spread(12, 8)}}
    thrice = {name: {c: letter * 3 for c, letter in row.items()} for name, row in once.items()}
    first = results.card(once)
    second = type(results)(tmp_path / "thrice").card(thrice)

    assert [r.interval for r in first.rows] == [r.interval for r in second.rows]
    assert [p.p for p in first.pairs] == [p.p for p in second.pairs]
    assert [p.difference for p in first.pairs] == [p.difference for p in second.pairs]


def test_a_pair_is_compared_on_mean_reward_beside_its_verdict(results: Any, record: Any) -> None:
    rewards = {"a": [0.9, 0.8, 1.0, 0.7], "b": [0.5, 0.2, 0.9, 0.1]}
    results.append(
        *(
            record(name, f"c{n}", 1, "p", verdict={"passed": True, "reward": reward})
            for name, values in rewards.items()
            for n, reward in enumerate(values)
        )
    )
    card = results.count({name: dict.fromkeys(("c0", "c1", "c2", "c3"), "p") for name in rewards})

    (pair,) = card.pairs
    assert (pair.disagreements, pair.better) == (0, None)
    assert pair.on_reward is not None
    assert pair.on_reward.difference.value == pytest.approx(0.425)
    # All four differences are positive: 2 of the 16 choices of signs are as far out.
    assert (pair.on_reward.p, pair.on_reward.method) == (0.125, "exact sign-flip")
    plain = results.card({"x": {"k": "p"}, "y": {"k": "u"}})
    assert [pair.on_reward for pair in plain.pairs] == [None]


def test_the_cost_frontier_has_no_dominated_candidate(results: Any, record: Any) -> None:
    def usage(usd: float) -> dict[Role, Usage]:
        return {Role.CANDIDATE: Usage(calls=1, input=10, output=1, list_usd=usd)}

    prices = {"cheap": 0.01, "dear": 0.04, "dearer": 0.05, "waste": 0.06}
    passes = {"cheap": 4, "dear": 20, "dearer": 21, "waste": 10}
    results.append(
        *(
            record(name, f"c{n:02}", 1, "p" if n < passes[name] else "u", usage=usage(price))
            for name, price in prices.items()
            for n in range(24)
        )
    )
    card = results.count({name: {f"c{n:02}": "p" for n in range(24)} for name in prices})

    assert [(one.candidate, one.usd, one.alike) for one in card.frontier] == [
        ("cheap", pytest.approx(0.01), ""),
        ("dear", pytest.approx(0.04), ""),
        ("dearer", pytest.approx(0.05), "dear"),
    ]
    free = results.card({"unpriced": {"x": "p"}}).frontier
    assert [one.candidate for one in free] == ["unpriced"]


def test_a_place_on_the_frontier_claims_no_comparison_that_was_not_made(
    results: Any, record: Any
) -> None:
    def usage(usd: float) -> dict[Role, Usage]:
        return {Role.CANDIDATE: Usage(calls=1, input=10, output=1, list_usd=usd)}

    results.append(
        *(
            record(name, f"c{n:02}", 1, "p" if n < passes else "u", usage=usage(price))
            for name, passes, price in (("a", 9, 0.01), ("b", 10, 0.02), ("base", 8, 0.03))
            for n in range(12)
        )
    )
    grid = {name: {f"c{n:02}": "p" for n in range(12)} for name in ("a", "b", "base")}
    card = results.count(grid, baseline="base")
    told = {one.candidate: (one.alike, one.relation) for one in card.frontier}
    assert told["b"] == ("a", "not compared with")


def test_the_wall_clock_ends_with_the_last_attempt_to_end(results: Any, record: Any) -> None:
    results.append(
        record("a", "x", 1, "p", id="w", started="2026-01-09T09:00:00.000Z", seconds=3600.0),
        record("a", "y", 1, "p", started="2026-01-09T09:30:00.000Z", seconds=60.0),
        record("a", "z", 1, "p", started="not a time", seconds=1.0),
        record("a", "x", 1, "p", started="2026-02-01T09:30:00.000Z", kind="regrade", grades="w"),
    )
    card = results.count({"a": {"x": "p", "y": "p"}})

    assert (card.first_started, card.last_ended) == (
        "2026-01-09T09:00:00.000Z",
        "2026-01-09T10:00:00.000Z",
    )
    assert wall_seconds(card) == 3600.0


def test_costs_of_own_servers_and_of_programs_stand_apart(results: Any, record: Any) -> None:
    known = {Role.CANDIDATE: Usage(calls=1, input=9, output=1, derived_usd=0.2, reported_usd=0.5)}
    results.append(record("a", "x", 1, "p", usage=known), record("a", "y", 1, "u"))
    (row,) = results.count({"a": {"x": "p", "y": "u"}}).rows

    assert (row.derived_cost, row.reported_cost) == (Known(0.2, 1, 2), Known(0.5, 1, 2))
    assert (row.list_cost, row.billed_cost) == (Known(0.01, 1, 2), Known(None, 0, 2))
    data = as_data(results.count({"a": {"x": "p", "y": "u"}}))["candidates"][0]
    assert data["reported_usd"] == {"sum": 0.5, "known": 1, "of": 2}
    assert data["derived_usd"] == {"sum": 0.2, "known": 1, "of": 2}
