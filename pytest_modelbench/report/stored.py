"""Report on all that is stored: one scorecard a note and pack, candidate by candidate.

One candidate's results are in memory at a time, and only counts of them are kept. A large store is
counted by two processes, since reading JSON is nearly all of the work.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pytest_modelbench.report.counts import Tally
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
    those that are named are in one of what all of them have. A cell has one verdict, whatever the
    note of the run that measured it. A run without a header declares what it holds.

    ``uncertified`` is by pack and case. Without ``identify`` the newest stored version of each
    case and candidate is today's, and older ones are ``old``.
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
        headers: dict[str, list[RunHeader]] = {}
        strings: dict[str, str] = {}
        for header in read_headers(root, {pack}, names):
            headers.setdefault(header.note, []).append(header)
        asked = {note: _asked(found, candidates) for note, found in headers.items()}
        named = candidates is not None
        grids = [
            (note, grid)
            for note, by_name in asked.items()
            for grid in _grids(pack, by_name, options.baseline, named=named)
        ]
        tallies: list[list[Tally]] = [[] for _ in grids]
        for counted in _count_all(root, pack, names, [grid for _, grid in grids]):
            damages += counted.damages
            duplicates += counted.duplicates
            for number, one in counted.by_grid.items():
                one.share(strings)
                tallies[number].append(one)
        mine = replace(options, uncertified=uncertified.get(pack, {}))
        for (note, grid), counts in zip(grids, tallies, strict=True):
            card = from_tallies(counts, grid, today, mine, note)
            others = {
                name: (len(mine.cases), mine.repeats)
                for name, mine in asked[note].items()
                if (set(mine.cases), mine.repeats) != (set(grid.cases), grid.repeats)
            }
            cards.append(replace(card, stored=True, others=others))
    cards.sort(key=lambda card: (card.note, card.grid.pack))
    damages.sort(key=lambda damage: (damage.path, damage.line))
    return Report(tuple(cards), tuple(damages), duplicates)


def card_of(
    index: Index, pack: str, names: Sequence[str], identify: IdentifyIn | None = None
) -> Scorecard | None:
    """Return the scorecard of candidates over all that is stored of them; None for nothing.

    Whatever notes the runs had: a cell has one verdict, under whichever it was reached. The grid is
    of the cases and repeats that runs declared for all of them; of one without a header that can be
    read, what is stored. ``index`` was read with details.
    """
    asked = dict(_asked((head for head in index.headers if head.pack == pack), names))
    for name in names:
        cells = index.cells(pack, name)
        if not cells:
            return None
        if name not in asked:
            cases = tuple(dict.fromkeys(cell.case for cell in cells))
            asked[name] = _Asked(cases, max(cell.repeat for cell in cells))
    grids = _grids(pack, asked, None, named=True)
    if len(grids) != 1:  # they have no case in common
        return None
    return replace(scorecard(index, grids[0], _in_pack(identify, pack)), stored=True)


class _Asked(NamedTuple):
    """What a note's runs declared for one candidate."""

    cases: tuple[str, ...]
    repeats: int


def _asked(
    headers: Iterable[RunHeader], candidates: Collection[str] | None
) -> Mapping[str, _Asked]:
    """Return what was declared for each candidate: the largest grid in it.

    To try one case more often makes no grid of all cases that nobody asked for.
    """
    found: dict[str, dict[str, int]] = {}
    for header in sorted(headers, key=lambda header: (header.started, header.run)):
        for name in header.candidates:
            if header.cases and (candidates is None or name in candidates):
                mine = found.setdefault(name, {})
                for case in header.cases:
                    mine[case] = max(mine.get(case, 0), header.repeats)
    asked = {}
    for name, mine in found.items():
        depths = sorted(set(mine.values()))
        repeats = max(depths, key=lambda depth: depth * sum(n >= depth for n in mine.values()))
        asked[name] = _Asked(tuple(case for case, n in mine.items() if n >= repeats), repeats)
    return asked


def _grids(
    pack: str, asked: Mapping[str, _Asked], baseline: str | None, *, named: bool
) -> list[Grid]:
    """Return a grid for all that were to do the same.

    So a candidate that was tried on one case leaves the scorecard of others complete. Who names
    candidates wants them compared: they share one grid, of the cases and the repeats that all of
    them have. So do a baseline and all that were to do each of its cases. What certifies has files
    of its own and is in a grid only where a run asked for it.
    """
    measure = asked.get(baseline or "")
    together = [
        name
        for name, mine in asked.items()
        if named or (measure and name not in BUILT_IN and {*measure.cases} <= {*mine.cases})
    ]
    shared = set.intersection(*({*asked[name].cases} for name in together)) if together else set()
    alike: dict[object, list[str]] = {}
    for name, mine in asked.items():
        key = None if shared and name in together else (frozenset(mine.cases), mine.repeats)
        alike.setdefault(key, []).append(name)
    return [
        Grid(
            pack,
            tuple(case for case in asked[names[0]].cases if key is not None or case in shared),
            tuple(names),
            min(asked[name].repeats for name in names),
        )
        for key, names in alike.items()
    ]


@dataclass(frozen=True)
class _Counted:
    """What one candidate's folder holds, as counts."""

    by_grid: Mapping[int, Tally]
    """By the place of the grid that it is in."""
    damages: Sequence[Damage]
    duplicates: int


def _count_all(
    root: Path, pack: str, names: Sequence[str], grids: Sequence[Grid]
) -> Iterable[_Counted]:
    sizes = {
        name: sum(path.stat().st_size for path in results_files(root, {pack}, {name}))
        for name in names
    }
    count = partial(_count, root, pack, grids)
    forks = sum(sizes.values()) >= PARALLEL_BYTES and len(os.sched_getaffinity(0)) > 1
    # A thread could hold a lock that nobody ever gives back in a forked process.
    if forks and threading.active_count() == 1:
        return in_forks(count, sorted(names, key=sizes.__getitem__, reverse=True))
    return map(count, names)


def _count(root: Path, pack: str, grids: Sequence[Grid], name: str) -> _Counted:
    """Count one candidate on each grid that it is in."""
    with collector_paused():
        index = read(root, {pack}, {name}, details=True)
        by_grid = {
            number: tally(index, pack, name, grid)
            for number, grid in enumerate(grids)
            if name in grid.candidates
        }
    return _Counted(by_grid, index.damages, index.duplicates)


def _in_pack(
    identify: IdentifyIn | None, pack: str
) -> Callable[[str, str], HasDigests | None] | None:
    if identify is None:
        return None
    return lambda case, candidate: identify(pack, case, candidate)
