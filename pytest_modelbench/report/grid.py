"""What a run declared that it would measure, and how it is to be counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pytest_modelbench.words import Cell


@dataclass(frozen=True)
class Grid:
    """What was declared: cases of one pack x candidates x repeats."""

    pack: str
    cases: tuple[str, ...]
    candidates: tuple[str, ...]
    repeats: int = 1


@dataclass(frozen=True)
class Options:
    """How to count. ``uncertified``: case to reason; ``not_run``: cell to the reason, if known."""

    interval: str = "wilson"
    alpha: float = 0.05
    baseline: str | None = None
    uncertified: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[Cell, str] = field(default_factory=dict)
    looks: int = 1
    """Which look at the grid this is; ``resized``: its declared size changed after one."""
    resized: bool = False
    midp: bool = False
    """Decide pairs of one repeat by the mid-p of McNemar's test."""
    compare: bool = True
    """False for a partial run: it compares nothing."""
    scores: Callable[[Mapping[str, float]], Mapping[str, float]] | None = None
    """Scores of a benchmark's own, made of the share of passes by case."""
    guesses: Mapping[str, float] = field(default_factory=dict)
    """What guessing would get, by the way to guess."""


DEFAULTS = Options()
