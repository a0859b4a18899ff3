"""What a benchmark brings: cases, world, tools, a way to meet them, and the rules.

Extend `Benchmark`, say in ``pack.toml`` where it is, and the plugin does the rest: certificates,
worlds, limits, evidence, regrading, statistics. `docs/write-a-benchmark.md` has an example.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import JsonValue

from pytest_modelbench.benchmarks.loops import Loop, Met, one_answer, tool_loop
from pytest_modelbench.benchmarks.tools import Tool, ToolRefused
from pytest_modelbench.packs.source import BenchmarkCase, Private
from pytest_modelbench.records import Check, Trust, Verdict
from pytest_modelbench.worlds.box import Box

__all__ = [
    "Answer",
    "Benchmark",
    "BenchmarkCase",
    "Check",
    "Met",
    "Private",
    "Tool",
    "ToolRefused",
    "Verdict",
    "verdict",
]

Public = Mapping[str, JsonValue]
W = TypeVar("W")


@dataclass(frozen=True)
class Answer:
    """What a reference does: calls of tools, in order, and then a text."""

    text: str | None = None
    calls: tuple[tuple[str, Mapping[str, JsonValue]], ...] = ()


class Benchmark(ABC, Generic[W]):
    """A benchmark. ``W`` is the type of its worlds; one that needs none makes them of anything.

    ``version`` enters the identity of each task, ``rules_version`` that of each check. Whatever
    raises in `setup`, `tools`, `harvest`, `observe` or `verify` is a fault of ours, and no verdict.
    """

    version: str = "1"
    rules_version: str = "1"

    box: Box | None = None
    """Where code that is not ours is to run; there in `setup` and after it, and in `observe`."""

    def __init__(self, folder: Path, options: Public) -> None:
        """Take the pack's folder and what ``[benchmark]`` says; refuse an unknown option.

        Raise a UsageProblem, or KeyError, TypeError, ValueError or OSError, for what is wrong.
        """
        if options:
            raise ValueError(f"it has no option {', '.join(map(repr, options))}")

    @abstractmethod
    def cases(self) -> Iterable[BenchmarkCase]:
        """Return the cases, what is public and what is private of each kept apart."""

    def messages(self, case: BenchmarkCase, options: Public) -> Sequence[JsonValue]:
        """Return what a candidate is told first, as messages of OpenAI's API.

        ``options`` are the candidate's own, part of its identity. Look at nothing private.
        """
        return [{"role": "user", "content": case.prompt}]

    def check_options(self, options: Public) -> None:
        """Raise ValueError for options of a candidate that mean nothing here."""
        if options:
            raise ValueError(f"it has no option {', '.join(map(repr, options))} for a candidate")

    @abstractmethod
    def setup(self, public: Public, folder: Path) -> W:
        """Make the world of one attempt; ``folder`` is an empty one of its own, gone afterwards."""

    def tools(self, world: W) -> Sequence[Tool]:
        """Return the tools by which a candidate acts in a world."""
        return ()

    def drive(self, loop: Loop) -> Met:
        """Let a candidate meet the case: by default a loop of calls, or one answer without tools.

        `loops.one_answer` and `loops.tool_loop` are supplied.
        """
        return tool_loop(loop) if loop.tools else one_answer(loop)

    @abstractmethod
    def harvest(self, world: W, met: Met) -> JsonValue:
        """Return what is left of the candidate's work, as plain data: all that may judge it."""

    def observe(self, case: BenchmarkCase, harvest: JsonValue) -> JsonValue:
        """Return what is seen of a harvest; run here what has to be run to see it."""
        return harvest

    @abstractmethod
    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Return the verdict, by `verdict`. Pure: the same data gives the same verdict."""

    def scores(
        self, cases: Sequence[BenchmarkCase], shares: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Return scores of this benchmark's own, by name, each in [0, 1]; by default none.

        ``shares`` is the share of passes of each case that counts, by id. A report shows them
        beside the pass rate, of a candidate that has a verdict on every case; nothing is gated.
        """
        return {}

    def guesses(self, cases: Sequence[BenchmarkCase]) -> Mapping[str, float]:
        """Return what guessing would get, by the way to guess, each in [0, 1]; by default none."""
        return {}

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Return the answer that passes, or a damaged one of `BenchmarkCase.damaged`.

        They certify the case, together with doing nothing, which must not pass.
        """
        return None


def verdict(
    checks: Mapping[str, bool] | Sequence[Check],
    *,
    reward: float | None = None,
    reason: str = "wrong",
    trust: Trust = Trust.TRUSTED,
    measures: Mapping[str, float] | None = None,
) -> Verdict:
    """Return the verdict of named checks: passed where all hold, and there is one.

    ``reward`` is by default 1 or 0; ``reason`` is a short stable word for one that is no pass.
    ``measures`` are figures that a report shows the means of, and nothing is decided by.
    """
    if isinstance(checks, Mapping):
        checks = [Check(name=name, passed=held, trust=trust) for name, held in checks.items()]
    passed = bool(checks) and all(check.passed for check in checks)
    return Verdict(
        passed=passed,
        reward=float(passed) if reward is None else reward,
        checks=tuple(checks),
        reason="" if passed else reason,
        trust=Trust.least(check.trust for check in checks),
        measures=dict(measures or {}),
    )
