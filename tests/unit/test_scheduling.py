"""Dealing, tried against workers that keep xdist's rule: an item starts when the next is bound."""

from __future__ import annotations

import random
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_modelbench.records import Cell
from pytest_modelbench.scheduling import CellScheduling, Dealer, Turn


class Node:
    """A worker as xdist's is: it holds a queue and starts its head when something is behind it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: list[int] = []
        self.told_to_end = False

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.told_to_end, "an item was sent to a worker that was told to end"
        self.queue += indices

    def shutdown(self) -> None:
        self.told_to_end = True

    @property
    def running(self) -> int | None:
        starts = len(self.queue) > 1 or (self.queue and self.told_to_end)
        return self.queue[0] if starts else None


class Run:
    """Drive a scheduler as xdist's controller does, and note what starts beside what."""

    def __init__(
        self,
        cells: Sequence[Cell | None],
        *,
        workers: int,
        turns: dict[str, Turn] | None = None,
        faults: AbstractSet[int] = frozenset(),
        seed: int = 0,
    ) -> None:
        self.cells = cells
        self.names = [f"item{i}" for i in range(len(cells))]
        self.open = {(c.pack, c.case) for c in cells if c is not None and c.certifies}
        self.uncertified: set[tuple[str, str]] = set()
        self.ended: list[int] = []
        self.refused: list[str] = []
        self.beside: list[set[int]] = []
        self._faults = set(faults)
        self._reported: set[str] = set()
        self._random = random.Random(seed)
        self.scheduler = CellScheduling(
            workers,
            make_dealer=lambda collection: Dealer(
                range(len(collection)),
                {i: c for i, c in enumerate(cells) if c is not None},
                turns=turns or {},
                open_certificates=lambda key: key in self.open,
                refuse=lambda c: "unsound" if (c.pack, c.case) in self.uncertified else "",
            ),
            reported=lambda name: name in self._reported,
            on_refused=lambda name, why: self.refused.append(name),
            on_start=lambda collection: None,
        )
        self.nodes = [Node(f"gw{i}") for i in range(workers)]
        for node in self.nodes:
            self.scheduler.add_node(node)
            self.scheduler.add_node_collection(node, self.names)
        self.scheduler.schedule()

    def go(self) -> None:
        for _ in range(10 * len(self.cells) + 10):
            if self.scheduler.tests_finished:
                for node in self.nodes:
                    node.shutdown()
            running = [node for node in self.nodes if node.running is not None]
            if not running:
                break
            self.beside.append({node.running for node in running if node.running is not None})
            node = self._random.choice(running)
            index = node.queue.pop(0)
            self._end(node, index)
        assert self.scheduler.tests_finished
        assert not any(node.queue for node in self.nodes)

    def _end(self, node: Node, index: int) -> None:
        again = index in self._faults and not (node.told_to_end and not node.queue)
        self._faults.discard(index)
        if not again:
            self.ended.append(index)
            self._reported.add(self.names[index])
            cell = self.cells[index]
            if cell is not None and cell.certifies:
                key = (cell.pack, cell.case)
                left = [
                    i
                    for i, c in enumerate(self.cells)
                    if c is not None and c.certifies and (c.pack, c.case) == key
                ]
                if set(left) <= set(self.ended):
                    self.open.discard(key)
        self.scheduler.mark_test_complete(node, index)


def cell(case: str, candidate: str, repeat: int = 1) -> Cell:
    return Cell("pack", case, candidate, repeat)


def certificate(case: str) -> list[Cell]:
    return [cell(case, name, n) for name in ("reference", "seed") for n in (1, 2, 3)]


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_every_item_runs_once_and_certificates_run_first(workers: int) -> None:
    cells = [*certificate("a"), *certificate("b"), cell("a", "x"), cell("b", "x"), None]
    run = Run(cells, workers=workers)
    run.go()
    assert sorted(run.ended) == list(range(len(cells)))
    last_certificate = {
        case: max(run.ended.index(i) for i, c in enumerate(cells[:12]) if c and c.case == case)
        for case in "ab"
    }
    assert run.ended.index(12) > last_certificate["a"]
    assert run.ended.index(13) > last_certificate["b"]


def test_cell_does_not_start_before_its_certificate_ends() -> None:
    cells = [*certificate("a"), *(cell("a", "x", n) for n in range(1, 9))]
    run = Run(cells, workers=4)
    run.go()
    for together in run.beside:
        assert not (any(i < 6 for i in together) and any(i >= 6 for i in together))


def test_cells_of_an_uncertified_case_are_refused_with_the_others_running() -> None:
    cells = [*certificate("a"), cell("a", "x"), cell("b", "x"), cell("b", "y")]
    run = Run(cells, workers=2)
    run.uncertified.add(("pack", "a"))
    run.go()
    assert sorted({*run.ended, *(int(name[4:]) for name in run.refused)}) == list(range(9))
    assert {7, 8} <= set(run.ended)


def test_faulted_cell_goes_to_the_end_of_the_queue() -> None:
    run = Run([cell(f"c{n}", "x") for n in range(6)], workers=1, faults={0})
    run.go()
    assert run.ended == [1, 2, 3, 4, 5, 0]


def test_candidates_of_one_server_take_turns() -> None:
    turns = {name: Turn(server="gpu", group=name) for name in ("x", "y")}
    cells = [cell(f"c{n}", "x") for n in range(5)] + [cell(f"c{n}", "y") for n in range(5)]
    run = Run(cells, workers=3, turns=turns)
    run.go()
    assert sorted(run.ended) == list(range(10))
    for together in run.beside:
        assert len({cells[i].candidate for i in together if cells[i] is not None}) == 1


def test_server_has_no_more_cells_at_once_than_it_has_room_for() -> None:
    turns = {"x": Turn(server="gpu", room=2)}
    cells = [cell(f"c{n}", "x") for n in range(9)]
    run = Run(cells, workers=4, turns=turns)
    run.go()
    assert sorted(run.ended) == list(range(9))
    assert max(len(together) for together in run.beside) == 2


def test_dead_worker_loses_its_item_and_gives_back_the_next() -> None:
    cells = [cell(f"c{n}", "x") for n in range(6)]
    run = Run(cells, workers=2)
    dead = run.nodes.pop(0)
    crashed = run.scheduler.remove_node(dead)
    assert crashed == "item0"
    run.go()
    assert sorted(run.ended) == [1, 2, 3, 4, 5]


def test_different_collections_are_refused() -> None:
    run = Run([None], workers=2)
    scheduler = CellScheduling(
        2,
        make_dealer=lambda collection: Dealer(
            [], {}, turns={}, open_certificates=lambda key: False, refuse=lambda cell: ""
        ),
        reported=lambda name: True,
        on_refused=lambda name, why: None,
        on_start=lambda collection: None,
    )
    for node, names in zip(run.nodes, (["a"], ["b"]), strict=True):
        scheduler.add_node(node)
        scheduler.add_node_collection(node, names)
    with pytest.raises(RuntimeError, match="collected different items"):
        scheduler.schedule()


def test_held_cells_are_taken_when_there_is_no_other() -> None:
    cells = {0: cell("a", "x"), 1: cell("a", "y"), 2: cell("b", "x"), 3: cell("b", "y")}
    held = {"x"}
    dealer = Dealer(
        range(4),
        cells,
        turns={},
        open_certificates=lambda key: False,
        refuse=lambda c: "",
        held=lambda c: c.candidate in held,
    )
    assert [dealer.take(), dealer.take(), dealer.take()] == [1, 3, 0]
    held.clear()
    assert dealer.take() == 2


@given(data=st.data())
@settings(max_examples=200)
def test_nothing_is_lost_or_repeated_and_nothing_waits_for_ever(data: st.DataObject) -> None:
    cases = data.draw(st.integers(1, 4))
    certified = data.draw(st.sets(st.integers(0, cases - 1)))
    candidates = data.draw(st.integers(1, 3))
    cells: list[Cell | None] = [c for n in sorted(certified) for c in certificate(f"c{n}")]
    cells += [cell(f"c{n}", f"m{k}") for n in range(cases) for k in range(candidates)]
    cells += [None] * data.draw(st.integers(0, 3))
    may_fault = [i for i, c in enumerate(cells) if c is None or not c.certifies]
    room = data.draw(st.none() | st.integers(1, 2))
    alternating = data.draw(st.booleans())
    turns = {
        f"m{k}": Turn(server="s", room=room, group=f"m{k}" if alternating else "")
        for k in range(candidates)
    }
    run = Run(
        cells,
        workers=data.draw(st.integers(1, 5)),
        turns=turns,
        faults=data.draw(st.sets(st.sampled_from(may_fault))),
        seed=data.draw(st.integers(0, 10_000)),
    )
    run.go()
    assert sorted(run.ended) == list(range(len(cells)))
    for together in run.beside:
        of_models = [c for i in together if (c := cells[i]) is not None and not c.certifies]
        if room is not None:
            assert len(of_models) <= room
        if alternating:
            assert len({c.candidate for c in of_models}) <= 1
