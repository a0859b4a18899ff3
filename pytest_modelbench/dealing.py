"""Which item runs when: what is stored first, then the plan's order, dealt to workers or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pytest_modelbench.bench import Bench
from pytest_modelbench.board import Board
from pytest_modelbench.certification import Certification
from pytest_modelbench.collection import cell_of, is_pack_item
from pytest_modelbench.heartbeat import Heartbeat, Teller, plan_lines, step_of, write_line
from pytest_modelbench.plan import TODO, Action
from pytest_modelbench.records import Cell
from pytest_modelbench.replays import Replays
from pytest_modelbench.roster import Roster
from pytest_modelbench.scheduling import (
    CellScheduling,
    Dealer,
    Turn,
    deal_order,
    place_in_turns,
)
from pytest_modelbench.store.pause import collector_paused
from pytest_modelbench.waits import Waits


class Dealing:
    """Report what is stored and deal the rest, with xdist or without it.

    ``waits`` gives what is known of usage windows, None while no gateway runs.
    """

    def __init__(
        self,
        config: pytest.Config,
        bench: Bench,
        roster: Roster,
        board: Board,
        certification: Certification,
        waits: Callable[[], Waits | None],
    ) -> None:
        self._config = config
        self._bench = bench
        self._roster = roster
        self._board = board
        self._certification = certification
        self._waits = waits
        self._beat: Heartbeat | None = None
        self._teller: Teller | None = None
        self._replays = Replays(
            config, roster, bench.index, board, fail_unsolved=bench.settings.fail_unsolved
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> Any:
        """Deal items in the plan's order; Any: structurally xdist's Scheduling."""
        from xdist.workermanage import parse_tx_spec_config

        return CellScheduling(
            len(parse_tx_spec_config(config)),
            make_dealer=self._dealer,
            reported=lambda nodeid: nodeid in self._roster.reported,
            on_refused=self._replays.refuse,
            on_start=self._begin,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> object:
        """Without xdist: report what is stored, then let pytest run the rest."""
        if self._config.getoption("modelbench_plan"):
            self._print_plan(session)
            return True
        options = self._config.option
        if session.config.pluginmanager.hasplugin("dsession") or options.collectonly:
            return None
        if session.testsfailed and not options.continue_on_collection_errors:
            return None  # pytest says how many errors there are, and runs nothing
        self._begin([item.nodeid for item in session.items])
        if session.shouldfail:  # by -x or --maxfail
            raise session.Failed(session.shouldfail)
        # What is red among the stored would be taken for errors during collection.
        options.continue_on_collection_errors = True
        session.items[:] = [
            item
            for item in session.items
            if (cell := cell_of(item)) is None
            or self._roster.is_todo(cell)
            or not is_pack_item(item)
        ]
        # Stable: nothing else moves, and a server changes its model as seldom as it can.
        later = place_in_turns(self._turns())
        session.items.sort(key=lambda item: later(cell_of(item)))
        return None

    def pytest_unconfigure(self) -> None:
        """Say nothing more."""
        if self._beat is not None:
            self._beat.stop()
        if self._teller is not None:
            self._teller.close()

    def _dealer(self, collection: Sequence[str]) -> Dealer:
        roster = self._roster
        cells = {i: roster.nodeids[n] for i, n in enumerate(collection) if n in roster.nodeids}
        own = {
            i: cell
            for i, n in enumerate(collection)
            if n not in roster.nodeids and (cell := roster.cell(n)) is not None
            # What is stored already needs no turn and waits for nothing.
            if roster.is_todo(cell)
        }
        cells |= own
        turns = self._turns()
        return Dealer(
            deal_order(len(collection), cells, self._bench.plan, turns, own),
            cells,
            turns=turns,
            open_certificates=self._certification.is_open,
            refuse=self._board.refusal,
            held=lambda cell: (waits := self._waits()) is not None and waits.held(cell.candidate),
        )

    def _turns(self) -> dict[str, Turn]:
        """Return which server each candidate needs, with its room and its group."""
        registry = self._bench.registry
        groups = {
            name: (server, "+".join(names))
            for server, models in registry.taking_turns(self._bench.candidates).items()
            for names in models
            for name in names
        }
        turns = {}
        for candidate in self._bench.candidates:
            server = registry.server_of(candidate) if candidate.calls_model else ""
            declared = registry.servers.get(server)
            turns[candidate.name] = Turn(
                server=server,
                room=declared.concurrency if declared is not None else None,
                group=groups.get(candidate.name, ("", ""))[1],
            )
        return turns

    def _begin(self, collection: Sequence[str]) -> None:
        """Report every stored cell among the selected ones; called once, before any item."""
        roster = self._roster
        cells = [cell for n in collection if (cell := roster.cell(n)) is not None]
        roster.selected = set(cells)
        with collector_paused(keep=True):
            self._replays.report(collection)
        self._count_failures()
        todo = [nodeid for nodeid, p in roster.of_pack(collection) if p.action in TODO]
        session = self._config.pluginmanager.get_plugin("session")
        verbosity = self._config.get_verbosity()
        if isinstance(session, pytest.Session) and cells and verbosity <= 0:
            # Percent are of what has a letter; none at all would be "no tests".
            lettered = session.testscollected - sum(map(self._passes_over, cells))
            session.testscollected = max(1, lettered)
        self._teller = Teller(self._config)
        beat = Heartbeat(todo, self._teller, step=step_of(verbosity))
        self._config.pluginmanager.register(beat, "modelbench-heartbeat")
        if (waits := self._waits()) is not None:
            beat.tell_waits(waits.words, waits.failing)
        beat.watch()
        self._beat = beat

    def _count_failures(self) -> None:
        """Let xdist, which sees reports of its workers alone, count those of stored cells, too."""
        session = self._config.pluginmanager.get_plugin("session")
        dsession: Any = self._config.pluginmanager.get_plugin("dsession")  # Any: xdist has no types
        if dsession is None or not isinstance(session, pytest.Session):
            return
        dsession.countfailures = session.testsfailed
        if session.shouldfail:
            dsession.shouldstop = session.shouldfail
            self._board.ending = True  # what is dealt in the meantime is not begun
            self._board.write()

    def _passes_over(self, cell: Cell) -> bool:
        """Tell whether the cell's stored verdict is reported without a letter."""
        replayed = self._roster.planned[cell].action is Action.REPLAY
        return replayed and cell not in self._roster.without_verdict

    def _print_plan(self, session: pytest.Session) -> None:
        cells = {cell for item in session.items if (cell := cell_of(item)) is not None}
        for line in plan_lines(self._bench, cells):
            write_line(self._config, line)
