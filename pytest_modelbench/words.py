"""The words that records are made of: what a cell is, how its attempt ended, what trust there is.

They are apart from the records since reading and counting a store needs them, and not pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

SCHEMA = 1
"""Version of a results line. A reader refuses a version it does not know, by name."""

REFERENCE = "reference"
SEED = "seed"
BUILT_IN = (REFERENCE, SEED)
_VARIANT = f"{REFERENCE}+"


class Cell(NamedTuple):
    """pack x case x candidate x repeat. A damaged variant has the candidate ``reference+NAME``."""

    pack: str
    case: str
    candidate: str
    repeat: int

    @property
    def id(self) -> str:
        """Return the id inside the brackets of the pytest item: ``case:candidate:repeat``."""
        return f"{self.case}:{self.candidate}:{self.repeat}"

    @property
    def variant(self) -> str | None:
        """Return the name of the damaged variant that this cell tries, None for other cells."""
        if not self.candidate.startswith(_VARIANT):
            return None
        return self.candidate.removeprefix(_VARIANT)

    @property
    def certifies(self) -> bool:
        """Tell whether this cell belongs to a certificate rather than to a candidate's score."""
        return self.candidate in BUILT_IN or self.candidate.startswith(_VARIANT)


class Outcome(StrEnum):
    """How an attempt ended."""

    PASSED = "passed"
    UNSOLVED = "unsolved"
    FAULT = "fault"


class Stage(StrEnum):
    """Where a fault happened: before the harvest was kept, or after it."""

    WORK = "work"
    GRADE = "grade"


class Trust(StrEnum):
    """How hard a check is to forge, strongest first."""

    TRUSTED = "trusted"
    EVIDENT = "evident"
    JUDGED = "judged"

    @staticmethod
    def least(levels: Iterable[Trust]) -> Trust:
        """Return the weakest of some levels; ``trusted`` for none."""
        order = list(Trust)
        return max(levels, key=order.index, default=Trust.TRUSTED)


class Role(StrEnum):
    """Who a model call is made for."""

    CANDIDATE = "candidate"
    DRIVER = "driver"
    JUDGE = "judge"
