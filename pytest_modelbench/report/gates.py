"""Gates: rules that were declared, judged on a complete grid by one-sided intervals.

Undecided is not passed: a gate passes where its interval lies within the rule, fails where it lies
outside, and is inconclusive else. One interval serves print and gate; its two-sided confidence is
1 - 2 alpha, so that each end alone is wrong in alpha of all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pytest_modelbench.report.baseline import Measured, of_run
from pytest_modelbench.report.chance import Chance, Enough, chance_of, enough_cases
from pytest_modelbench.report.numbers import dollars, duration, plural
from pytest_modelbench.report.pairs import Pair
from pytest_modelbench.report.rows import CaseFigures, Row
from pytest_modelbench.report.rules import Kind, Rule
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.stats import (
    CaseScores,
    Decision,
    Interval,
    case_differences,
    case_score,
    cost_per_pass,
    decide,
    format_interval,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
    holm,
    jeffreys,
    pair_counts,
    paired_difference,
    sign_flip,
    tango_paired,
    time_quantile,
)

EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_INCOMPLETE = 10, 11, 12


class Outcome(StrEnum):
    """What a gate came to. A gate that is not judged decides nothing and has no exit status."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INCOMPLETE = "incomplete"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Judged:
    """One rule on one pack. ``said`` is what was found, in words; ``level`` that of this look."""

    rule: Rule
    pack: str
    outcome: Outcome
    said: str
    value: float | None = None
    interval: Interval | None = None
    cases: int = 0
    p: float | None = None
    adjusted_p: float | None = None
    family: int | None = None
    level: float | None = None
    chance: Chance | None = None
    enough: Enough | None = None
    """Of one that is inconclusive."""
    late: bool = False

    @property
    def line(self) -> str:
        """Return the stable line: ``gate NAME: PASS  PACK: …``."""
        pack = f"{self.pack}: " if self.pack else ""
        late = "; rule set after data" if self.late else ""
        return f"gate {self.rule.name}: {self.outcome.upper()}  {pack}{self.said}{late}"


def judge(
    rules: Sequence[Rule],
    cards: Sequence[Scorecard],
    stored: Callable[[Rule, str], Measured | None],
    late: Callable[[Rule, Scorecard], bool],
    *,
    why_not: str = "",
) -> tuple[Judged, ...]:
    """Judge every rule on every pack of the run that it is about.

    ``stored`` gives a rule's stored baseline on a pack; ``late`` tells whether the rule was set
    after verdicts of its candidate existed. ``why_not``: the run judges no gate, and why.
    """
    judged: list[Judged] = []
    for rule in rules:
        if why_not:
            judged.append(Judged(rule, rule.pack, Outcome.NOT_JUDGED, why_not))
            continue
        about = [card for card in cards if rule.pack in ("", card.grid.pack)]
        mine = [card for card in about if rule.candidate in card.grid.candidates]
        if not mine:
            what = rule.candidate if about else f"pack {rule.pack}"
            judged.append(Judged(rule, rule.pack, Outcome.NOT_JUDGED, f"{what} is not in this run"))
        for card in mine:
            judged.append(_Judging(rule, card, late(rule, card)).judged(stored))
    return tuple(
        one if one.outcome is Outcome.INCONCLUSIVE else replace(one, enough=None)
        for one in _adjusted(judged)
    )


def exit_status(judged: Sequence[Judged]) -> int:
    """Return the worst in the order incomplete, fail, inconclusive; 0 where all pass."""
    outcomes = {one.outcome for one in judged}
    if Outcome.INCOMPLETE in outcomes:
        return EXIT_INCOMPLETE
    if Outcome.FAIL in outcomes:
        return EXIT_FAIL
    return EXIT_INCONCLUSIVE if Outcome.INCONCLUSIVE in outcomes else 0


@dataclass(frozen=True)
class _Judging:
    rule: Rule
    card: Scorecard
    late: bool

    @property
    def level(self) -> float:
        """Return the level of this look: less where the grid was resized after one."""
        return self.rule.alpha * self.card.level / self.card.alpha

    @property
    def confidence(self) -> float:
        return 1 - 2 * self.level

    def judged(self, stored: Callable[[Rule, str], Measured | None]) -> Judged:
        rule, card = self.rule, self.card
        if not card.complete:
            open_cells = card.cells - card.verdicts
            have = "has" if open_cells == 1 else "have"
            return self._end(
                Outcome.INCOMPLETE,
                f"{open_cells} of {plural(card.cells, 'cell')} {have} no verdict",
            )
        row = next(row for row in card.rows if row.candidate == rule.candidate)
        if rule.kind is Kind.FLOOR:
            return self._floor(row)
        if rule.kind is Kind.COST_PER_PASS:
            return self._cost(row)
        if rule.kind is Kind.MEDIAN_TIME:
            return self._time(row)
        mine = of_run(card, rule.candidate)
        base = stored(rule, card.grid.pack) if rule.stored_baseline else of_run(card, rule.baseline)
        assert mine is not None  # for mypy: the row is there
        if base is None:
            where = "not in this run" if not rule.stored_baseline else "without this pack"
            return self._end(Outcome.INCOMPLETE, f"the baseline {rule.baseline} is {where}")
        if lacking := base.lacks(card):
            return self._end(Outcome.INCOMPLETE, lacking)
        if rule.kind is Kind.NOT_WORSE_BY:
            return self._not_worse(mine, base)
        return self._compared(mine, base)

    def _end(self, outcome: Outcome, said: str, **found: object) -> Judged:
        return Judged(
            self.rule,
            self.card.grid.pack,
            outcome,
            said,
            level=self.level,
            late=self.late,
            cases=len(self.card.cases),
            **found,  # type: ignore[arg-type]  # fields of Judged, by name
        )

    def _floor(self, row: Row) -> Judged:
        rule, limit = self.rule, self._limit
        scores = _scores(row.figures, rule.on)
        score = case_score(scores, self.confidence)
        assert score is not None  # for mypy: a complete card has cases
        value, interval = score.mean, score.interval
        if self.card.interval == "jeffreys" and self.card.grid.repeats == 1 and rule.on == "passes":
            interval = jeffreys(row.passes, row.verdicts, self.confidence) or interval
        what = "passes" if rule.on == "passes" else "mean reward"
        said = (
            f"{rule.candidate} {what} {format_percent(value, 1)}% "
            f"{format_interval(interval, 1)}, floor {limit * 100:g}%"
        )
        return self._end(
            _outcome(interval.low >= limit, interval.high < limit),
            self._with_method(said, interval),
            value=value,
            interval=interval,
            chance=chance_of(rule, self.level, scores=scores),
            enough=enough_cases(rule, self.level, len(scores)),
        )

    def _not_worse(self, mine: Measured, base: Measured) -> Judged:
        rule, margin = self.rule, self._limit
        a, b = self._paired(mine, base)
        found = paired_difference(a, b, self.confidence)
        assert found is not None  # for mypy: a complete card has cases
        value, interval = found
        if rule.interval == "tango":
            if not (a.binary and b.binary):
                return self._end(
                    Outcome.INCOMPLETE, "Tango's interval needs one attempt of each case"
                )
            counts = pair_counts(case_differences(a, b))
            passed_b = sum(n != 0 for n in b.numerators)
            both = passed_b - counts.b_more
            interval = (
                tango_paired(
                    both, counts.a_more, counts.b_more, counts.alike - both, self.confidence
                )
                or interval
            )
        said = (
            f"{rule.candidate} - {base.shown}: {self._what}{format_points(value)} pt "
            f"{format_points_interval(interval)}, margin {margin * 100:g} pt"
        )
        return self._end(
            _outcome(interval.low > -margin, interval.high < -margin),
            self._with_method(said, interval),
            value=value,
            interval=interval,
            chance=chance_of(rule, self.level, pair=(a, b)),
            enough=enough_cases(rule, self.level, len(a), pair=(a, b)),
        )

    def _compared(self, mine: Measured, base: Measured) -> Judged:
        """Test a candidate against its baseline; Holm comes when all tests are known."""
        a, b = self._paired(mine, base)
        pair = self._declared(base)
        found = paired_difference(a, b, self.confidence)
        differences = case_differences(a, b)
        # As the report has it, where it has it: a mid-p among them.
        test = pair.on_reward if pair is not None and self.rule.on == "reward" else None
        told = test or pair  # rewards that say no more than passes have no test of their own
        p = told.p if told is not None and told.p is not None else sign_flip(differences).p
        counts = pair_counts(differences)
        family = len(self.card.pairs) if pair is not None else None
        return self._end(
            Outcome.INCONCLUSIVE,
            f"{self.rule.candidate} - {base.shown}: {self._what}"
            f"{format_points(found.value if found else None)} pt, "
            f"{counts.a_more} to {counts.b_more} of {plural(len(differences), 'case')}",
            value=found.value if found else None,
            interval=found.interval if found else None,
            p=p,
            adjusted_p=told.adjusted_p if told is not None else None,
            family=family,
            chance=chance_of(self.rule, self.level, pair=(a, b), family=family or 1),
            enough=enough_cases(self.rule, self.level, len(a), pair=(a, b), family=family or 1),
        )

    def _declared(self, base: Measured) -> Pair | None:
        """Return the pair of the report's own family, where this is one of it."""
        wanted = {self.rule.candidate, base.name}
        if base.origin:
            return None
        return next((pair for pair in self.card.pairs if {pair.a, pair.b} == wanted), None)

    def _cost(self, row: Row) -> Judged:
        limit = self._limit
        figures = list(row.figures.values())
        known = [one for one in figures if one.list_usd is not None]
        if len(known) < len(figures):
            lacking = len(figures) - len(known)
            return self._end(
                Outcome.INCOMPLETE,
                f"the list price is unknown for {lacking} of {plural(len(figures), 'case')} of "
                f"{row.candidate}",
            )
        found = cost_per_pass(
            [one.list_usd for one in figures],
            [one.passes for one in figures],
            [one.verdicts for one in figures],
            self.confidence,
        )
        assert found is not None  # for mypy: every price is known, and there are cases
        chance = chance_of(self.rule, self.level)
        if found.value is None:
            least = found.at_least or 0.0
            said = f"{row.candidate} has no pass for {dollars(found.spent)}, so a pass costs at "
            said += f"least {dollars(least)}; limit {dollars(limit)}"
            return self._end(_outcome(False, least > limit), said, chance=chance)
        said = f"{row.candidate} pays {dollars(found.value)} a pass"
        interval = found.interval
        if interval is not None:
            said += f" [{dollars(interval.low)} to {dollars(interval.high)}]"
        said += f", limit {dollars(limit)}"
        return self._end(
            _inside(interval, limit),
            self._with_method(said, interval),
            value=found.value,
            interval=interval,
            chance=chance,
            enough=enough_cases(self.rule, self.level, len(figures), interval=interval),
        )

    def _time(self, row: Row) -> Judged:
        limit = self._limit
        times = [one.seconds for one in row.figures.values() if one.seconds is not None]
        found = time_quantile(times, conf=self.confidence)
        if found is None or len(times) < len(row.figures):
            return self._end(Outcome.INCOMPLETE, f"times of {row.candidate} are not all known")
        interval = found.interval
        said = f"{row.candidate} takes {duration(found.value)} s in the median"
        if interval is not None:
            said += f" [{duration(interval.low)} to {duration(interval.high)}]"
        said += f", limit {limit:g} s"
        return self._end(
            _inside(interval, limit),
            self._with_method(said, interval),
            value=found.value,
            interval=interval,
            chance=chance_of(self.rule, self.level),
            enough=enough_cases(self.rule, self.level, len(times), interval=interval),
        )

    def _paired(self, mine: Measured, base: Measured) -> tuple[CaseScores, CaseScores]:
        cases = self.card.cases
        a, b = (
            _scores({case: one.figures[case] for case in cases}, self.rule.on)
            for one in (mine, base)
        )
        return a, b

    @property
    def _what(self) -> str:
        return "" if self.rule.on == "passes" else "mean reward, "

    @property
    def _limit(self) -> float:
        if self.rule.limit is None:
            raise RuntimeError(f"gate {self.rule.name} has no limit: a rule of its kind needs one")
        return self.rule.limit

    def _with_method(self, said: str, interval: Interval | None) -> str:
        cases = plural(len(self.card.cases), "case")
        if interval is None:
            return f"{said}; {cases} are too few for an interval"
        return f"{said} ({interval.method}, {cases})"


def _adjusted(judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """Decide the gates that rest on tests.

    Those of the report's own family carry its adjusted p. The others, against stored baselines,
    are a family of their own.
    """
    apart = [n for n, one in enumerate(judged) if one.p is not None and one.adjusted_p is None]
    adjusted = dict(zip(apart, holm([judged[n].p or 0.0 for n in apart]), strict=True))
    return tuple(
        _decided(one, adjusted.get(n, one.adjusted_p), len(apart)) if one.p is not None else one
        for n, one in enumerate(judged)
    )


def _decided(one: Judged, p: float | None, apart: int) -> Judged:
    value, level = one.value or 0.0, one.level or one.rule.alpha
    assert p is not None  # for mypy: it was adjusted in one family or the other
    family = one.family or apart
    sign = (value > 0) - (value < 0)
    found = decide(p, sign, abs(sign), level)
    among = f", Holm over {family}" if family > 1 else ""
    return replace(
        one,
        outcome=_of_decision(one.rule.kind, found),
        said=f"{one.said}, p {format_p(p, level)}{among}",
        adjusted_p=p,
        family=family,
    )


def _of_decision(kind: Kind, found: Decision) -> Outcome:
    if kind is Kind.REGRESSION:
        return Outcome.FAIL if found is Decision.B_BETTER else Outcome.PASS
    if found is Decision.A_BETTER:
        return Outcome.PASS
    return Outcome.FAIL if found is Decision.B_BETTER else Outcome.INCONCLUSIVE


def _outcome(holds: bool, broken: bool) -> Outcome:
    return Outcome.PASS if holds else Outcome.FAIL if broken else Outcome.INCONCLUSIVE


def _inside(interval: Interval | None, limit: float) -> Outcome:
    if interval is None:
        return Outcome.INCONCLUSIVE
    return _outcome(interval.high <= limit, interval.low > limit)


def _scores(figures: Mapping[str, CaseFigures], on: str) -> CaseScores:
    if on == "reward":
        return CaseScores.of_rewards([one.rewards for one in figures.values()])
    return CaseScores.of_passes(
        [one.passes for one in figures.values()], [one.verdicts for one in figures.values()]
    )
