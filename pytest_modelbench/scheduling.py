"""Deal cells to workers: order, certificates first, servers by turns, faults again at the end.

`Dealer` decides and knows no xdist; `CellScheduling` is its form for xdist's controller.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_modelbench.plan import Plan
from pytest_modelbench.records import Cell

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

Key = tuple[str, str]
"""pack, case: what a certificate is about."""


@dataclass(frozen=True)
class Turn:
    """Which server a cell needs; ``room``: cells at once there; its groups take turns."""

    server: str = ""
    room: int | None = None
    group: str = ""


class Dealer:
    """Decide which item may start next.

    Items are numbers; those with no cell (a project's own tests) are always free to start. A cell
    waits while its case's certificate is open, while another candidate has its server's turn, and
    while its server has no room. ``refuse`` says why a cell can no longer start at all. A cell that
    is ``held``, by a usage window, is taken when there is no other: it waits where it is bound.
    """

    def __init__(
        self,
        order: Iterable[int],
        cells: dict[int, Cell],
        *,
        turns: dict[str, Turn],
        open_certificates: Callable[[Key], bool],
        refuse: Callable[[Cell], str],
        held: Callable[[Cell], bool] = lambda cell: False,
    ) -> None:
        self.queue = deque(order)
        self.refusals: list[tuple[int, str]] = []
        self._cells = cells
        self._turns = turns
        self._open = open_certificates
        self._refuse = refuse
        self._held = held
        self._running: dict[int, str] = {}
        self._round: Counter[int] = Counter()
        self._first: dict[str, int] = {}
        self._unfinished: dict[str, Counter[tuple[int, int]]] = {}
        for index in self.queue:
            turn = self._placed(index)[1]
            if turn.group:
                self._first.setdefault(turn.group, len(self._first))
                self._unfinished.setdefault(turn.server, Counter())[self._slot(index)] += 1

    def free(self, index: int) -> bool:
        """Tell whether an item may start now."""
        cell, turn = self._placed(index)
        if cell is None:
            return True
        if not cell.certifies and self._open((cell.pack, cell.case)):
            return False
        if turn.group:
            waiting = self._unfinished[turn.server]
            if self._slot(index) != min(slot for slot, left in waiting.items() if left > 0):
                return False
        return turn.room is None or list(self._running.values()).count(turn.server) < turn.room

    def all_free(self, indices: Iterable[int]) -> bool:
        """Tell whether some items may all start now, side by side."""
        started: list[int] = []
        try:
            for index in indices:
                if not self.free(index):
                    return False
                if index not in self._running:
                    self.start(index)
                    started.append(index)
            return True
        finally:
            for index in started:
                del self._running[index]

    def take(self, *, any_item: bool = False) -> int | None:
        """Take the next item that is free to start; with ``any_item``, otherwise one that will be.

        What can no longer start is moved to ``refusals`` on the way.
        """
        waiting: int | None = None
        for index in tuple(self.queue):
            cell = self._cells.get(index)
            if cell is not None and (why := self._refuse(cell)):
                self.queue.remove(index)
                self._leave(index)
                self.refusals.append((index, why))
            elif self.free(index):
                if cell is None or not self._held(cell):
                    self.queue.remove(index)
                    return index
                waiting = index if waiting is None else waiting
        if waiting is not None:
            self.queue.remove(waiting)
            return waiting
        if not any_item or not self.queue:
            return None
        index = self._first_unblocked()
        self.queue.remove(index)
        return index

    def start(self, index: int) -> None:
        """Note that a worker is at this item."""
        self._running[index] = self._placed(index)[1].server

    def end(self, index: int, *, again: bool = False) -> None:
        """Note that a worker is through with this item; ``again`` puts it at the queue's end.

        There it waits for its group's next turn on a server that groups share.
        """
        self._running.pop(index, None)
        self._leave(index)
        if again:
            self.queue.append(index)
            self._round[index] += 1
            turn = self._placed(index)[1]
            if turn.group:
                self._unfinished[turn.server][self._slot(index)] += 1

    def put_back(self, indices: Sequence[int]) -> None:
        """Return items that were bound to a worker which is gone, to the head of the queue."""
        self.queue.extendleft(reversed(indices))

    def _first_unblocked(self) -> int:
        """Return the first queued item that waits for no other queued one; there is always one.

        Bound to a worker, an item that waits for queued ones could keep them from being dealt: with
        one on each worker, all would wait for ever.
        """
        certifying: set[Key] = set()
        first: dict[str, tuple[int, int]] = {}
        for index in self.queue:
            cell, turn = self._placed(index)
            if cell is not None and cell.certifies:
                certifying.add((cell.pack, cell.case))
            if turn.group:
                slot = self._slot(index)
                first[turn.server] = min(first.get(turn.server, slot), slot)
        for index in self.queue:
            cell, turn = self._placed(index)
            if cell is None or cell.certifies:
                return index
            if (cell.pack, cell.case) not in certifying and (
                not turn.group or self._slot(index) == first[turn.server]
            ):
                return index
        return self.queue[0]

    def _leave(self, index: int) -> None:
        turn = self._placed(index)[1]
        if turn.group:
            self._unfinished[turn.server][self._slot(index)] -= 1

    def _slot(self, index: int) -> tuple[int, int]:
        """Return an item's place in its server's turns: round, then the order of groups."""
        return self._round[index], self._first[self._placed(index)[1].group]

    def _placed(self, index: int) -> tuple[Cell | None, Turn]:
        cell = self._cells.get(index)
        return cell, self._turns.get(cell.candidate, Turn()) if cell else Turn()


def deal_order(
    count: int,
    cells: Mapping[int, Cell],
    plan: Plan,
    turns: Mapping[str, Turn],
    own: Collection[int] = (),
) -> list[int]:
    """Return the items to run: certificates, then a project's own tests and the plan's cells.

    Cells of candidates whose server is another's first stand behind those, in the plan's order.
    ``own`` are users' own tests of cells: behind the cells themselves, whose attempts they share.
    """
    first = (*(planned.cell for planned in plan.certifying), *plan.awaited)
    ranks = {cell: rank for rank, cell in enumerate(dict.fromkeys((*first, *plan.dealing)))}
    certifying = len(first)
    place = place_in_turns(turns)

    def rank(index: int) -> tuple[bool, int, bool, int]:
        cell = cells.get(index)
        if cell is None:
            return (True, 0, False, -1)
        uncertified = index in own or ranks[cell] >= certifying
        return (uncertified, place(cell), index in own, ranks[cell])

    dealt = (i for i in range(count) if i not in cells or cells[i] in ranks)
    return sorted(dealt, key=rank)


def place_in_turns(turns: Mapping[str, Turn]) -> Callable[[Cell | None], int]:
    """Return what tells a cell's place in the turns of its server; 0 for all that need none."""
    groups = list(dict.fromkeys(turn.group for turn in turns.values() if turn.group))

    def place(cell: Cell | None) -> int:
        group = turns.get(cell.candidate, Turn()).group if cell is not None else ""
        return groups.index(group) if group else 0

    return place


class CellScheduling:
    """An xdist scheduler that deals in the plan's order, two items to a worker.

    A worker starts an item only when the next one is bound to it or it is told to end. So the last
    bound item has not started, and may be one that has to wait: nothing is bound behind it until it
    is free. An item that ends without a report asks to be dealt again; an item that others wait for
    must not, since one of them may be bound behind it.
    """

    def __init__(
        self,
        workers: int,
        *,
        make_dealer: Callable[[Sequence[str]], Dealer],
        reported: Callable[[str], bool],
        on_refused: Callable[[str, str], None],
        on_start: Callable[[Sequence[str]], None],
    ) -> None:
        self._workers = workers
        self._make_dealer = make_dealer
        self._reported = reported
        self._on_refused = on_refused
        self._on_start = on_start
        self._dealer: Dealer | None = None
        self._collection: list[str] = []
        self._collected: dict[WorkerController, list[str]] = {}
        self._bound: dict[WorkerController, list[int]] = {}
        self._ending: set[WorkerController] = set()

    @property
    def nodes(self) -> list[WorkerController]:
        """Return the workers that are known."""
        return list(self._bound)

    @property
    def collection_is_completed(self) -> bool:
        """Tell whether every worker of the start has sent its list."""
        return len(self._collected) >= self._workers

    @property
    def tests_finished(self) -> bool:
        """Tell whether all that is left can start without anything bound behind it."""
        if self._dealer is None or self._dealer.queue:
            return False
        if any(len(bound) > 1 for bound in self._bound.values()):
            return False
        return self._dealer.all_free(bound[0] for bound in self._bound.values() if bound)

    @property
    def has_pending(self) -> bool:
        """Tell whether anything is queued or bound."""
        return bool(self._dealer and self._dealer.queue) or any(self._bound.values())

    def add_node(self, node: WorkerController) -> None:
        """Take a worker in; called when it is ready to collect."""
        self._bound[node] = []

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take a worker's list of items; called when it has collected."""
        if self._dealer is not None and list(collection) != self._collection:
            node.shutdown()
            self._ending.add(node)
            return
        self._collected[node] = list(collection)

    def schedule(self) -> None:
        """Start dealing, or go on with a new worker; called when collections are complete."""
        if self._dealer is None:
            lists = list(self._collected.values())
            if any(other != lists[0] for other in lists[1:]):
                raise RuntimeError(
                    "workers collected different items; a pack or a test changed while they started"
                )
            self._collection = lists[0]
            self._on_start(self._collection)
            self._dealer = self._make_dealer(self._collection)
        self._deal()

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Note an item's end and deal on; called when its worker is through with it."""
        if self._dealer is None:
            raise RuntimeError("a worker ended an item before any was dealt")
        self._bound[node].remove(item_index)
        again = not self._reported(self._collection[item_index])
        self._dealer.end(item_index, again=again)
        self._deal()

    def mark_test_pending(self, item: str) -> None:
        """Queue an item again; called by plugins that want a crashed item to be repeated."""
        if self._dealer is not None:
            self._dealer.put_back([self._collection.index(item)])
            self._deal()

    def remove_pending_tests_from_node(
        self, node: WorkerController, indices: Sequence[int]
    ) -> None:
        """Refuse: nothing is stolen from a worker that holds two items."""
        raise NotImplementedError("cells are dealt two at a time and never taken back")

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker; return the item that it was at, if it died at one."""
        bound = self._bound.pop(node)
        self._collected.pop(node, None)
        self._ending.discard(node)
        if not bound or self._dealer is None:
            return None
        crashed = bound[0]
        self._dealer.end(crashed)
        self._dealer.put_back(bound[1:])
        self._deal()
        return self._collection[crashed]

    def _deal(self) -> None:
        dealer = self._dealer
        if dealer is None:
            return
        for node, bound in self._bound.items():
            while node in self._collected and node not in self._ending and len(bound) < 2:
                if bound and not dealer.free(bound[-1]):
                    break
                index = dealer.take(any_item=bool(bound))
                if index is None:
                    if bound and not self.tests_finished:
                        self._end(node)
                    break
                if bound:
                    dealer.start(bound[-1])
                bound.append(index)
                try:
                    node.send_runtest_some([index])
                except OSError:  # it has just ended; xdist will say so
                    bound.remove(index)
                    dealer.put_back([index])
                    self._ending.add(node)
        while dealer.refusals:
            index, why = dealer.refusals.pop()
            self._on_refused(self._collection[index], why)

    def _end(self, node: WorkerController) -> None:
        """Let a worker start its last item though nothing is left to bind behind it.

        Needed where others wait for that item; otherwise all workers are told to end together.
        """
        if self._dealer is not None:
            self._dealer.start(self._bound[node][-1])
        self._ending.add(node)
        node.shutdown()
