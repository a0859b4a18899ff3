"""What a kind of task brings: how a candidate meets a case, what is observed, what is verified."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.packs.model import Case, EnvironmentSpec
from pytest_modelbench.protocols.versions import versions_of
from pytest_modelbench.records import Candidate, Role, Usage, Verdict
from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.harvest import Harvest


@dataclass(frozen=True)
class Services:
    """What an attempt needs of its worker.

    ``run`` is the run's private folder, where worlds are made; ``cache`` keeps seed repositories
    from run to run. ``environment`` returns a pack's virtual environment, built when it is not
    there yet, None for a pack without one. ``gateway`` is None where no cell calls a model.
    ``candidates`` are those that the gateway knows, judges among them.
    """

    box: Box
    grader: Grader
    gateway: GatewayClient | None
    run: Path
    cache: Path
    environment: Callable[[EnvironmentSpec], Path | None]
    candidates: Mapping[str, Candidate] = field(default_factory=dict)

    def judge(self, case: Case) -> Candidate:
        """Return the candidate that judges a case; Fault where this run does not know it."""
        judge = self.candidates.get(case.check.judge)
        if judge is None:
            raise Fault("judge", f"no candidate {case.check.judge!r} in this run", stage="grade")
        return judge


@dataclass(frozen=True)
class Harvested:
    """What is left of a candidate's work: all that observing and verifying may know of it.

    ``end`` is '' for an ordinary end, else a short stable word; ``detail`` says more of it. Both
    are kept with the record: a regrade needs the former.
    """

    harvest: Harvest
    end: str = ""
    detail: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[Role, Usage] = field(default_factory=dict)
    held: float = 0.0
    served_model: str = ""
    transcript: bytes = b""


class Protocol(typing.Protocol):
    """A kind of task; what of it enters identities stands in ``protocols.versions``."""

    @property
    def name(self) -> str: ...

    def work(
        self,
        case: Case,
        candidate: Candidate,
        repeat: int,
        attempt_id: str,
        services: Services,
        journal: Journal | None = None,
    ) -> Harvested:
        """Let a candidate work on a case in a world of its own, and take what it leaves.

        When this returns or raises, nothing that the candidate started is alive and the world is
        gone. ``journal`` is filled as the work goes on, so that a fault leaves what was used.
        """
        ...

    def observe(
        self, case: Case, harvested: Harvested, services: Services, journal: Journal | None = None
    ) -> Observation:
        """Return what the case's checks see of a harvest; Fault of stage grade for our troubles.

        ``journal`` is that of the work; what a judge used goes there, also after a fault.
        """
        ...

    def verify(self, case: Case, harvested: Harvested, observation: Observation) -> Verdict:
        """Return the verdict. Pure: the same evidence gives the same verdict."""
        ...


def protocol_named(name: str) -> Protocol:
    """Return a protocol by the name that a pack gives it; UsageProblem where there is none."""
    from pytest_modelbench.protocols.agent import AgentProtocol
    from pytest_modelbench.protocols.benchmark import BenchmarkProtocol

    known: tuple[Protocol, ...] = (AgentProtocol(), BenchmarkProtocol())
    versions_of(name)
    return next(protocol for protocol in known if protocol.name == name)
