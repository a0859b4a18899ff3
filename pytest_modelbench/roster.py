"""Which item of a run stands for which cell, and which cells have come to nothing so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from pytest_modelbench.bench import Bench, node_id, node_path
from pytest_modelbench.plan import TODO, Planned
from pytest_modelbench.records import Cell
from pytest_modelbench.usertests import cell_in, key_of


class Roster:
    """The cells of a run by node id, and what is known of them while it goes on.

    ``nodeids`` holds the shipped suite's items; a user's own tests of cells are found by ``cell``.
    """

    def __init__(self, bench: Bench, root: Path) -> None:
        every = (*bench.packs, *bench.lent)
        manifests = {pack.name: node_path(root, pack.manifest) for pack in every}
        self.planned = {p.cell: p for p in (*bench.plan.aside, *bench.plan)}
        self.nodeids = {node_id(manifests[p.cell.pack], p.cell): p.cell for p in bench.plan}
        self.reported: set[str] = set()
        """Node ids of which a report has come."""
        self.selected: set[Cell] = set()
        """Cells that -k, -m and the command line have left."""
        self.without_verdict: dict[Cell, str] = {}
        """Cells that will have none in this run, with the reason."""

    @cached_property
    def _own(self) -> dict[str, Cell]:
        """Return the cells by what the ids of users' own items begin with."""
        return {key_of(cell): cell for cell in self.planned}

    def cell(self, nodeid: str) -> Cell | None:
        """Return the cell of an item, a user's own test among them; None for a plain test."""
        return self.nodeids.get(nodeid) or cell_in(nodeid, self._own)

    def of_pack(self, nodeids: Iterable[str]) -> Iterator[tuple[str, Planned]]:
        """Yield the shipped suite's items among some, with their plans."""
        for nodeid in nodeids:
            cell = self.nodeids.get(nodeid)
            if cell is not None:
                yield nodeid, self.planned[cell]

    def is_todo(self, cell: Cell) -> bool:
        """Tell whether a worker has to try or to grade the cell."""
        return self.planned[cell].action in TODO
