"""What a candidate is compared with by case: one of the same run, or a stored scorecard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.report.rows import CaseFigures
from pytest_modelbench.report.scorecard import Scorecard


@dataclass(frozen=True)
class Measured:
    """One candidate's figures by case. ``origin`` names the file of a stored scorecard.

    ``versions`` are digests of each case's task and check: figures of another version are of
    another case.
    """

    name: str
    repeats: int
    figures: Mapping[str, CaseFigures]
    versions: Mapping[str, str]
    origin: str = ""

    def lacks(self, card: Scorecard) -> str:
        """Return why these figures cannot be paired with all cases of a scorecard; else empty."""
        missing = [
            case
            for case in card.cases
            if (found := self.figures.get(case)) is None or found.verdicts < self.repeats
        ]
        if missing:
            return f"{len(missing)} of {len(card.cases)} cases lack verdicts of {self.shown}"
        changed = [
            case
            for case in card.cases
            if case in card.versions and self.versions.get(case) != card.versions[case]
        ]
        if changed:
            return (
                f"{len(changed)} of {len(card.cases)} cases changed since {self.shown} was measured"
            )
        return ""

    @property
    def shown(self) -> str:
        """Return its name, with the file that it is from."""
        return f"{self.name} of {self.origin}" if self.origin else self.name


def of_run(card: Scorecard, name: str) -> Measured | None:
    """Return a candidate of a scorecard; None where it is not in it."""
    for row in card.rows:
        if row.candidate == name:
            return Measured(name, card.grid.repeats, row.figures, card.versions)
    return None


class StoredScorecards:
    """A file of ``--modelbench-report FILE.json`` or of ``modelbench report --format json``."""

    def __init__(self, path: Path, shown: str = "") -> None:
        self._shown = shown or path.name
        try:
            found = parse(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else f"not JSON: {error}"
            raise UsageProblem(
                f"{path}: the baseline's scorecard cannot be read ({why}); write one with "
                "--modelbench-report FILE.json"
            ) from error
        cards = found.get("cards", [found]) if isinstance(found, dict) else found
        self._path = path
        self._cards: list[Any] = cards  # Any: JSON, checked where it is used

    def find(self, pack: str, name: str, candidate: str) -> Measured | None:
        """Return a candidate's figures on a pack; None where the file has none of the pack.

        ``name`` empty: the one called like ``candidate``, or the only one there is.

        Raises:
            UsageProblem: the file is no scorecard, is interim, or has no such candidate.
        """
        try:
            found = [card for card in self._cards if card["pack"] == pack]
            wanted = name or candidate
            if len(found) > 1:  # a report of stored runs has one for each note and size of grid
                named = [c for c in found if wanted in [row["name"] for row in c["candidates"]]]
                found = named or found
            if len(found) > 1:
                notes = ", ".join(repr(card["note"]) for card in found)
                raise UsageProblem(
                    f"{self._path}: it has {len(found)} scorecards of {pack} that could be meant, "
                    f"of the notes {notes}; a baseline's file holds one: write it with "
                    "--modelbench-report FILE.json"
                )
            if found:
                return self._measured(found[0], name, candidate)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageProblem(
                f"{self._path}: this is no scorecard that can be read ({error!r}); write one with "
                "--modelbench-report FILE.json"
            ) from error
        return None

    # Any: JSON as above
    def _measured(self, card: Mapping[str, Any], name: str, candidate: str) -> Measured:
        rows = {row["name"]: row for row in card["candidates"]}
        wanted = name or (candidate if candidate in rows or len(rows) > 1 else next(iter(rows)))
        if wanted not in rows:
            raise UsageProblem(
                f"{self._path}: no candidate {wanted!r} in it, but {', '.join(rows)}; name one "
                f"with {self._shown}#CANDIDATE"
            )
        row = rows[wanted]
        figures = {
            case: CaseFigures(
                passes=int(counts["passed"]),
                verdicts=int(counts["verdicts"]),
                rewards=tuple(map(float, row["figures"][case]["rewards"])),
                list_usd=row["figures"][case]["list_usd"],
                seconds=row["figures"][case]["seconds"],
            )
            for case, counts in row["by_case"].items()
        }
        grid = card["grid"]
        return Measured(wanted, int(grid["repeats"]), figures, dict(grid["versions"]), self._shown)
