"""Gates: what passes, fails, is undecided or incomplete, and what is said beside it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.report.baseline import Measured, StoredScorecards
from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.decisions import gate_data, gate_lines, markdown_gates
from pytest_modelbench.report.gates import Judged, Outcome, exit_status, judge
from pytest_modelbench.report.rules import Kind, Rule, parse_rule
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.stats import (
    CaseScores,
    case_score_interval,
    gate_pass_chance,
    newcombe_paired,
    power,
    tango_paired,
    wilson,
)

Pairs = dict[str, dict[str, str]]


@pytest.fixture
def card_of(results: Any, tmp_path: Path) -> Callable[[Pairs], Scorecard]:
    """Return the scorecard of outcomes that are stored in a folder of their own."""
    numbers = itertools.count()

    def card(outcomes: Pairs) -> Scorecard:
        fresh: Scorecard = type(results)(tmp_path / f"results-{next(numbers)}").card(outcomes)
        return fresh

    return card


def pairs(both: int, a_only: int, b_only: int, neither: int) -> Pairs:
    """Outcomes of a and b with these counts of cases."""
    letters = ["pp"] * both + ["pu"] * a_only + ["up"] * b_only + ["uu"] * neither
    return {
        "a": {f"c{n:03}": pair[0] for n, pair in enumerate(letters)},
        "b": {f"c{n:03}": pair[1] for n, pair in enumerate(letters)},
    }


def judged(card: Scorecard, *texts: str, late: bool = False) -> Sequence[Judged]:
    rules = [parse_rule(text) for text in texts]
    return judge(rules, [card], lambda rule, pack: None, lambda rule, card: late)


def one(card: Scorecard, text: str) -> Judged:
    (found,) = judged(card, text)
    return found


def test_a_floor_is_held_by_the_low_end_of_a_90_percent_interval(
    card_of: Callable[[Pairs], Scorecard],
) -> None:
    card = card_of(pairs(30, 10, 2, 8))  # a 40/50, b 32/50
    low, high, _ = wilson(40, 50, 0.9)  # type: ignore[misc]  # there are cases
    below = one(card, f"floor:a:{low - 0.001:.4f}")
    assert (below.outcome, below.value, below.cases) == (Outcome.PASS, 0.8, 50)
    assert (below.interval.low, below.interval.high) == (low, high)  # type: ignore[union-attr]
    assert one(card, f"floor:a:{low + 0.001:.4f}").outcome is Outcome.INCONCLUSIVE
    assert one(card, f"floor:a:{high - 0.001:.4f}").outcome is Outcome.INCONCLUSIVE
    assert one(card, f"floor:a:{high + 0.001:.4f}").outcome is Outcome.FAIL
    assert one(card, "floor:a:0.6").line == (
        "gate floor:a:0.6: PASS  executor: a passes 80.0% [69.3-87.7], floor 60% "
        "(90% Wilson, 50 cases)"
    )


def test_a_floor_says_what_passes_it(card_of: Callable[[Pairs], Scorecard]) -> None:
    from scipy.stats import binom

    card = card_of(pairs(30, 10, 2, 8))
    chance = one(card, "floor:a:0.6").chance
    assert chance is not None
    needed = next(k for k in range(51) if wilson(k, 50, 0.9).low >= 0.6)  # type: ignore[union-attr]
    assert chance.equal == pytest.approx(binom.sf(needed - 1, 50, 0.6))
    assert chance.said == (
        "one exactly at the floor passes in about 5 of 100 runs at 50 cases, one at 77% in 80"
    )
    assert binom.sf(needed - 1, 50, 0.77) >= 0.8 > binom.sf(needed - 1, 50, 0.76)
    tiny = one(card_of({"z": {"x": "p", "y": "p"}}), "floor:z:0.9").chance
    assert tiny is not None
    assert tiny.said == "no candidate can pass it at 2 cases: not even one that passes all"


def test_repeats_of_a_case_are_no_more_cases(card_of: Callable[[Pairs], Scorecard]) -> None:
    once = card_of({"a": {f"c{n}": "p" for n in range(20)}})
    thrice = card_of({"b": {f"c{n}": "ppp" for n in range(20)}})
    assert one(once, "floor:a:0.85").interval == one(thrice, "floor:b:0.85").interval
    mixed = card_of({"m": {f"c{n:02}": "ppu"[n % 3 :] + "ppu"[: n % 3] for n in range(30)}})
    found = one(mixed, "floor:m:0.5")
    expected = case_score_interval(CaseScores.of_passes([2] * 30, [3] * 30), 0.9)
    assert found.interval == expected


def test_a_margin_is_held_by_newcombes_interval(card_of: Callable[[Pairs], Scorecard]) -> None:
    counts = (30, 6, 4, 10)
    card = card_of(pairs(*counts))
    low, high, _ = newcombe_paired(*counts, 0.9)  # type: ignore[misc]  # there are cases
    assert (low, high) == pytest.approx((-0.0684, 0.1474), abs=5e-5)
    assert one(card, "not-worse-by:7:a:baseline=b").outcome is Outcome.PASS
    five = one(card, "not-worse-by:5:a:baseline=b")
    assert five.outcome is Outcome.INCONCLUSIVE
    assert five.line == (
        "gate not-worse-by:5:a:baseline=b: INCONCLUSIVE  executor: a - b: +4.0 pt "
        "[-6.8 to +14.7], margin 5 pt (90% Newcombe 10, 50 cases)"
    )
    assert five.chance is not None
    assert five.chance.equal == gate_pass_chance(50, 0.2, 0.05, agreed_pass_rate=0.75)
    assert 0.15 < five.chance.equal < 0.25
    worse = card_of(pairs(20, 1, 20, 9))
    assert one(worse, "not-worse-by:5:a:baseline=b").outcome is Outcome.FAIL


def test_tango_by_name(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of(pairs(30, 6, 4, 10))
    found = one(card, "not-worse-by:5:a:baseline=b:interval=tango")
    assert found.interval == tango_paired(30, 6, 4, 10, 0.9)


def test_with_repeats_a_margin_says_its_chance_by_the_normal_law(
    card_of: Callable[[Pairs], Scorecard],
) -> None:
    letters = ["ppu", "upp", "uuu", "ppp"]
    found = {
        "a": {f"c{n:02}": letters[n % 4] for n in range(40)},
        "b": {f"c{n:02}": letters[(n + n // 4) % 4] for n in range(40)},
    }
    gate = one(card_of(found), "not-worse-by:5:a:baseline=b")
    assert gate.interval is not None
    assert gate.interval.method == "90% MOVER on case scores"
    assert gate.chance is not None
    assert 0 < gate.chance.equal < 0.5


def test_where_no_case_differs_the_interval_still_has_a_width(
    card_of: Callable[[Pairs], Scorecard],
) -> None:
    """The same verdicts twice: undecided by the interval, and the chance does not say otherwise."""
    same = {f"c{n:02}": "ppp" if n % 2 else "uuu" for n in range(1, 12)} | {"c00": "ppu"}
    gate = one(card_of({"a": same, "b": {**same, "c00": "pup"}}), "not-worse-by:5:a:baseline=b")
    alike = dict.fromkeys([f"c{n:02}" for n in range(12)], "ppp")
    full = one(card_of({"x": alike, "y": alike}), "not-worse-by:5:x:baseline=y")

    # Wilson's low end at 12 of 12 and 90 %: z²/(12 + z²) below 1.
    assert full.interval is not None
    assert full.interval.low == pytest.approx(-2.7055 / 14.7055, abs=1e-4)
    assert (full.outcome, gate.outcome) == (Outcome.INCONCLUSIVE, Outcome.PASS)
    assert full.chance is not None
    assert gate.chance is not None
    assert (full.chance.equal, gate.chance.equal) == (0, 1)
    assert "passes in about 0 of 100 runs at 12 cases" in full.chance.said
    # z²/(n + z²) is below 0.05 from n = 52 on; whole copies of 12 cases.
    assert full.enough is not None
    assert full.enough.cases == 60
    assert any("to decide: an equally good" in line for line in gate_lines([full]))


def test_a_regression_must_be_proven_and_equals_are_not_stopped(
    card_of: Callable[[Pairs], Scorecard],
) -> None:
    assert one(card_of(pairs(20, 2, 12, 6)), "regression:a:baseline=b").outcome is Outcome.FAIL
    undecided = one(card_of(pairs(20, 5, 6, 9)), "regression:a:baseline=b")
    assert undecided.outcome is Outcome.PASS
    assert undecided.p == 1
    assert undecided.chance is not None
    assert undecided.chance.equal == pytest.approx(1 - power(40, 11 / 40, 0.0))
    assert "an equally good candidate passes in about 99 of 100 runs" in undecided.chance.said
    assert "one that is 10 points worse in 86" in undecided.chance.said


def test_superiority_must_be_proven(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of(pairs(20, 12, 2, 6))
    better = one(card, "superiority:a:baseline=b")
    assert better.outcome is Outcome.PASS
    assert better.adjusted_p == card.pairs[0].adjusted_p
    assert better.line.endswith("executor: a - b: +25.0 pt, 12 to 2 of 40 cases, p 0.013")
    assert one(card, "superiority:b:baseline=a").outcome is Outcome.FAIL
    undecided = card_of(pairs(20, 6, 5, 9))
    assert one(undecided, "superiority:a:baseline=b").outcome is Outcome.INCONCLUSIVE


def test_a_test_is_of_the_reports_own_family(card_of: Callable[[Pairs], Scorecard]) -> None:
    found = pairs(20, 12, 2, 6)
    found["c"] = dict.fromkeys(found["a"], "p")
    found["d"] = dict.fromkeys(found["a"], "u")
    card = card_of(found)
    gate = one(card, "superiority:a:baseline=b")
    assert gate.p == pytest.approx(0.0129, abs=5e-5)
    (pair,) = [p for p in card.pairs if {p.a, p.b} == {"a", "b"}]
    assert (gate.adjusted_p, gate.family) == (pair.adjusted_p, 6)
    assert gate.line.endswith(", Holm over 6")


def test_an_extended_grid_gates_at_the_level_of_its_look(results: Any) -> None:
    found = pairs(20, 12, 2, 6)
    results.store(found)
    card = results.count(found, looks=4, resized=True)
    gate = one(card, "superiority:a:baseline=b")
    assert gate.level == pytest.approx(0.0125)
    assert gate.outcome is Outcome.INCONCLUSIVE
    floor = one(card, "floor:a:0.6")
    assert floor.interval == wilson(32, 40, 1 - 2 * (floor.level or 0))


def test_cost_and_time(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of(pairs(10, 10, 5, 5))  # a passes 20 of 30, each attempt costs 0.01
    interval = card.rows[0].cost_per_pass
    assert interval is not None
    dear = one(card, "cost-per-pass:a:0.01")
    assert dear.outcome is Outcome.FAIL
    assert dear.value == pytest.approx(0.015)
    assert one(card, "cost-per-pass:a:0.03").outcome is Outcome.PASS
    assert one(card, "cost-per-pass:a:0.016").outcome is Outcome.INCONCLUSIVE
    assert dear.line.startswith(
        "gate cost-per-pass:a:0.01: FAIL  executor: a pays $0.0150 a pass ["
    )
    assert one(card, "median-time:a:2.5").outcome is Outcome.PASS
    assert one(card, "median-time:a:1.5").outcome is Outcome.FAIL
    few = card_of({"few": {"x": "p", "y": "p"}})
    found = one(few, "median-time:few:100")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "2 cases are too few for an interval" in found.line


def test_without_a_pass_the_cost_is_bounded_below(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of({"z": {f"c{n:02}": "u" for n in range(20)}})
    assert one(card, "cost-per-pass:z:0.01").outcome is Outcome.FAIL
    found = one(card, "cost-per-pass:z:1")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "z has no pass for $0.20" in found.line


def test_an_unknown_price_is_incomplete_and_never_0(results: Any, record: Any) -> None:
    outcomes = {"z": {"x": "p", "y": "p"}}
    results.append(record("z", "x", 1, "p"), record("z", "y", 1, "p", usage={}))
    found = one(results.count(outcomes), "cost-per-pass:z:1")
    assert found.outcome is Outcome.INCOMPLETE
    assert "the list price is unknown for 1 of 2 cases of z" in found.line


def test_an_interim_grid_is_incomplete_whatever_it_shows(
    card_of: Callable[[Pairs], Scorecard],
) -> None:
    found = pairs(30, 0, 0, 0)
    found["b"]["c000"] = "f"
    gate = one(card_of(found), "floor:a:0.1")
    assert gate.outcome is Outcome.INCOMPLETE
    assert gate.line == "gate floor:a:0.1: INCOMPLETE  executor: 1 of 60 cells has no verdict"
    assert gate.chance is None


def test_the_worst_of_several_gates_is_incomplete_then_fail_then_inconclusive() -> None:
    rule = Rule("r", Kind.FLOOR, "a", 0.5)

    def status(*outcomes: Outcome) -> int:
        return exit_status([Judged(rule, "p", outcome, "") for outcome in outcomes])

    every = (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL, Outcome.INCOMPLETE)
    assert status(*every) == status(*reversed(every)) == 12
    assert status(*every[:3]) == 10
    assert status(*every[:2]) == 11
    assert status(Outcome.PASS, Outcome.NOT_JUDGED) == status() == 0


def test_a_rule_about_others_is_not_judged(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of(pairs(3, 1, 1, 1))
    assert [gate.line for gate in judged(card, "floor:x:0.5", "floor:a:0.5:pack=other")] == [
        "gate floor:x:0.5: NOT JUDGED  x is not in this run",
        "gate floor:a:0.5:pack=other: NOT JUDGED  other: pack other is not in this run",
    ]
    (partial,) = judge(
        [parse_rule("floor:a:0.5")],
        [card],
        lambda rule, pack: None,
        lambda rule, card: False,
        why_not="a partial run judges no gate",
    )
    assert partial.line == "gate floor:a:0.5: NOT JUDGED  a partial run judges no gate"
    missing = one(card, "not-worse-by:5:a:baseline=x")
    assert (missing.outcome, missing.said) == (
        Outcome.INCOMPLETE,
        "the baseline x is not in this run",
    )


def test_a_margin_set_after_data_is_marked(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of(pairs(30, 6, 4, 10))
    (late,) = judged(card, "not-worse-by:7:a:baseline=b", late=True)
    assert late.outcome is Outcome.PASS
    assert late.line.endswith("; rule set after data")
    assert gate_data(late)["set_after_data"] is True
    assert "; rule set after data" in markdown_gates([late])


def test_the_forms_of_a_gate(card_of: Callable[[Pairs], Scorecard]) -> None:
    card = card_of(pairs(30, 6, 4, 10))
    gates = judged(card, "not-worse-by:5:a:baseline=b", "floor:b|x:0.5")
    data = json.loads(json.dumps([gate_data(gate) for gate in gates], allow_nan=False))
    assert data[0]["outcome"] == "inconclusive"
    assert data[0]["interval"]["low"] == pytest.approx(-0.0684, abs=5e-5)
    assert data[0]["chance_of_an_equal"] == gates[0].chance.equal  # type: ignore[union-attr]
    lines = gate_lines(gates, 80)
    assert lines[1] == gates[0].line  # stable: never folded
    assert lines[2].startswith("    an equally good candidate passes in about ")
    assert "| floor:b\\|x:0.5 |" in markdown_gates(gates)
    assert gate_lines([]) == []
    assert markdown_gates([]) == ""


# -- stored baselines ------------------------------------------------------------------------------


def stored_in(folder: Path, card: Scorecard, **changes: Any) -> StoredScorecards:
    path = folder / "main.json"
    path.write_text(json.dumps({"cards": [as_data(card) | changes]}), encoding="utf-8")
    return StoredScorecards(path)


def against(card: Scorecard, stored: StoredScorecards, text: str) -> Judged:
    def find(rule: Rule, pack: str) -> Measured | None:
        _, name = rule.stored_baseline or ("", "")
        return stored.find(pack, name, rule.candidate)

    (found,) = judge([parse_rule(text)], [card], find, lambda rule, card: False)
    return found


def test_a_stored_scorecard_is_a_baseline_case_by_case(
    card_of: Callable[[Pairs], Scorecard], tmp_path: Path
) -> None:
    card = card_of(pairs(30, 6, 4, 10))
    stored = stored_in(tmp_path, card)
    here = one(card, "not-worse-by:5:a:baseline=b")
    there = against(card, stored, "not-worse-by:5:a:baseline=main.json#b")
    assert (there.outcome, there.interval) == (here.outcome, here.interval)
    assert "a - b of main.json: +4.0 pt" in there.line
    itself = against(card, stored, "not-worse-by:5:a:baseline=main.json")
    assert itself.value == 0
    worse = against(card, stored, "regression:a:baseline=main.json#b")
    assert (worse.outcome, worse.family) == (Outcome.PASS, 1)


def test_a_stored_baseline_is_found_in_the_scorecard_that_has_it(
    card_of: Callable[[Pairs], Scorecard], tmp_path: Path
) -> None:
    """``modelbench report --format json`` writes one for each size of grid."""
    card, deep = card_of(pairs(30, 6, 4, 10)), card_of({"deep": {"x": "ppp"}})
    path = tmp_path / "main.json"
    path.write_text(json.dumps([as_data(card), as_data(deep)]), encoding="utf-8")
    stored = StoredScorecards(path)
    found = stored.find("executor", "deep", "a")
    assert found is not None
    assert (found.name, found.repeats) == ("deep", 3)
    with pytest.raises(UsageProblem, match="2 scorecards of executor that could be meant"):
        stored.find("executor", "nobody", "a")


def test_cases_that_changed_or_are_missing_make_a_baseline_incomplete(
    card_of: Callable[[Pairs], Scorecard], tmp_path: Path
) -> None:
    card = card_of(pairs(3, 1, 1, 1))
    stored = stored_in(tmp_path, card)
    text = "not-worse-by:5:a:baseline=main.json#b"
    changed = replace(card, versions=dict(card.versions) | {"c001": "another"})
    found = against(changed, stored, text)
    assert (found.outcome, found.said) == (
        Outcome.INCOMPLETE,
        "1 of 6 cases changed since b of main.json was measured",
    )
    more = card_of(pairs(4, 1, 1, 1))
    found = against(more, stored, text)
    assert found.said == "1 of 7 cases lack verdicts of b of main.json"
    elsewhere = against(card, stored_in(tmp_path, card, pack="other"), text)
    assert elsewhere.said == "the baseline main.json#b is without this pack"


def test_a_baseline_that_cannot_be_read_is_refused(
    card_of: Callable[[Pairs], Scorecard], tmp_path: Path
) -> None:
    with pytest.raises(UsageProblem, match="cannot be read"):
        StoredScorecards(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(UsageProblem, match="not JSON"):
        StoredScorecards(broken)
    broken.write_text('[{"pack": "executor"}]', encoding="utf-8")
    with pytest.raises(UsageProblem, match="no scorecard that can be read"):
        StoredScorecards(broken).find("executor", "", "a")
    stored = stored_in(tmp_path, card_of(pairs(3, 1, 1, 1)))
    with pytest.raises(UsageProblem, match="no candidate 'x' in it, but a, b"):
        stored.find("executor", "x", "a")


def test_inconclusive_says_how_many_cases_would_decide(
    card_of: Callable[[Pairs], Scorecard],
) -> None:
    card = card_of(pairs(30, 6, 4, 10))
    margin = one(card, "not-worse-by:5:a:baseline=b")
    assert margin.enough is not None
    assert gate_pass_chance(margin.enough.cases, 0.2, 0.05) == pytest.approx(0.8, abs=0.03)
    assert margin.enough.said == (
        f"an equally good candidate passes in 80 of 100 runs at about {margin.enough.cases} cases"
    )
    assert gate_data(margin)["cases_to_decide"] == margin.enough.cases
    assert any("to decide: an equally good" in line for line in gate_lines([margin]))

    floor = one(card, "floor:a:0.7")
    assert (floor.outcome, floor.enough is not None) == (Outcome.INCONCLUSIVE, True)
    # Normal laws: z 1.645 at 70 % and 0.842 at 80 %, ten points apart.
    assert floor.enough is not None
    assert floor.enough.cases == 120
    assert "one that is at 80%" in floor.enough.said

    better = one(card, "superiority:a:baseline=b")
    assert better.enough is not None
    assert power(better.enough.cases, 0.2, 0.1) == pytest.approx(0.8, abs=0.06)

    dear = one(card, "cost-per-pass:a:0.0145")
    assert (dear.outcome, dear.enough is not None) == (Outcome.INCONCLUSIVE, True)
    assert one(card, "not-worse-by:7:a:baseline=b").enough is None  # it passes


def store_rewards(results: Any, record: Any, rewards: Mapping[str, Sequence[float]]) -> list[str]:
    """Store an attempt a reward, passed from 0.6 on; return the names of the cases."""
    names = [f"c{n:02}" for n in range(40)]
    results.append(
        *(
            record(
                candidate,
                case,
                1,
                "p",
                outcome="passed" if reward >= 0.6 else "unsolved",
                verdict={"passed": reward >= 0.6, "reward": reward, "reason": ""},
            )
            for candidate, values in rewards.items()
            for case, reward in zip(names, values, strict=True)
        )
    )
    return names


def test_gates_on_mean_reward(results: Any, record: Any) -> None:
    rewards = {"a": [0.9, 0.8, 1.0, 0.7], "b": [0.5, 0.2, 0.9, 0.1]}
    names = store_rewards(results, record, {name: mine * 10 for name, mine in rewards.items()})
    card = results.count({name: dict.fromkeys(names, "p") for name in rewards})

    floor = one(card, "floor:a:0.8:on=reward")
    assert floor.value == pytest.approx(0.85)
    expected = case_score_interval(CaseScores.of_values([0.9, 0.8, 1.0, 0.7] * 10), 0.9)
    assert floor.interval == expected
    assert one(card, "floor:a:0.8").value == 1.0  # every reward of a is a pass
    low = expected.low if expected is not None else 0.0
    assert one(card, f"floor:a:{low - 0.001:.4f}:on=reward").outcome is Outcome.PASS
    assert one(card, f"floor:a:{low + 0.001:.4f}:on=reward").outcome is Outcome.INCONCLUSIVE
    worse = one(card, "not-worse-by:5:b:baseline=a:on=reward")
    assert worse.outcome is Outcome.FAIL
    assert worse.value == pytest.approx(0.425 - 0.85)
    assert "mean reward, -42.5 pt" in worse.line


def test_proofs_on_mean_reward_where_passes_say_nothing(results: Any, record: Any) -> None:
    rewards = {"a": [0.875] * 40, "b": [0.75] * 10 + [0.875] * 30}  # each of them a pass
    names = store_rewards(results, record, rewards)
    card = results.count({name: dict.fromkeys(names, "p") for name in "ab"})

    assert one(card, "superiority:a:baseline=b").outcome is Outcome.INCONCLUSIVE
    better = one(card, "superiority:a:baseline=b:on=reward")
    assert better.outcome is Outcome.PASS
    assert better.value == pytest.approx(0.125 * 10 / 40)
    assert better.p == pytest.approx(2 / 2**10)  # ten of ten alike, by tossing a coin for each
    assert "a - b: mean reward, +3.1 pt, 10 to 0 of 40 cases, p 0.002" in better.line
    # By the normal law: ten points are 11.5 standard errors; no difference is found in 2.5 of 100.
    assert better.chance is not None
    assert better.chance.equal == pytest.approx(0.025)
    assert "10 points better in 100" in better.chance.said
    worse = one(card, "regression:b:baseline=a:on=reward")
    assert worse.outcome is Outcome.FAIL
    assert one(card, "regression:b:baseline=a").outcome is Outcome.PASS
    assert one(card, "superiority:b:baseline=a:on=reward").outcome is Outcome.FAIL
