"""Whether repeats of a case left the very same work: then they were cached, or add little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_modelbench.words import Cell


def same_work(
    attempts: Iterable[tuple[Cell, int | None]], repeats: int
) -> Mapping[str, tuple[int, int]]:
    """Return for each candidate (cases whose repeats all left the same work, cases compared).

    Work is told by ``Detail.work``; a case counts when all repeats kept some.
    """
    found: dict[tuple[str, str], list[int | None]] = {}
    for cell, work in attempts:
        found.setdefault((cell.candidate, cell.case), []).append(work)
    alike: dict[str, tuple[int, int]] = {}
    for (candidate, _), works in found.items():
        if len(works) < repeats or None in works:
            continue
        same, cases = alike.get(candidate, (0, 0))
        alike[candidate] = (same + (len(set(works)) == 1), cases + 1)
    return alike
