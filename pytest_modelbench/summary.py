"""The report at a run's end, built from the store alone: scorecards, look, gates, files."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EISDIR
from pathlib import Path
from typing import TypedDict

import pytest

from pytest_modelbench.bench import Bench, selected_cases
from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.gating import Gating
from pytest_modelbench.packs.model import Pack
from pytest_modelbench.records import BUILT_IN, Cell, Identity
from pytest_modelbench.report.costs import summed
from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.decisions import (
    Shown,
    gate_data,
    gate_lines,
    markdown_gates,
    markdown_remarks,
    reading_data,
    remark_lines,
)
from pytest_modelbench.report.gates import Judged, exit_status
from pytest_modelbench.report.grid import Grid, Options
from pytest_modelbench.report.markdown import markdown
from pytest_modelbench.report.sameness import same_work
from pytest_modelbench.report.scorecard import Scorecard, scorecard
from pytest_modelbench.report.terminal import render
from pytest_modelbench.settings import utc_now
from pytest_modelbench.stats import format_interval, format_percent
from pytest_modelbench.store.entry import Entry
from pytest_modelbench.store.index import Index, Kind, Standing
from pytest_modelbench.store.looks import Looks, Showing, append_look
from pytest_modelbench.store.reader import is_all, read

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Summary:
    """What a run came to, pack by pack. Stored results of today's identity count with its own."""

    bench: Bench
    cards: tuple[Scorecard, ...]
    shown: tuple[Shown, ...]
    showings: tuple[Showing, ...]
    judged: tuple[Judged, ...]
    damages: tuple[str, ...]

    @classmethod
    def of(
        cls,
        bench: Bench,
        gating: Gating,
        uncertified: Mapping[str, str],
        not_run: Mapping[Cell, str],
        chosen: Collection[str],
    ) -> Summary:
        """Count this run's grid. ``uncertified`` is by ``pack/case``.

        ``chosen`` are the packs of which -k, -m or --lf have left a cell: a part of a run is about
        no others.
        """
        settings = bench.settings
        packs = [
            pack
            for pack in bench.packs
            if selected_cases(settings, pack) and (pack.name in chosen or not bench.partial)
        ]
        results = Path(settings.results)
        index = bench.index
        if not is_all(index, results, [p.name for p in (*bench.packs, *bench.lent)]):
            names = [pack.name for pack in packs]
            index = read(results, packs=names, candidates=settings.models, details=True)
        looks = Looks.read(results)
        found = [_counted(bench, pack, index, looks, uncertified, not_run) for pack in packs]
        cards = tuple(card for card, _, _ in found)
        return cls(
            bench,
            cards,
            shown=tuple(shown for _, shown, _ in found),
            showings=tuple(showing for _, _, showing in found),
            judged=gating.judged(bench, cards),
            damages=looks.damages,
        )

    @property
    def gate_status(self) -> int:
        """Return the exit status that the gates ask for; 0 where all pass or none was judged."""
        return exit_status(self.judged)

    def lines(self, width: int, *, utf8: bool) -> list[str]:
        """Return the report as lines that fit a terminal."""
        lines = []
        for card, shown in zip(self.cards, self.shown, strict=True):
            lines += ["", *render(card, width, utf8), *remark_lines(card, shown, width, utf8=utf8)]
        return [*lines, *gate_lines(self.judged, width, utf8=utf8), *self.damages]

    def keep(self, config: pytest.Config) -> None:
        """Store the look and write the files that were asked for.

        Raises:
            StoreProblem: the look was not stored, or a file was not written.
        """
        files: list[str] = config.getoption("modelbench_report")
        if files or self.judged or not config.getoption("no_summary", False):
            for shown, showing in zip(self.shown, self.showings, strict=True):
                if shown.reading is not None:
                    settings = self.bench.settings
                    append_look(
                        Path(settings.results), settings.run, utc_now(), showing, shown.reading
                    )
        for name in files:
            path = config.invocation_params.dir / name
            form = self.markdown if path.suffix == ".md" else self.json
            aside = _aside(path)
            with _written(path, "--modelbench-report names another file"):
                aside.write_text(form(), encoding="utf-8")
                aside.replace(path)
        if step := os.environ.get(STEP_SUMMARY):
            with (
                _written(Path(step), f"{STEP_SUMMARY} names it"),
                Path(step).open("a", encoding="utf-8") as file,
            ):
                file.write(self.markdown())

    def markdown(self) -> str:
        """Return the report as Markdown."""
        parts = [
            "\n".join(filter(None, (markdown(card), markdown_remarks(card, shown))))
            for card, shown in zip(self.cards, self.shown, strict=True)
        ]
        return "\n".join(filter(None, (*parts, markdown_gates(self.judged))))

    def json(self) -> str:
        """Return the report as JSON: unrounded numbers, with the method that gave each."""
        settings = self.bench.settings
        data = {
            "schema": 1,
            "run": settings.run,
            "started": settings.started,
            "note": settings.note,
            "partial": self.bench.partial,
            "cards": [
                as_data(card) | {"note": settings.note} | reading_data(shown)
                for card, shown in zip(self.cards, self.shown, strict=True)
            ],
            "gates": [gate_data(one) for one in self.judged],
            "gate_status": self.gate_status,
        }
        return json.dumps(data, indent=2, allow_nan=False) + "\n"

    def properties(self) -> Iterator[tuple[str, str]]:
        """Yield names and values for the JUnit file's test suite."""
        for card, shown in zip(self.cards, self.shown, strict=True):
            pack = card.grid.pack
            yield f"modelbench.status.{pack}", _status(card, shown)
            if shown.reading is not None and card.verdicts:
                yield f"modelbench.look.{pack}", str(shown.reading.number)
            for row in card.rows:
                if row.rate is not None:
                    told = f"{row.passes}/{row.verdicts} {format_percent(row.rate, 1)}% "
                    told += format_interval(row.interval, 1)
                    yield f"modelbench.rate.{pack}.{row.candidate}", told
            for pair in card.pairs:
                yield f"modelbench.pair.{pack}.{pair.a} - {pair.b}", pair.in_words
        for one in self.judged:
            pack = f".{one.pack}" if one.pack else ""
            yield f"modelbench.gate{pack}.{one.rule.name}", one.line


def require_writable(config: pytest.Config) -> None:
    """Raise UsageError for a report's file that could not be written once all has run."""
    for name in config.getoption("modelbench_report"):
        path = config.invocation_params.dir / name
        try:
            if path.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            aside = _aside(path)
            aside.touch()
            aside.unlink()
        except OSError as error:
            why = error.strerror if path.parent.is_dir() else f"there is no folder {path.parent}"
            raise pytest.UsageError(f"--modelbench-report {name}: {why}; name another") from error


def _aside(path: Path) -> Path:
    """Return where a file is written before it takes the place of the one of an earlier run."""
    return path.with_name(f"{path.name}.new")


def _status(card: Scorecard, shown: Shown) -> str:
    if shown.reading is None:
        return "partial"
    return "scorecard" if card.complete else "interim"


def _counted(
    bench: Bench,
    pack: Pack,
    index: Index,
    looks: Looks,
    uncertified: Mapping[str, str],
    not_run: Mapping[Cell, str],
) -> tuple[Scorecard, Shown, Showing]:
    """Count one pack; what was shown of it before says at which level pairs are decided."""
    settings = bench.settings
    selected = selected_cases(settings, pack)
    cases = tuple(case.id for case in selected)
    excluded = {
        case: uncertified[f"{pack.name}/{case}"]
        for case in cases
        if f"{pack.name}/{case}" in uncertified
    }
    # Of the whole grid: with --lf the plan has some of its cells only.
    today = {
        (case.id, candidate.name): bench.identify(case, candidate)
        for case in selected
        for candidate in bench.candidates
    }
    measured = tuple(name for name in settings.models if name not in BUILT_IN)
    grid = Grid(pack.name, cases, settings.models, settings.repeats)
    standings = _standings(index, grid, measured, set(excluded), today)
    shown_verdicts, before = _to_show(index, standings)
    showing = Showing(
        pack.name,
        cases,
        measured,
        settings.repeats,
        cells=(len(cases) - len(excluded)) * len(measured) * settings.repeats,
        verdicts=shown_verdicts,
        split=settings.split,
        before=before,
    )
    reading = None if bench.partial or not measured else looks.reading(showing)
    options = Options(
        interval=settings.interval,
        baseline=settings.baseline or None,
        uncertified=excluded,
        not_run={cell: why for cell, why in not_run.items() if cell.pack == pack.name},
        looks=reading.number if reading is not None else 1,
        resized=reading is not None and reading.resized,
        midp=settings.midp,
        compare=not bench.partial,
        **_of_benchmark(pack, [case for case in cases if case not in excluded]),
    )

    def identify(case: str, candidate: str) -> Identity | None:
        return today.get((case, candidate))

    card = scorecard(index, grid, identify, options)
    alike = {}
    if settings.repeats > 1:
        attempts = (
            (cell, standing.attempt.detail.work)
            for cell, standing in standings.items()
            if standing.kind is Kind.VERDICT
            and standing.attempt is not None
            and standing.attempt.detail is not None
        )
        alike = dict(same_work(attempts, settings.repeats))
    reported = summed(
        (cell.candidate, standing.attempt.detail.spent)
        for cell, standing in standings.items()
        if standing.attempt is not None and standing.attempt.detail is not None
    )
    shown = Shown(reading, settings.draw, alike, reported, pack.check.threshold)
    return card, shown, showing


def _to_show(
    index: Index, standings: Mapping[Cell, Standing]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the candidate by the id of each verdict, and by every other id of its attempt.

    An attempt that was judged again and has the verdict that it had keeps the first one's id.
    """
    regrades: dict[str, list[Entry]] = {}
    for line in index.entries():
        if line.grades:
            regrades.setdefault(line.grades, []).append(line)
    verdicts: dict[str, str] = {}
    before: dict[str, str] = {}
    for cell, (kind, entry, attempt, _) in standings.items():
        if kind is not Kind.VERDICT or entry is None or attempt is None:
            continue
        if attempt is entry and attempt.id not in regrades:  # nearly all are so
            verdicts[attempt.id] = cell.candidate
            continue
        again = sorted(regrades.get(attempt.id, ()), key=lambda line: (line.started, line.id))
        lines = [attempt, *again]
        said = (entry.outcome, entry.reward)
        first = next(line for line in lines if (line.outcome, line.reward) == said)
        verdicts[first.id] = cell.candidate
        before.update((line.id, cell.candidate) for line in lines if line is not first)
    return verdicts, before


@contextmanager
def _written(path: Path, remedy: str) -> Iterator[None]:
    """Turn the failure to write a file into a StoreProblem that names it."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise StoreProblem(what, path=path, remedy=remedy) from error


class _Own(TypedDict, total=False):
    """What a benchmark itself says of its scores, as `Options` takes it."""

    scores: Callable[[Mapping[str, float]], Mapping[str, float]]
    guesses: Mapping[str, float]


def _of_benchmark(pack: Pack, counted: Sequence[str]) -> _Own:
    """Return what the benchmark of a pack adds to its report; nothing where it raises."""
    source = next((case.source for case in pack.cases), None)
    if source is None:
        return {}
    from pytest_modelbench.benchmarks.benchmark import Benchmark

    benchmark = source.benchmark
    if not isinstance(benchmark, Benchmark):
        return {}
    wanted = set(counted)
    given = [case.given for case in pack.cases if case.id in wanted and case.given is not None]

    def safely(ask: Callable[[], Mapping[str, float]]) -> Mapping[str, float]:
        try:
            return ask()
        except Exception as error:  # a report is not lost for what others' code raises
            warnings.warn(f"{pack.name}: no scores of its own: {error!r}", stacklevel=1)
            return {}

    return {
        "scores": lambda shares: safely(lambda: benchmark.scores(given, shares)),
        "guesses": safely(lambda: benchmark.guesses(given)),
    }


def _standings(
    index: Index,
    grid: Grid,
    measured: tuple[str, ...],
    excluded: set[str],
    today: Mapping[tuple[str, str], Identity],
) -> dict[Cell, Standing]:
    return {
        cell: index.standing(cell, identity)
        for (case, candidate), identity in today.items()
        if candidate in measured and case not in excluded
        for repeat in range(1, grid.repeats + 1)
        for cell in [Cell(grid.pack, case, candidate, repeat)]
    }
