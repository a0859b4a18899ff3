"""A user's own tests over a pack's cells: which cells a function tries, its name, its identity.

    @pytest.mark.modelbench(pack="executor", cases=["fix-bug"])
    def test_touches_one_file(attempt): ...

The id of such an item begins with ``pack:case:candidate:repeat``, so that the controller, which
collects nothing, can tell its cell.
"""

from __future__ import annotations

import hashlib
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_modelbench.collection import (
    FIXTURE,
    MARK,
    cell_of,
    folders_key,
    is_pack_item,
    plan_key,
    tags_key,
)

if TYPE_CHECKING:
    from pytest_modelbench.records import Cell

FIXTURES = ("attempt", "world", "case", "candidate")
EXAMPLE = '@pytest.mark.modelbench(pack="NAME")'


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a marked function its cells: those of its pack and cases that this run has.

    One that has none stays a single item, which says so and is skipped when it is run.
    """
    mark = metafunc.definition.get_closest_marker(MARK)
    plan = metafunc.config.stash.get(plan_key, None)
    if mark is None or plan is None:
        return
    pack, cases = _wanted(metafunc, mark)
    if FIXTURE not in metafunc.fixturenames:
        raise _wrong(metafunc, f"asks for none of {', '.join(FIXTURES)}, so it can try no cell")
    cells = [
        planned.cell
        for planned in (*plan.grid, *plan.aside)
        if planned.cell.pack == pack and (not cases or planned.cell.case in cases)
    ]
    if not cells:
        return
    # An attempt has limits of its own; an outer timer would turn a slow one into a fault.
    timed = metafunc.config.pluginmanager.hasplugin("timeout")
    marks = [pytest.mark.timeout(0)] if timed else []
    tags = metafunc.config.stash[tags_key]
    params = [
        pytest.param(cell, id=key_of(cell), marks=[*marks, *tags.get((cell.pack, cell.case), ())])
        for cell in cells
    ]
    metafunc.parametrize(FIXTURE, params, indirect=True)


def explain_no_cell(request: pytest.FixtureRequest) -> NoReturn:
    """Skip or fail a function that reached our fixtures without a cell; never returns."""
    mark = request.node.get_closest_marker(MARK)
    if mark is None:
        path, line, _ = request.node.location
        pytest.fail(
            f"{path}:{(line or 0) + 1}: {request.node.name} asks for the fixture "
            f"{FIXTURE} or one built on it, and names no pack whose cells it tries: "
            f"mark it {EXAMPLE}",
            pytrace=False,
        )
    if request.config.stash.get(plan_key, None) is None:
        pytest.skip("no candidate is named to try its cells: --models NAME[,NAME...]")
    pytest.skip("no cell that it names is part of this run")


def is_own(item: pytest.Item) -> bool:
    """Tell whether an item is a user's own test of a cell, not one of the shipped suite."""
    return not is_pack_item(item) and cell_of(item) is not None


def key_of(cell: Cell) -> str:
    """Return what the id of a user's item begins with."""
    return f"{cell.pack}:{cell.id}"


def cell_in(nodeid: str, cells: Mapping[str, Cell]) -> Cell | None:
    """Return the cell of a user's item by its node id; ``cells`` are those there are, by key."""
    _, bracket, rest = nodeid.partition("[")
    if not bracket or not rest.endswith("]"):
        return None
    text = rest[:-1]
    end = len(text)
    while end > 0:
        if (cell := cells.get(text[:end])) is not None:
            return cell
        end = text.rfind("-", 0, end)
    return None


def name_of(item: pytest.Item, cell: Cell) -> str:
    """Return the name under which a check is stored: the item's node id without its cell."""
    head, _, rest = item.nodeid.partition("[")
    others = rest[:-1].removeprefix(key_of(cell)).removeprefix("-")
    return f"{head}[{others}]" if others else head


def source_of(item: pytest.Item) -> str:
    """Return the digest of a test's source: its text, decorators among it, wherever it stands."""
    function = getattr(item, "function", None)
    if function is None:
        return ""
    text = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _wanted(metafunc: pytest.Metafunc, mark: pytest.Mark) -> tuple[str, Sequence[str]]:
    """Return the pack and the cases that a mark names; CollectError for what there is not."""
    unknown = sorted(set(mark.kwargs) - {"pack", "cases"})
    pack = mark.kwargs.get("pack")
    cases = mark.kwargs.get("cases", ())
    if mark.args or unknown or not isinstance(pack, str):
        raise _wrong(metafunc, f"is to be marked {EXAMPLE}, with cases=[…] to try some of it")
    if isinstance(cases, str) or not all(isinstance(case, str) for case in cases):
        raise _wrong(metafunc, f'needs a list: cases=["…"], not {cases!r}')
    folders = {name: folder for folder, name in metafunc.config.stash[folders_key].items()}
    if pack not in folders:
        known = ", ".join(sorted(folders)) or "none"
        raise _wrong(metafunc, f"names the pack {pack!r}, which this run has not: {known}")
    plan = metafunc.config.stash[plan_key]
    tried = {p.cell.case for p in (*plan.grid, *plan.aside) if p.cell.pack == pack}
    if not tried.issuperset(cases):  # not in this run, or nowhere
        there = _case_ids(Path(folders[pack]), metafunc.config)
        for case in cases:
            if case not in there:
                has = ", ".join(there)
                raise _wrong(metafunc, f"names the case {case!r}; pack {pack} has {has}")
    return pack, tuple(cases)


def _case_ids(folder: Path, config: pytest.Config) -> list[str]:
    from pytest_modelbench.packs.reading import read_pack
    from pytest_modelbench.plugin import root_of
    from pytest_modelbench.settings import REFERENCES

    return sorted(case.id for case in read_pack(folder, root_of(config) / REFERENCES).cases)


def _wrong(metafunc: pytest.Metafunc, what: str) -> pytest.Collector.CollectError:
    code = inspect.unwrap(metafunc.function).__code__
    place = f"{code.co_filename}:{code.co_firstlineno}"
    return pytest.Collector.CollectError(f"{place}: {metafunc.definition.name} {what}")
