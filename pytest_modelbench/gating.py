"""The gates of a run: what was declared, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from pytest_modelbench.bench import Bench
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.plan import Action
from pytest_modelbench.plugin import root_of
from pytest_modelbench.report.baseline import Measured, StoredScorecards
from pytest_modelbench.report.decisions import DEV
from pytest_modelbench.report.gates import Judged, judge
from pytest_modelbench.report.rules import OPTION, STORED, Rule, parse_rule, read_rules
from pytest_modelbench.report.scorecard import Scorecard

PYPROJECT = "pyproject.toml"


@dataclass(frozen=True)
class Gating:
    """Rules, and the stored scorecards that some of them compare with, by path."""

    rules: tuple[Rule, ...] = ()
    stored: tuple[tuple[str, StoredScorecards], ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what the head of each results file records of the rules."""
        return tuple(dict.fromkeys(rule.text for rule in self.rules))

    def judged(self, bench: Bench, cards: Sequence[Scorecard]) -> tuple[Judged, ...]:
        """Judge what was declared; a partial run and one on dev judge nothing, and say so."""
        why_not = ""
        if bench.partial:
            why_not = "a partial run judges no gate"
        elif bench.settings.split == "dev":
            why_not = DEV
        return judge(
            self.rules,
            cards,
            self._find,
            lambda rule, card: is_late(bench, rule, card.grid.pack),
            why_not=why_not,
        )

    def _find(self, rule: Rule, pack: str) -> Measured | None:
        found = rule.stored_baseline
        if found is None:
            return None
        path, name = found
        return dict(self.stored)[path].find(pack, name, rule.candidate)


def read_gating(config: pytest.Config, bench: Bench) -> Gating:
    """Read the rules of pyproject.toml and of the command line; UsageProblem for bad ones.

    One of the command line, a name of pyproject.toml among them, must be about this run; others
    are not judged where it tries other candidates.
    """
    baseline = bench.settings.baseline
    declared = read_rules(root_of(config) / PYPROJECT, baseline)
    rules = list(declared)
    for text in config.getoption("modelbench_gate"):
        named = [rule for rule in declared if text in (rule.name, rule.name.rpartition(" (")[0])]
        if not named and ":" not in text:  # no rule has so few parts, so it is meant as a name
            names = ", ".join(dict.fromkeys(rule.name.partition(" (")[0] for rule in declared))
            raise UsageProblem(
                f"{OPTION} {text}: {PYPROJECT} declares no gate of that name, but "
                f"{names or 'none at all'}; a rule of its own is such as floor:NAME:0.6"
            )
        for rule in named or [parse_rule(text, baseline)]:
            _require(rule, bench)
            if rule not in declared:
                rules.append(rule)
    stored = {}
    for rule in rules:
        found = rule.stored_baseline
        if rule.interval == "tango" and bench.settings.repeats > 1:
            raise UsageProblem(
                f"gate {rule.name} ({rule.source}): Tango's interval is for one attempt of each "
                'case; leave interval out, or write interval = "newcombe"'
            )
        if found is None or rule.candidate not in bench.settings.models:
            continue
        path, name = found
        if path not in stored:
            stored[path] = StoredScorecards(root_of(config) / path, path)
        for pack in bench.packs:
            stored[path].find(pack.name, name, rule.candidate)  # refused now rather than at the end
    return Gating(tuple(rules), tuple(stored.items()))


def is_late(bench: Bench, rule: Rule, pack: str) -> bool:
    """Tell whether verdicts of a rule's candidate were there before the rule was.

    A run records its rules at its head: going on with a run under the same rules is not late.
    """
    declared = {header.run: header.gates for header in bench.index.headers if header.pack == pack}
    for planned in bench.plan.grid:
        cell = planned.cell
        if cell.pack != pack or cell.candidate != rule.candidate:
            continue
        if planned.action is Action.RUN:
            continue
        entry = bench.index.find(planned.stored)
        if entry is not None and rule.text not in declared.get(entry.run, ()):
            return True
    return False


def _require(rule: Rule, bench: Bench) -> None:
    """Raise UsageProblem where a rule of the command line cannot be judged in this run."""
    if bench.partial:
        return
    models = bench.settings.models
    needed = [rule.candidate]
    if rule.baseline and rule.stored_baseline is None:
        needed.append(rule.baseline)
    for name in needed:
        if name not in models:
            raise UsageProblem(
                f"{OPTION} {rule.name}: {name} is not in this run, which tries "
                f"{', '.join(models)}; add it to --models"
                + (f", or name a stored scorecard (FILE{STORED})" if name == rule.baseline else "")
            )
    packs = [pack.name for pack in bench.packs]
    if rule.pack and rule.pack not in packs:
        raise UsageProblem(
            f"{OPTION} {rule.name}: pack {rule.pack} is not in this run: {', '.join(packs)}"
        )
