"""Which cases of a pack a run tries: a fixed split, and samples that nest.

Every rule goes by a case's own text and a hash of it, so that it is the same in every process, in
every order of files, and for the cases that were there before a pack grew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pytest_modelbench.packs.model import Case

DEV, EVAL = "dev", "eval"
SPLITS = (DEV, EVAL)

_DEV_BELOW = 2**32 // 3


@dataclass(frozen=True)
class Draw:
    """How cases are chosen. ``size`` None: all of them; with ``per``, so many of each stratum.

    ``seed`` is the sample seed. ``avoid_seen`` asks for cases that no stored run has tried.
    """

    split: str = ""
    size: int | None = None
    seed: int = 0
    per: str = ""
    avoid_seen: bool = False

    @property
    def everything(self) -> bool:
        """Tell whether nothing is left out."""
        return not self.split and self.size is None and not self.avoid_seen

    def grows_from(self, other: Draw) -> bool:
        """Tell whether two draws differ in their size at most, so that the smaller is in both."""
        mine, theirs = (self.split, self.seed, self.per), (other.split, other.seed, other.per)
        return mine == theirs and self.avoid_seen == other.avoid_seen

    def in_words(self) -> str:
        """Return what was asked for, as a header prints it."""
        parts = [f"split {self.split}"] if self.split else []
        if self.size is not None:
            each = f" of each {self.per}" if self.per else ""
            parts.append(f"sample of {self.size}{each}, sample seed {self.seed}")
        if self.avoid_seen:
            parts.append("without cases that were seen")
        return ", ".join(parts)


def draw_cases(cases: Sequence[Case], draw: Draw, seen: Collection[str] = ()) -> tuple[Case, ...]:
    """Return the chosen cases of one pack, in the pack's order.

    ``seen`` are ids of cases that stored runs have tried; with ``draw.avoid_seen`` these and all
    cases of their groups are left out before the sample is drawn. A larger sample of the same seed
    contains the smaller one.
    """
    pool = [case for case in cases if not draw.split or split_of(case) == draw.split]
    if draw.avoid_seen:
        groups = {group_key(case) for case in cases if case.id in seen}
        pool = [case for case in pool if group_key(case) not in groups]
    if draw.size is None:
        return tuple(pool)
    chosen: set[str] = set()
    for members in _strata(pool, draw.per).values():
        ranked = sorted(members, key=lambda case: _rank(case, draw.seed))
        chosen.update(case.id for case in ranked[: draw.size])
    return tuple(case for case in pool if case.id in chosen)


def split_of(case: Case) -> str:
    """Return ``dev`` for a fixed third of all groups of cases, and ``eval`` for the others.

    The first 8 hex digits of the SHA-256 of the split key, below floor(2^32 / 3): dev.
    """
    return DEV if int(_digest(group_key(case))[:8], 16) < _DEV_BELOW else EVAL


def group_key(case: Case) -> str:
    """Return the split key: the case's ``group``, which related cases share, else pack/case."""
    return case.group or f"{case.pack}/{case.id}"


def stratum_of(case: Case, tag: str) -> str:
    """Return the stratum of a case: what follows ``tag:`` or ``tag=`` in its tags.

    A bare ``tag`` makes a stratum of its own; cases without any are one, named by an empty text.
    """
    for own in case.tags:
        if own == tag:
            return own
        if own.startswith((f"{tag}:", f"{tag}=")):
            return own[len(tag) + 1 :]
    return ""


def _strata(pool: Iterable[Case], tag: str) -> dict[str, list[Case]]:
    strata: dict[str, list[Case]] = {}
    for case in pool:
        strata.setdefault(stratum_of(case, tag) if tag else "", []).append(case)
    return strata


def _rank(case: Case, seed: int) -> tuple[str, str]:
    return _digest(f"{seed}/{case.pack}/{case.id}"), case.id


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
