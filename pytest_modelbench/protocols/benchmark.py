"""The protocol ``benchmark``: hosts what a benchmark brings, for any candidate that answers."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Benchmark
from pytest_modelbench.benchmarks.loops import Call, Loop, Met
from pytest_modelbench.benchmarks.tools import Tool, run_tool
from pytest_modelbench.candidates.function import FUNCTION
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import Session
from pytest_modelbench.packs.model import BENCHMARK, Case
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.parsing import parse
from pytest_modelbench.protocols.functions import FunctionCandidate
from pytest_modelbench.protocols.protocol import Harvested, Services
from pytest_modelbench.records import REFERENCE, SEED, Candidate, Limits, Role, Trust, Verdict
from pytest_modelbench.worlds.box import TEMPORARY, BoxSpec
from pytest_modelbench.worlds.harvest import FILE_MODE, Harvest

HARVEST = "harvest.json"
TOO_LITTLE_TRUST = "too-little-trust"
"""The reason of a verdict that would be a pass, were it as hard to forge as its pack asks."""
NEVER_PASSES = ("other-model",)
"""Ends after which a verdict is no pass: a reply that another model gave is not the candidate's."""


@dataclass(frozen=True)
class BenchmarkProtocol:
    """A benchmark's world, its tools and loop; what is left is plain data, and judged as such."""

    name: str = BENCHMARK

    def work(
        self,
        case: Case,
        candidate: Candidate,
        repeat: int,
        attempt_id: str,
        services: Services,
        journal: Journal | None = None,
    ) -> Harvested:
        """Let a candidate meet a case, in a world of its own, and take what is left."""
        journal = Journal() if journal is None else journal
        benchmark, given = _of(case)
        benchmark.box = services.box
        folder = services.run / f"world-{secrets.token_hex(8)}"
        folder.mkdir()
        try:
            world = benchmark.setup(given.public, folder)
            tools = benchmark.tools(world)
            limits = case.limits.within(candidate.limits)
            if candidate.agent in (REFERENCE, SEED):
                met = play(benchmark, given, candidate, tools)
            elif candidate.agent == FUNCTION:
                said = _messages(benchmark, given, candidate)
                spec = BoxSpec(workdir=TEMPORARY)
                function = FunctionCandidate(candidate, limits, services.box, spec, journal)
                solver = partial(function.solve, given.prompt)
                tuning = Tuning.of(candidate)
                loop = Loop(said, tools, None, limits, tuning, journal.counts, solver, world)
                met = benchmark.drive(loop)
            else:
                said = _messages(benchmark, given, candidate)
                key = (attempt_id, candidate.name, Role.CANDIDATE, case.id, repeat, limits)
                with _session(services, key, journal) as session:
                    tuning = Tuning.of(candidate)
                    counts = journal.counts
                    loop = Loop(said, tools, session, limits, tuning, counts, world=world)
                    met = benchmark.drive(loop)
            left = benchmark.harvest(world, met)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        data = json.dumps(left, ensure_ascii=True).encode("ascii")
        return Harvested(
            harvest=Harvest({HARVEST: data}, {HARVEST: FILE_MODE}),
            end=met.end,
            detail=met.detail,
            counts=dict(journal.counts),
            usage=dict(journal.usage),
            held=journal.held,
            served_model=journal.served_model,
            transcript=journal.transcript,
        )

    def observe(
        self, case: Case, harvested: Harvested, services: Services, journal: Journal | None = None
    ) -> Observation:
        """Return what the benchmark sees of the harvest."""
        benchmark, given = _of(case)
        benchmark.box = services.box
        try:
            left: JsonValue = parse(harvested.harvest.files[HARVEST])
        except (KeyError, ValueError) as error:
            raise Fault(
                "grader", f"the harvest holds no {HARVEST}: {error}", stage="grade"
            ) from error
        return Observation(kind=BENCHMARK, ended=True, exit=0, data=benchmark.observe(given, left))

    def verify(self, case: Case, harvested: Harvested, observation: Observation) -> Verdict:
        """Return the benchmark's verdict; where it is no pass, with the reason that work ended."""
        benchmark, given = _of(case)
        verdict = _by_threshold(
            benchmark.verify(given.private, observation.data), case.check.threshold
        )
        if harvested.end in NEVER_PASSES:
            return verdict.model_copy(
                update={"passed": False, "reward": 0.0, "reason": harvested.end}
            )
        least = case.check.least_trust
        if verdict.passed and Trust.least([verdict.trust, least]) is not least:
            return verdict.model_copy(
                update={"passed": False, "reward": 0.0, "reason": TOO_LITTLE_TRUST}
            )
        if verdict.passed or not harvested.end:
            return verdict
        return verdict.model_copy(update={"reason": harvested.end})


BELOW_THRESHOLD = "below-threshold"

_ROUNDING = 1e-9
"""A reward of 3 tenths is a threshold of 0.3, however they were added up."""


def _by_threshold(verdict: Verdict, threshold: float | None) -> Verdict:
    """Return a verdict whose reward says whether it passed, where the pack has a threshold."""
    if threshold is None:
        return verdict
    passed = verdict.reward >= threshold - _ROUNDING
    reason = "" if passed else verdict.reason or BELOW_THRESHOLD
    return verdict.model_copy(update={"passed": passed, "reason": reason})


W = TypeVar("W")
World = object
"""Of what type a world is, only its benchmark knows."""


def _of(case: Case) -> tuple[Benchmark[World], BenchmarkCase]:
    source, given = case.source, case.given
    if source is None or given is None or not isinstance(source.benchmark, Benchmark):
        raise Fault("protocol", f"{case.pack} is no pack of a benchmark", permanent=True)
    return source.benchmark, given


def play(
    benchmark: Benchmark[W], given: BenchmarkCase, candidate: Candidate, tools: Sequence[Tool]
) -> Met:
    """Do what a built-in candidate does: nothing, or what the reference or a damaged one says.

    Fault where the benchmark has none.
    """
    if candidate.agent == SEED:
        return Met()
    variant = candidate.name.partition("+")[2]
    answer = benchmark.reference(given, variant)
    if answer is None:
        what = f"the damaged answer {variant!r}" if variant else "a reference"
        raise Fault("no-reference", f"case {given.id} has not got {what}", permanent=True)
    known = {tool.name: tool for tool in tools}
    for name, arguments in answer.calls:
        if name in known:
            run_tool(known[name], arguments)
    return Met(True, answer.text, tuple(Call(name, args) for name, args in answer.calls))


def _messages(
    benchmark: Benchmark[World], given: BenchmarkCase, candidate: Candidate
) -> list[JsonValue]:
    """Return what a candidate is told; Fault where it is of no use to a benchmark."""
    if candidate.agent == "command":
        what = f"agent {candidate.agent!r} works in a tree of files, and a benchmark has none"
        raise Fault("agent", f"candidate {candidate.name}: {what}", permanent=True)
    try:
        benchmark.check_options(candidate.options)
    except ValueError as error:
        what = f"[candidates.{candidate.name}.options]: {error}"
        raise Fault("options", what, permanent=True) from error
    return list(benchmark.messages(given, candidate.options))


@contextmanager
def _session(
    services: Services, key: tuple[str, str, Role, str, int, Limits], journal: Journal
) -> Iterator[Session]:
    """Open a session with the gateway; when it ends, the journal has what was used, faults too."""
    if services.gateway is None:
        raise Fault("gateway", f"candidate {key[1]} calls a model and no gateway runs")
    session = services.gateway.grant(*key)
    try:
        yield session
    except BaseException:
        with suppress(Fault):  # the first trouble is the one to tell
            _close(session, journal)
        raise
    _close(session, journal)


def _close(session: Session, journal: Journal) -> None:
    ended = session.close()
    journal.usage[Role.CANDIDATE] = ended.usage
    journal.held = ended.held_seconds
    journal.served_model = ended.served_model
    journal.transcript = ended.transcript
