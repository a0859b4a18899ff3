"""The protocol ``agent``: a candidate works in a work tree, and the tree is judged."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue

from pytest_modelbench.candidates.builtin import play
from pytest_modelbench.candidates.clock import End
from pytest_modelbench.candidates.function import FUNCTION
from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.candidates.loop import DETAIL_CHARS, Work, work
from pytest_modelbench.candidates.prompts import unknown_tool
from pytest_modelbench.candidates.tools import (
    ACTIONS,
    COMMAND_SECONDS,
    OUTPUT_CHARS,
    Tools,
    Workbench,
    schema,
)
from pytest_modelbench.checks.inprocess import observe_in_process
from pytest_modelbench.checks.observation import IN_PROCESS, Observation
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import Session
from pytest_modelbench.packs.model import AGENT, Case
from pytest_modelbench.packs.solutions import solution_files
from pytest_modelbench.protocols.functions import FunctionCandidate
from pytest_modelbench.protocols.judging import attempt_grant, seated
from pytest_modelbench.protocols.programs import work_by_program
from pytest_modelbench.protocols.protocol import Harvested, Services
from pytest_modelbench.protocols.tree import BoxedTree
from pytest_modelbench.records import Candidate, Role, Trust, Verdict
from pytest_modelbench.worlds.harvest import harvest, read_folder
from pytest_modelbench.worlds.removal import remove
from pytest_modelbench.worlds.repository import seed_repository
from pytest_modelbench.worlds.world import open_world

NEVER_PASSES = ("escalated", "other-model")
"""Ends after which a verdict is no pass, whatever the checks say: docs/design/agent.md."""


TOO_LITTLE_TRUST = "too-little-trust"
"""The reason of a verdict that would be a pass, and is easier to forge than its pack lets."""


@dataclass(frozen=True)
class AgentProtocol:
    """Seed repository and work tree, an agent in a box, checks apart from it."""

    name: str = AGENT

    def work(
        self,
        case: Case,
        candidate: Candidate,
        repeat: int,
        attempt_id: str,
        services: Services,
        journal: Journal | None = None,
    ) -> Harvested:
        """Let a candidate work in a tree made of the case's seed, and take what it leaves."""
        journal = Journal() if journal is None else journal
        seed = seed_repository(case.seed, services.cache)
        environment = services.environment(case.environment)
        with open_world(seed, services.run, services.box.owner) as world:
            tree = BoxedTree(world, services.box, world.spec(environment))
            if candidate.command is not None:
                done = work_by_program(
                    case, candidate, repeat, attempt_id, services, world, tree.spec, journal
                )
            elif candidate.agent == FUNCTION:
                done = _by_function(case, candidate, services, tree, journal)
            elif candidate.calls_model:
                done = _by_model(case, candidate, repeat, attempt_id, services, tree, journal)
            else:
                play(candidate, case, tree)
                done = Work()
            taken = harvest(world.tree)
        return Harvested(
            harvest=taken,
            end=done.end,
            detail=done.detail,
            counts=dict(journal.counts),
            usage=dict(journal.usage),
            held=journal.held,
            served_model=journal.served_model,
            transcript=journal.transcript,
        )

    def observe(
        self, case: Case, harvested: Harvested, services: Services, journal: Journal | None = None
    ) -> Observation:
        """Run the case's hidden checks on the harvest, laid in a fresh folder."""
        if case.hidden is None:
            raise Fault("grader", f"case {case.id} has no hidden checks", stage="grade")
        folder = services.run / f"grade-{secrets.token_hex(8)}"
        try:
            if case.check.mode == IN_PROCESS:
                return observe_in_process(
                    services.box,
                    case.hidden,
                    _solved(case),
                    harvested.harvest,
                    services.environment(case.environment),
                    services.run,
                    case.check.seconds,
                )
            harvested.harvest.lay(folder, services.box.owner)
            with seated(case, services, Journal() if journal is None else journal) as seat:
                return services.grader.observe(
                    case.hidden,
                    folder,
                    services.environment(case.environment),
                    case.check.seconds,
                    secrets.randbits(31),
                    seat,
                )
        except OSError as error:
            raise Fault("grader", f"the harvest cannot be laid: {error}", stage="grade") from error
        finally:
            remove(folder)

    def verify(self, case: Case, harvested: Harvested, observation: Observation) -> Verdict:
        """Return the checks' verdict; where it is no pass, with the reason that the work ended."""
        verdict = verify(observation)
        if harvested.end in NEVER_PASSES:
            return verdict.model_copy(
                update={"passed": False, "reward": 0.0, "reason": harvested.end}
            )
        if verdict.passed and Trust.least([verdict.trust, case.check.least_trust]) is not (
            case.check.least_trust
        ):
            return verdict.model_copy(
                update={"passed": False, "reward": 0.0, "reason": TOO_LITTLE_TRUST}
            )
        if verdict.passed or not harvested.end:
            return verdict
        return verdict.model_copy(update={"reason": harvested.end})


def _solved(case: Case) -> dict[str, bytes]:
    """Return the files of a case's reference over its seed."""
    files = {} if case.seed is None else read_folder(case.seed)
    if case.reference is not None:
        files |= {place: file.read_bytes() for place, file in solution_files(case).items()}
    return files


def _by_function(
    case: Case, candidate: Candidate, services: Services, tree: BoxedTree, journal: Journal
) -> Work:
    """Let a function work in the tree's own box, by its own hands or by the agent's tools."""
    limits = case.limits.within(candidate.limits)
    function = FunctionCandidate(candidate, limits, services.box, tree.spec, journal)
    tools = Tools(
        tree,
        output_chars=limits.output_chars or OUTPUT_CHARS,
        command_seconds=limits.command_seconds or COMMAND_SECONDS,
    )

    counts = journal.counts
    counts.update(invented_tools=0, failed_commands=0, failed_calls=0)

    def act(name: str, arguments: dict[str, JsonValue]) -> tuple[str, bool]:
        if name not in ACTIONS:
            counts["invented_tools"] += 1
            return unknown_tool(name, ACTIONS), False
        result = tools.call(name, arguments, function.clock.left)
        if not result.worked:
            counts["failed_commands" if result.command else "failed_calls"] += 1
        return result.text, result.worked

    messages: list[JsonValue] = [{"role": "user", "content": case.prompt}]
    offered = [schema(name) for name in ACTIONS]
    try:
        answer = function.solve(case.prompt, messages, offered, act)
    except End as end:
        return Work(end.reason, end.detail)
    return Work(detail=(answer or "")[:DETAIL_CHARS])


def _by_model(
    case: Case,
    candidate: Candidate,
    repeat: int,
    attempt_id: str,
    services: Services,
    bench: Workbench,
    journal: Journal,
) -> Work:
    """Let a model work through the agent loop; the journal has what it used, even after a fault."""
    if services.gateway is None:
        raise Fault("gateway", f"candidate {candidate.name} calls a model and no gateway runs")
    limits = case.limits.within(candidate.limits)
    journal.grant = attempt_grant(case, services, limits)
    session = services.gateway.grant(
        attempt_id, candidate.name, Role.CANDIDATE, case.id, repeat, limits, journal.grant
    )
    try:
        done = work(case.prompt, candidate, limits, session, bench, journal.counts)
    except BaseException:
        with suppress(Fault):  # the first trouble is the one to tell
            _close(session, journal)
        raise
    _close(session, journal)
    return done


def _close(session: Session, journal: Journal) -> None:
    ended = session.close()
    journal.usage[Role.CANDIDATE] = ended.usage
    journal.held = ended.held_seconds
    journal.served_model = ended.served_model
    journal.transcript = ended.transcript
