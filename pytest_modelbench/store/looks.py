"""Looks: each showing of verdicts that nobody had seen, in ``results/looks.jsonl``.

A look counts when verdicts are shown for results that no earlier look has shown. Only test runs
write here; a replay, a repeated report and a partial run add nothing, and nor does judging again
what comes to the same verdict. Which level a comparison is decided at follows from what was shown
before (``stats.look_alpha``).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field, ValidationError

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Record
from pytest_modelbench.stats import Stage, look_alpha
from pytest_modelbench.store.layout import open_results, prepare

SCHEMA = 1
LOOKS = "looks.jsonl"

EVAL_READINGS = 5
"""After so many readings of an evaluation split a fresh sample is due."""


class Look(Record):
    """One line: what a run showed of one pack. ``shown`` are the ids that no look had before."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    kind: str = Field(default="look", pattern="^look$")
    run: str
    at: str = Field(description="UTC, ISO 8601 with milliseconds and Z")
    pack: str
    cases: tuple[str, ...]
    candidates: tuple[str, ...]
    repeats: int = Field(ge=1)
    split: str = ""
    number: int = Field(ge=1)
    complete: bool
    resized: bool = False
    verdicts: int
    level: float
    shown: tuple[str, ...]

    @property
    def size(self) -> str:
        """Return a word for the declared size: which cases, how often."""
        return size_of(self.cases, self.repeats)


@dataclass(frozen=True)
class Showing:
    """What is about to be shown of one pack: the declared grid, and the id of each verdict.

    ``verdicts`` maps ids to candidates: that of the oldest line by which the attempt has this
    verdict, so that judging again is new only where it changes something. ``before`` maps the other
    ids under which an earlier look may have shown the same attempts. ``cells`` is the number that
    the grid declares, without what is excluded.
    """

    pack: str
    cases: tuple[str, ...]
    candidates: tuple[str, ...]
    repeats: int
    cells: int
    verdicts: Mapping[str, str]
    split: str = ""
    before: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Tell whether every declared cell has a verdict."""
        return 0 < self.cells == len(self.verdicts)


@dataclass(frozen=True)
class Reading:
    """Which look a showing is.

    ``number`` counts from 1, this one included. ``resized``: the declared size changed after
    verdicts were shown. ``new`` are the ids that no look had shown: none, and it is no new look.
    ``eval_readings`` counts the readings of these cases as an evaluation split, this one included.
    """

    number: int
    resized: bool
    complete: bool
    new: tuple[str, ...]
    split: str = ""
    eval_readings: int = 0
    alpha: float = 0.05

    @property
    def stage(self) -> Stage:
        """Return where the grid stands."""
        if not self.complete:
            return Stage.INTERIM
        return Stage.EXTENDED if self.resized else Stage.DECLARED

    @property
    def level(self) -> float:
        """Return the level at which comparisons are decided."""
        return self.level_of(self.alpha)

    def level_of(self, alpha: float) -> float:
        """Return the level of this look where ``alpha`` is that of the complete grid."""
        return look_alpha(self.stage, self.number, alpha)

    @property
    def fresh_sample_due(self) -> bool:
        """Tell whether these cases were read too often as an evaluation split."""
        return self.eval_readings >= EVAL_READINGS


class Looks:
    """All looks of a results folder."""

    def __init__(self, looks: Iterable[Look] = (), damages: Iterable[str] = ()) -> None:
        self.looks = tuple(sorted(looks, key=lambda look: (look.at, look.run)))
        self.damages = tuple(damages)

    @classmethod
    def read(cls, root: Path) -> Looks:
        """Read the looks of a results folder; a line that cannot be used is told, not hidden.

        Raises:
            StoreProblem: a line has a schema version that this program does not know.
        """
        path = root / LOOKS
        if not path.exists():
            return cls()
        with open_results(path) as file:
            data = file.read()
        looks: dict[tuple[str, str], Look] = {}
        damages = []
        for number, line in enumerate(data.splitlines(), 1):
            if not line.strip():
                continue
            try:
                raw = parse(line)
                version = raw["schema"]
                if version == SCHEMA:
                    look = Look.model_validate(raw)
                    looks.setdefault((look.run, look.pack), look)
            except (ValueError, ValidationError, KeyError, TypeError) as error:
                damages.append(f"{path}:{number}: no look can be read ({type(error).__name__})")
                continue
            if version != SCHEMA:
                raise StoreProblem(
                    f"schema version {version!r} is not known, this program reads {SCHEMA}",
                    path=path,
                    line=number,
                    remedy="upgrade pytest-modelbench, or move the file out of the results",
                )
        return cls(looks.values(), damages)

    def reading(self, showing: Showing, alpha: float = 0.05) -> Reading:
        """Say which look a showing is, before it is shown."""
        related = [look for look in self.looks if self._is_related(look, showing)]
        seen = {name for look in self.looks if look.pack == showing.pack for name in look.shown}
        new = tuple(sorted(name for name in showing.verdicts if name not in seen))
        size = size_of(showing.cases, showing.repeats)
        again = [
            look
            for look in related
            if look.size == size
            and look.complete == showing.complete
            and set(showing.candidates) <= set(look.candidates)
        ]
        readings = sum(
            look.pack == showing.pack
            and look.split == "eval"
            and not set(look.cases).isdisjoint(showing.cases)
            for look in self.looks
        )
        if again and not new:  # the same once more decides what it decided
            number, resized = again[-1].number, again[-1].resized
        else:
            number = len(related) + bool(new) or 1
            resized = any(look.size != size for look in related)
        return Reading(
            number=number,
            resized=resized,
            complete=showing.complete,
            new=new,
            split=showing.split,
            eval_readings=readings + bool(new) if showing.split == "eval" else 0,
            alpha=alpha,
        )

    def _is_related(self, look: Look, showing: Showing) -> bool:
        """Tell whether a look showed a comparison, or a rate alone, that this one shows again."""
        if look.pack != showing.pack:
            return False
        if look.split != showing.split and "dev" in (look.split, showing.split):
            return False  # dev is there to be tuned on: it decides nothing, so it spends nothing
        shared = set(look.candidates) & set(showing.candidates)
        if len(shared) < min(2, len(showing.candidates)):
            return False
        return any(
            (showing.verdicts.get(name) or showing.before.get(name)) in shared
            for name in look.shown
        )


def append_look(root: Path, run: str, at: str, showing: Showing, reading: Reading) -> Look | None:
    """Store a look; None, and nothing is written, where nothing new was shown."""
    if not reading.new:
        return None
    look = Look(
        run=run,
        at=at,
        pack=showing.pack,
        cases=showing.cases,
        candidates=showing.candidates,
        repeats=showing.repeats,
        split=showing.split,
        number=reading.number,
        complete=reading.complete,
        resized=reading.resized,
        verdicts=len(showing.verdicts),
        level=reading.level,
        shown=reading.new,
    )
    data = look.model_dump(mode="json", by_alias=True)
    line = json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"
    path = root / LOOKS
    prepare(root)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            # A killed run may have left half a line: this one starts on its own.
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, b"\n" * torn + line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreProblem(
            f"the look was not stored: {error.strerror}",
            path=path,
            remedy="make room or rights: a look that is not counted makes later verdicts too sure",
        ) from error
    return look


def size_of(cases: Iterable[str], repeats: int) -> str:
    """Return a digest of a declared size: which cases, in any order, and how often each."""
    text = json.dumps([sorted(cases), repeats])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
