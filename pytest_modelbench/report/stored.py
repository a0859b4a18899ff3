"""Report on all that is stored: one scorecard a note and pack, candidate by candidate.

One candidate's results are in memory at a time, and only counts of them are kept. A large store is
counted by two processes, since reading JSON is nearly all of the work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pytest_modelbench.report.counts import CaseTally, Tally
from pytest_modelbench.report.forks import in_forks
from pytest_modelbench.report.grid import Grid, Options
from pytest_modelbench.report.scorecard import Scorecard, from_tallies, scorecard
from pytest_modelbench.report.tally import tally
from pytest_modelbench.store.entry import HasDigests
from pytest_modelbench.store.index import Damage, Index, RunHeader
from pytest_modelbench.store.layout import results_files, stored_candidates
from pytest_modelbench.store.pause import collector_paused
from pytest_modelbench.store.reader import read, read_headers
from pytest_modelbench.words import BUILT_IN

PARALLEL_BYTES = 8 * 2**20
"""Size of a pack's results from which two processes count them."""

OTHER_NOTE = "stored under another note"

IdentifyIn = Callable[[str, str, str], HasDigests | None]
"""Today's identity by pack, case and candidate; None where it is not known."""


@dataclass(frozen=True)
class Report:
    """All scorecards, by note and pack, and what of the files could not be used."""

    cards: tuple[Scorecard, ...]
    damages: tuple[Damage, ...]
    duplicates: int


def report_all(
    root: Path,
    *,
    packs: Collection[str] | None = None,
    candidates: Collection[str] | None = None,
    identify: IdentifyIn | None = None,
    uncertified: Mapping[str, Mapping[str, str]] | None = None,
    interval: str = "wilson",
    baseline: str | None = None,
) -> Report:
    """Report on the results below ``root``, of all packs and candidates or of some.

    A note's grids are what its runs declared: candidates that were to do the same are in one, and
    where candidates or a baseline are named, all are. A run without a header declares what it
    holds. ``uncertified`` is by pack and case. Without ``identify`` the newest stored version of
    each case and candidate is today's, and older ones are ``old``.
    """
    with collector_paused():
        return _report_all(
            root,
            packs,
            candidates,
            identify,
            Options(interval=interval, baseline=baseline),
            uncertified or {},
        )


def _report_all(
    root: Path,
    packs: Collection[str] | None,
    candidates: Collection[str] | None,
    identify: IdentifyIn | None,
    options: Options,
    uncertified: Mapping[str, Mapping[str, str]],
) -> Report:
    cards: list[Scorecard] = []
    damages: list[Damage] = []
    duplicates = 0
    folders: dict[str, list[str]] = {}
    for pack, candidate in stored_candidates(root):
        if (packs is None or pack in packs) and (candidates is None or candidate in candidates):
            folders.setdefault(pack, []).append(candidate)
    for pack, names in folders.items():
        today = _in_pack(identify, pack)
        found: dict[str, _Group] = {}
        strings: dict[str, str] = {}
        for header in read_headers(root, {pack}, names):
            found.setdefault(header.note, _Group()).headers.append(header)
        asked = candidates is not None or options.baseline is not None
        repeats = {
            name: {note: one.repeats(None if asked else [name]) for note, one in found.items()}
            for name in names
        }
        for counted in _count_all(root, pack, names, repeats):
            damages += counted.damages
            duplicates += counted.duplicates
            for note, one in counted.by_note.items():
                one.share(strings)
                found.setdefault(note, _Group()).tallies.append(one)
        mine = replace(options, uncertified=uncertified.get(pack, {}))
        for note, group in found.items():
            for grid in group.grids(pack, candidates, together=asked):
                tallies = [one for one in group.tallies if one.candidate in grid.candidates]
                cards.append(from_tallies(tallies, grid, today, mine, note))
    cards.sort(key=lambda card: (card.note, card.grid.pack))
    damages.sort(key=lambda damage: (damage.path, damage.line))
    return Report(tuple(cards), tuple(damages), duplicates)


def card_of(
    index: Index, pack: str, names: Sequence[str], identify: IdentifyIn | None = None
) -> Scorecard | None:
    """Return the scorecard of candidates over all that is stored of them; None for nothing.

    Whatever notes the runs had: a cell has one verdict, under whichever it was reached. Each case
    counts as often as the candidate was tried that was tried least, so all can be compared.
    ``index`` was read with details.
    """
    cells = {name: index.cells(pack, name) for name in names}
    if not all(cells.values()):
        return None
    cases = _unique(cell.case for found in cells.values() for cell in found)
    repeats = min(max(cell.repeat for cell in found) for found in cells.values())
    grid = Grid(pack, tuple(cases), tuple(names), repeats)
    return scorecard(index, grid, _in_pack(identify, pack))


@dataclass
class _Group:
    """What was declared and stored under one note."""

    headers: list[RunHeader] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)

    def repeats(self, names: Collection[str] | None = None) -> int:
        """Return how often each case is tried, by the runs of some candidates or of all."""
        mine = (one for one in self.headers if names is None or {*names} & {*one.candidates})
        return max((header.repeats for header in mine if header.candidates), default=1)

    def grids(self, pack: str, candidates: Collection[str] | None, *, together: bool) -> list[Grid]:
        """Return what the runs of this note declared: a grid for all that were to do the same.

        So a candidate that was tried on one case leaves the scorecard of others complete.
        ``together``: one grid for all, as somebody wants who names them. What certifies has files
        of its own and is in a grid only where a run asked for it.
        """
        declared = _unique(name for header in self._in_order() for name in header.candidates)
        wanted = [name for name in declared if candidates is None or name in candidates]
        alike: dict[object, list[str]] = {}
        for name in wanted:
            key = (frozenset(self._cases([name])), self.repeats([name]))
            alike.setdefault(None if together else key, []).append(name)
        grids = [
            Grid(
                pack,
                tuple(self._cases(None if together else names)),
                tuple(names),
                self.repeats(None if together else names),
            )
            for names in alike.values()
        ]
        return [grid for grid in grids if grid.cases]

    def _cases(self, names: Collection[str] | None) -> list[str]:
        """Return the cases of some candidates or of all: as declared, then what is stored."""
        headers = self._in_order()
        mine = [one for one in headers if names is None or {*names} & {*one.candidates}]
        cases = _unique(case for header in mine for case in header.cases)
        tallies = [
            one
            for one in self.tallies
            if names is None or (one.candidate in names and one.candidate not in BUILT_IN)
        ]
        return cases + sorted({case for one in tallies for case in one.cases} - set(cases))

    def _in_order(self) -> list[RunHeader]:
        return sorted(self.headers, key=lambda header: (header.started, header.run))


@dataclass(frozen=True)
class _Counted:
    """What one candidate's folder holds, as counts."""

    by_note: Mapping[str, Tally]
    damages: Sequence[Damage]
    duplicates: int


def _count_all(
    root: Path, pack: str, names: Sequence[str], repeats: Mapping[str, Mapping[str, int]]
) -> Iterable[_Counted]:
    """Count each candidate up to its ``repeats``: by name, then by note."""
    sizes = {
        name: sum(path.stat().st_size for path in results_files(root, {pack}, {name}))
        for name in names
    }
    count = partial(_count, root, pack, repeats)
    forks = sum(sizes.values()) >= PARALLEL_BYTES and len(os.sched_getaffinity(0)) > 1
    # A thread could hold a lock that nobody ever gives back in a forked process.
    if forks and threading.active_count() == 1:
        return in_forks(count, sorted(names, key=sizes.__getitem__, reverse=True))
    return map(count, names)


def _count(root: Path, pack: str, repeats: Mapping[str, Mapping[str, int]], name: str) -> _Counted:
    with collector_paused():
        index = read(root, {pack}, {name}, details=True)
        by_note = tally(index, pack, name, repeats=repeats[name], by_note=True)
        _fill(by_note)
    return _Counted(by_note, index.damages, index.duplicates)


def _fill(by_note: Mapping[str, Tally]) -> None:
    """Say of a cell that has nothing under a note that another note has it."""
    for note, one in by_note.items():
        for other_note, other in by_note.items():
            if other_note == note:
                continue
            for case, versions in other.cases.items():
                for counted in versions:
                    mine = one.at(case, counted.version)
                    if mine is None:
                        mine = CaseTally(counted.version)
                        one.add(case, mine)
                    told = mine.waiting = dict(mine.waiting)
                    for number in counted.repeats - mine.repeats:
                        told.setdefault(number, OTHER_NOTE)


def _in_pack(
    identify: IdentifyIn | None, pack: str
) -> Callable[[str, str], HasDigests | None] | None:
    if identify is None:
        return None
    return lambda case, candidate: identify(pack, case, candidate)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
