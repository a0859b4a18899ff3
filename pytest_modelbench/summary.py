"""The report at a run's end, built from the store alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_modelbench.bench import Bench, selected_cases
from pytest_modelbench.records import Cell, Identity
from pytest_modelbench.report.grid import Grid, Options
from pytest_modelbench.report.scorecard import Scorecard, scorecard
from pytest_modelbench.report.terminal import render
from pytest_modelbench.store.reader import read


def scorecards(
    bench: Bench, uncertified: Mapping[str, str], not_run: Mapping[Cell, str]
) -> list[Scorecard]:
    """Count this run's grid, pack by pack; stored results of today's identity count with it.

    ``uncertified`` is by ``pack/case``.
    """
    settings = bench.settings
    packs = [pack for pack in bench.packs if selected_cases(settings, pack)]
    index = read(
        Path(settings.results),
        packs=[pack.name for pack in packs],
        candidates=settings.models,
        details=True,
    )
    today = {(p.cell.pack, p.cell.case, p.cell.candidate): p.identity for p in bench.plan.grid}
    cards = []
    for pack in packs:
        cases = tuple(case.id for case in selected_cases(settings, pack))
        options = Options(
            interval=settings.interval,
            uncertified={
                case: uncertified[f"{pack.name}/{case}"]
                for case in cases
                if f"{pack.name}/{case}" in uncertified
            },
            not_run={cell: why for cell, why in not_run.items() if cell.pack == pack.name},
        )
        grid = Grid(pack.name, cases, settings.models, settings.repeats)

        def identify(case: str, candidate: str, pack_name: str = pack.name) -> Identity | None:
            return today.get((pack_name, case, candidate))

        cards.append(scorecard(index, grid, identify, options))
    return cards


def report_lines(cards: list[Scorecard], width: int, *, utf8: bool) -> list[str]:
    """Return the report of some packs as lines that fit a terminal."""
    return [line for card in cards for line in ("", *render(card, width, utf8))]
