"""Whether repeats of a case left the very same work: then they were cached, or add little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_modelbench.records import AttemptRecord, Cell


def same_work(
    attempts: Iterable[tuple[Cell, AttemptRecord]], repeats: int
) -> Mapping[str, tuple[int, int]]:
    """Return for each candidate (cases whose repeats all left the same work, cases compared).

    Work is the harvest, or the transcript where there is none; a case counts when all repeats kept
    one of them.
    """
    found: dict[tuple[str, str], list[object]] = {}
    for cell, record in attempts:
        found.setdefault((cell.candidate, cell.case), []).append(_work(record))
    alike: dict[str, tuple[int, int]] = {}
    for (candidate, _), works in found.items():
        if len(works) < repeats or None in works:
            continue
        same, cases = alike.get(candidate, (0, 0))
        alike[candidate] = (same + (len(set(works)) == 1), cases + 1)
    return alike


def _work(record: AttemptRecord) -> object:
    if record.harvest is not None:
        return frozenset(record.harvest.items())
    return record.evidence.get("harvest") or record.evidence.get("transcript")
