"""Which packs, cases and candidates a command line asks for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_modelbench.collection import MANIFEST, pack_above
from pytest_modelbench.packs.reading import find_packs
from pytest_modelbench.plugin import CASES_INI, root_of
from pytest_modelbench.settings import CASES

ITEM = re.compile(r"::test_case\[(?P<case>[^:\]]+):(?P<candidate>.+):(?P<repeat>[0-9]+)\]$")


@dataclass
class Selected:
    """What the arguments name.

    ``args`` is what pytest shall collect; ``lent`` are the project's packs that no argument holds,
    where arguments hold other tests, which may ask for their cells; ``cases`` are the case ids
    picked of a pack's folder, all of them where the pack has no entry; ``candidates`` and
    ``repeats`` are those of node ids.
    """

    args: list[str]
    packs: list[Path] = field(default_factory=list)
    lent: list[Path] = field(default_factory=list)
    named: list[Path] = field(default_factory=list)
    cases: dict[Path, set[str]] = field(default_factory=dict)
    candidates: list[str] = field(default_factory=list)
    repeats: int = 0

    @property
    def partial(self) -> bool:
        """Tell whether single cases or cells are named rather than packs."""
        return bool(self.cases or self.candidates)


def read_arguments(config: pytest.Config) -> Selected:
    """Read the command line: a case's folder selects it, a node id a cell, a folder its packs.

    With ``--models`` and no path at all, the packs of the project are the suite; with ``--lf`` they
    come to what pytest would look at anyway, whose own failures it knows. Within a pack, no path
    means that pack.
    """
    folder = config.invocation_params.dir
    named = bool(config.getoption("models"))
    last_failed = bool(config.getoption("lf", False))
    planning = bool(config.getoption("modelbench_plan"))
    pathless = config.args_source is not pytest.Config.ArgsSource.ARGS and not pack_above(folder)
    if pathless and (named or last_failed or planning):
        packs = _packs(config)
        others = [] if named or planning else [_path(folder, arg) for arg in config.args]
        apart = [p for p in packs if not any(p.is_relative_to(other) for other in others)]
        if packs:
            return Selected(args=[*map(str, (*others, *apart))], packs=packs)
    selected = Selected(args=[])
    whole: set[Path] = set()
    for arg in config.args:
        path_text, sep, _ = arg.partition("::")
        path = _path(folder, arg)
        pack = pack_above(path)
        if pack is None:
            selected.args.append(arg)
            if path.is_dir():
                selected.packs += [p for p in find_packs([path]) if p not in selected.packs]
            continue
        if pack not in selected.packs:
            selected.packs.append(pack)
        if pack not in selected.named:
            selected.named.append(pack)
        if sep:
            selected.args.append(arg)
            if match := ITEM.search(arg):
                _add_cell(selected, pack, match)
            else:
                whole.add(pack)
        elif path in (pack, pack / MANIFEST):
            selected.args.append(arg)
            whole.add(pack)
        else:
            case = path.relative_to(pack).parts[0]
            if not (pack / case / "case.toml").is_file():
                raise pytest.UsageError(f"{path_text}: pack {pack.name} has no case {case!r}")
            selected.cases.setdefault(pack, set()).add(case)
            if str(pack) not in selected.args:
                selected.args.append(str(pack))
    for pack in whole:
        selected.cases.pop(pack, None)
    if named and any(pack_above(_path(folder, arg)) is None for arg in selected.args):
        selected.lent = [pack for pack in _packs(config) if pack not in selected.packs]
    return selected


def _packs(config: pytest.Config) -> list[Path]:
    """Return the packs of the project."""
    roots = [root_of(config) / name for name in config.getini(CASES_INI) or [CASES]]
    return find_packs([root for root in roots if root.is_dir()])


def _path(folder: Path, arg: str) -> Path:
    return Path(os.path.normpath(folder / arg.partition("::")[0]))


def _add_cell(selected: Selected, pack: Path, match: re.Match[str]) -> None:
    selected.cases.setdefault(pack, set()).add(match["case"])
    if match["candidate"] not in selected.candidates:
        selected.candidates.append(match["candidate"])
    selected.repeats = max(selected.repeats, int(match["repeat"]))
