"""What a worker needs for attempts, made when its first cell asks for it."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path

from pytest_modelbench.attempt import Task, attempt, not_begun, stored_harvest
from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.engines import Engine
from pytest_modelbench.engines.inline import InlineEngine
from pytest_modelbench.errors import Fault, StoreProblem
from pytest_modelbench.gateway.address import Address
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.packs.model import Case, Pack
from pytest_modelbench.packs.reading import read_pack
from pytest_modelbench.plan import Action, Planned
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import AttemptRecord, Candidate, Cell
from pytest_modelbench.settings import Settings
from pytest_modelbench.store.evidence import Evidence
from pytest_modelbench.store.index import Kind
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.unfinished import Unfinished
from pytest_modelbench.store.writer import RunInfo
from pytest_modelbench.today import built_in
from pytest_modelbench.worlds.environment import cache_folder, environment
from pytest_modelbench.worlds.harvest import Harvest
from pytest_modelbench.worlds.levels import choose
from pytest_modelbench.worlds.runs import open_run, runs_root


class Workplace:
    """Box, grader, gateway's client, packs: one of each a worker, until ``close``."""

    def __init__(
        self,
        settings: Settings,
        folders: Mapping[str, str],
        candidates: Mapping[str, Candidate],
        gateway: Address | None,
        run: RunInfo,
    ) -> None:
        self._settings = settings
        self._folders = {name: Path(folder) for folder, name in folders.items()}
        self._candidates = candidates
        self._gateway = gateway
        self._run = run
        self._packs: dict[str, Pack] = {}
        self._open = ExitStack()
        self._evidence = Evidence(Path(settings.results))
        self._unfinished = Unfinished(Path(settings.results))
        self._patience: float | None = None
        self._on_wait: Callable[[str, float], None] = lambda why, until: None
        self._engine: Engine = InlineEngine(self._attempt)

    @cached_property
    def _services(self) -> Services:
        box = choose(self._settings.isolation)
        run = self._open.enter_context(open_run(runs_root(), self._settings.run))
        grader = Grader(box, scratch=run)
        self._open.callback(grader.close)
        return Services(
            box=box,
            grader=grader,
            gateway=GatewayClient(self._gateway.socket_path, self._gateway.secret)
            if self._gateway is not None
            else None,
            run=run,
            cache=cache_folder("seeds"),
            environment=environment,
            candidates=self._candidates,
        )

    def attempt(
        self,
        planned: Planned,
        number: int,
        patience: float | None = None,
        on_wait: Callable[[str, float], None] = lambda why, until: None,
    ) -> AttemptRecord:
        """Try a planned cell; ``number`` counts its tries in this run, from 1.

        ``patience`` bounds its wait for a usage window, past which the record is a fault ``held``;
        ``on_wait`` is told of each wait.
        """
        self._patience, self._on_wait = patience, on_wait
        cell = planned.cell
        task = Task(
            cell=cell,
            case=self.case(cell),
            candidate=self.candidate(cell),
            identity=planned.identity,
            run=self._settings.run,
            tries=number,
            series=planned.series,
            note=self._settings.note,
            regrades=self._kept(planned, number),
        )
        return self._engine.submit(task).result()

    def _kept(self, planned: Planned, number: int) -> AttemptRecord | None:
        """Return the attempt whose harvest is to be judged, None where the candidate has to work.

        The one that the plan names, or the try of this run whose grading ended in a fault: what a
        candidate has done is never asked of it again.
        """
        regrade = planned.action is Action.REGRADE
        if not regrade and number == 1:
            return None
        cell = planned.cell
        index = read(Path(self._settings.results), [cell.pack], [cell.candidate])
        if regrade:
            entry = index.find(planned.stored)
            if entry is None:
                raise RuntimeError(f"attempt {planned.stored} is planned and not in the store")
            return index.record(entry)
        standing = index.standing(cell, planned.identity)
        if standing.kind is not Kind.FAULT_GRADE or standing.attempt is None:
            return None
        record = index.record(standing.attempt)
        return record if self._evidence.has_harvest(record) else None

    def case(self, cell: Cell) -> Case:
        """Return the case of a cell."""
        return self._pack(cell.pack).case(cell.case)

    def candidate(self, cell: Cell) -> Candidate:
        """Return the candidate of a cell."""
        return self._candidates.get(cell.candidate) or built_in(cell.candidate)

    def harvest(self, record: AttemptRecord) -> Harvest:
        """Return what an attempt left; StoreProblem where it is no longer here."""
        return stored_harvest(self._work(record), self._evidence)

    def transcript(self, record: AttemptRecord) -> bytes:
        """Return an attempt's transcript as JSON lines, no bytes where no model was called."""
        name = self._work(record).evidence.get("transcript")
        return gzip.decompress(self._evidence.get(name)) if name is not None else b""

    def _work(self, record: AttemptRecord) -> AttemptRecord:
        """Return the attempt whose harvest a record judges: itself, save for a regrade."""
        if not record.grades:
            return record
        index = read(Path(self._settings.results), packs=[record.pack])
        entry = index.find(record.grades)
        if entry is None:
            raise StoreProblem(
                f"the attempt {record.grades} that {record.id} grades is not here",
                path=Path(self._settings.results),
                remedy="bring back the results file that held it",
            )
        return index.record(entry)

    def _attempt(self, task: Task) -> AttemptRecord:
        paid = task.candidate.calls_model and task.regrades is None
        if not paid or self._services.gateway is None:
            return attempt(task, self._services, self._evidence)
        kept = partial(self._unfinished.keep, run=self._run)
        try:
            begun = self._services.gateway.begin(task.candidate.name, self._patience, self._on_wait)
        except Fault as fault:
            return not_begun(task, fault)
        with begun:
            return attempt(task, self._services, self._evidence, kept)

    def stored(self, record: AttemptRecord) -> None:
        """Note that a record is stored; called by the worker that stored it."""
        self._unfinished.drop(record.id)

    def close(self) -> None:
        """End what was started."""
        self._open.close()

    def _pack(self, name: str) -> Pack:
        if name not in self._packs:
            self._packs[name] = read_pack(self._folders[name], Path(self._settings.references))
        return self._packs[name]
