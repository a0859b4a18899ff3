"""What a pack and its cases are, once read and found sound."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pytest_modelbench.packs.source import BenchmarkCase, Source
from pytest_modelbench.records import Limits, Trust
from pytest_modelbench.settings import REFERENCES

PACK_MANIFEST = "pack.toml"
CASE_MANIFEST = "case.toml"
DAMAGED_MANIFEST = "damaged.toml"
DAMAGED_SUFFIX = ".damaged"
AGENT = "agent"
BENCHMARK = "benchmark"
PROTOCOLS = (AGENT, BENCHMARK)
CHECK_MODES = ("separate", "in-process")


@dataclass(frozen=True)
class EnvironmentSpec:
    """``[environment]``: a virtual environment built once per lock, mounted at ``/env``.

    ``packages`` are pins (``name==version``), dependencies among them; installed without
    resolving, so the list is the lock.
    """

    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Damaged:
    """A damaged variant of the reference; it must lose exactly the checks that it names."""

    name: str
    folder: Path
    loses: tuple[str, ...]


@dataclass(frozen=True)
class CheckSpec:
    """``[check]``: ``mode`` is one of ``CHECK_MODES``; ``seconds`` bounds one grading.

    ``least_trust`` is the weakest trust with which a pass of the pack counts. ``judge`` names the
    candidate that its checks may ask. ``threshold`` is the reward from which on an attempt passes;
    None: every check must hold.
    """

    mode: str = "separate"
    seconds: float = 120.0
    least_trust: Trust = Trust.JUDGED
    versions: tuple[str, ...] = ()
    judge: str = ""
    threshold: float | None = None


@dataclass(frozen=True)
class Case:
    """One task.

    *Public*: title, prompt, seed, limits, tags. *Private*: hidden, reference, damaged. ``limits``
    are the pack's with the case's own over them. A case that a benchmark gives has no folder of
    its own: ``given`` says what it is and ``source`` who gives it.
    """

    pack: str
    id: str
    folder: Path
    manifest: Path
    title: str
    prompt: str
    limits: Limits
    seed: Path | None
    hidden: Path | None
    reference: Path | None
    damaged: tuple[Damaged, ...] = ()
    tags: tuple[str, ...] = ()
    group: str = ""
    protocol: str = "agent"
    check: CheckSpec = CheckSpec()
    environment: EnvironmentSpec = EnvironmentSpec()
    network: bool = False
    source: Source | None = None
    given: BenchmarkCase | None = None

    @property
    def unprovable(self) -> str:
        """Return why the case can be proven by no attempt, as is known before any; "" for none."""
        if self.protocol != AGENT or self.reference is not None:
            return ""
        return f"no reference; write {REFERENCES}/{self.pack}/{self.id}/"


@dataclass(frozen=True)
class Pack:
    """A folder with a ``pack.toml``: cases that share a protocol, limits and a check."""

    name: str
    folder: Path
    manifest: Path
    protocol: str
    cases: tuple[Case, ...]
    limits: Limits = Limits()
    check: CheckSpec = CheckSpec()
    environment: EnvironmentSpec = EnvironmentSpec()
    title: str = ""
    tags: tuple[str, ...] = field(default=())

    def case(self, case_id: str) -> Case:
        """Return a case by id; KeyError when there is none."""
        for case in self.cases:
            if case.id == case_id:
                return case
        raise KeyError(case_id)
