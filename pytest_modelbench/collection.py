"""Turn packs into pytest items."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr

    from pytest_modelbench.plan import Plan
    from pytest_modelbench.records import Cell

MANIFEST = "pack.toml"
SOLUTIONS = "reference_solutions"
MARK = "modelbench"
FIXTURE = "modelbench_cell"
ACTING = {MARK, "parametrize", "skip", "skipif", "usefixtures", "xfail", "filterwarnings"}
ACTING |= {"anyio", "asyncio", "flaky", "timeout"}
"""Marks by which pytest and its plugins treat a test otherwise: no tag of a case may be one."""

plan_key: pytest.StashKey[Plan] = pytest.StashKey()
folders_key: pytest.StashKey[dict[str, str]] = pytest.StashKey()
"""Folder of a pack → its name."""
passed_over_key: pytest.StashKey[list[str]] = pytest.StashKey()
"""Folders of packs that were met by a run that tries none."""
lent_key: pytest.StashKey[frozenset[str]] = pytest.StashKey()
"""Packs that are there for users' own tests only: of them, certificates alone are collected."""
tags_key: pytest.StashKey[dict[tuple[str, str], tuple[pytest.Mark, ...]]] = pytest.StashKey()
"""Pack and case id → its tags as marks; a case without tags has no entry."""


def pack_above(path: Path) -> Path | None:
    """Return the pack's folder that a path is or lies in, if any; the outermost one."""
    found = None
    for folder in (path, *path.parents):
        if (folder / MANIFEST).is_file():
            found = folder
    return found


class PackDir(pytest.Directory):
    """A pack's folder: one module of cells, and nothing of what lies below is looked at."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Yield the pack's module; nothing for a pack of which this run tries no cell."""
        if _cells_in(self.path, self.config):
            path = self.path / MANIFEST
            # Relative to the root folder, also where pytest would tell it from the arguments.
            nodeid = Path(os.path.relpath(path, self.config.rootpath)).as_posix()
            yield PackModule.from_parent(self, path=path, nodeid=nodeid)


class PackModule(pytest.Module):
    """The shipped suite under the path of the pack's manifest."""

    def _getobj(self) -> object:
        from pytest_modelbench import suite

        return suite

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Yield an item a cell; each bears the mark ``modelbench`` and no outer time limit."""
        self.add_marker(MARK)
        if self.config.pluginmanager.hasplugin("timeout"):
            # An attempt has limits of its own; an outer timer would turn a slow one into a fault.
            self.add_marker(pytest.mark.timeout(0))
        for node in super().collect():
            if isinstance(node, pytest.Function):
                # An attribute, since pytest lets nobody say of what class a function's items are.
                node.repr_failure = partial(_shown, node)  # type: ignore[method-assign]
            yield node


def _shown(
    item: pytest.Function, excinfo: pytest.ExceptionInfo[BaseException]
) -> str | TerminalRepr:
    """Return what is shown of an exception: of a verdict its words, since no code is at fault.

    To find and format a traceback takes longer than all else that is done for a small cell.
    """
    from pytest_modelbench.fixtures import Unsolved

    if isinstance(excinfo.value, Unsolved):
        return str(excinfo.value)
    return pytest.Function.repr_failure(item, excinfo)


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give the shipped test one set of parameters a cell of its pack, in the plan's order."""
    if FIXTURE not in metafunc.fixturenames:
        raise pytest.Collector.CollectError(
            "the fixture modelbench_attempt was replaced; names that begin with modelbench_ are "
            "the shipped suite's: give yours another"
        )
    cells = _cells_in(metafunc.definition.path.parent, metafunc.config)
    tags = metafunc.config.stash[tags_key]
    params = [
        pytest.param(cell, marks=tags[cell.pack, cell.case])
        if (cell.pack, cell.case) in tags
        else cell
        for cell in cells
    ]
    metafunc.parametrize(FIXTURE, params, indirect=True, ids=[cell.id for cell in cells])


def take_tags(config: pytest.Config, tags: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """Make the tags of cases, by pack and case id, marks of the items to come, known as such."""
    used = {tag for cases in tags.values() for case in cases.values() for tag in case} - ACTING
    # Made as pytest makes them, since a name with a colon cannot be registered.
    marks = {tag: pytest.Mark(tag, (), {}, _ispytest=True) for tag in used}
    config.stash[tags_key] = {
        (pack, case): tuple(marks[tag] for tag in own if tag in marks)
        for pack, cases in tags.items()
        for case, own in cases.items()
    }
    for tag in sorted(used):
        config.addinivalue_line("markers", f"{tag}: a tag of cases")


def _cells_in(folder: Path, config: pytest.Config) -> list[Cell]:
    """Return the cells that the shipped suite tries of the pack in a folder."""
    name = config.stash.get(folders_key, {}).get(str(folder))
    if name is None:
        return []
    plan = config.stash[plan_key]
    planned = plan.certifying if name in config.stash[lent_key] else plan
    return [p.cell for p in planned if p.cell.pack == name]


def is_pack_test(metafunc: pytest.Metafunc) -> bool:
    """Tell whether a function is the shipped suite's, not one of the user's."""
    return isinstance(metafunc.definition.getparent(pytest.Module), PackModule)


def is_pack_item(item: pytest.Item) -> bool:
    """Tell whether an item is one of the shipped suite's."""
    return isinstance(item.parent, PackModule)


def cell_of(item: pytest.Item) -> Cell | None:
    """Return the cell that an item tries or whose attempt it judges; None for plain tests."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get(FIXTURE) if callspec is not None else None


class Selection:
    """Keep certificates with the cells that need them, whatever -k, -m and --lf leave."""

    def __init__(self, config: pytest.Config, plan: Plan) -> None:
        self._terminal = config.pluginmanager.get_plugin("terminalreporter")
        self._certifying = {p.cell for p in plan.certifying}
        self._needed = self._certifying.union(plan.awaited)
        self._planned = (*plan.grid, *plan.aside)

    # Outermost, so that it sees what -k, -m and --lf have left.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        """Let others select, then put the certificates of what they left before everything."""
        if not self._needed:  # nobody waits for a certificate
            return (yield)
        certificates = [item for item in items if self._is_certificate(item)]
        # Not theirs to select: they would be counted as deselected, and run all the same.
        collected = len(items)
        items[:] = [item for item in items if not self._is_only_certificate(item)]
        offered = len(items)
        result = yield
        kept = list(items)
        scored = {(p.cell.pack, p.cell.case) for p in self._planned if not p.cell.certifies}
        # Cells that wait for certificates; where there are none, built-in ones that ask for them.
        waiting = {
            (cell.pack, cell.case)
            for item in kept
            if (cell := cell_of(item)) is not None
            and ((cell.pack, cell.case) in scored) is not cell.certifies
        }
        if waiting and not certificates:
            certificates = self._collected_again(kept)
        first = {
            cell: item
            for item in certificates
            if (cell := cell_of(item)) is not None and (cell.pack, cell.case) in waiting
        }
        rest = (item for item in kept if not is_pack_item(item) or cell_of(item) not in first)
        items[:] = [*first.values(), *rest]
        self._count(len(items) + offered - len(kept) - collected)
        return result

    def _count(self, more: int) -> None:
        """Let "collected N items" be of those that run or that were deselected."""
        terminal: Any = self._terminal  # Any: pytest has no public name for it
        if hasattr(terminal, "_numcollected"):
            terminal._numcollected += more

    def _collected_again(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """Return the certificate items of packs of which a node id picked single items."""
        modules = {
            module: None
            for item in items
            if isinstance(module := item.getparent(pytest.Module), PackModule)
        }
        return [
            item
            for module in modules
            for item in module.collect()
            if isinstance(item, pytest.Item) and self._is_certificate(item)
        ]

    def _is_certificate(self, item: pytest.Item) -> bool:
        return is_pack_item(item) and cell_of(item) in self._needed

    def _is_only_certificate(self, item: pytest.Item) -> bool:
        return is_pack_item(item) and cell_of(item) in self._certifying
