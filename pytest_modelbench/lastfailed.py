"""Pytest's memory of failures, which ``--lf`` selects by, held to what the store says of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_modelbench.bench import node_path


def remember_faulted(
    config: pytest.Config, folders: Mapping[str, str], faulted: Sequence[str]
) -> None:
    """Make pytest's memory of failures agree with the store, for cells.

    The store knows which cells are faulted after a kill, after other runs and on other machines;
    pytest's list, which it saves at the end of a run, does not.
    """
    plugin = config.pluginmanager.get_plugin("lfplugin")
    known = getattr(plugin, "lastfailed", None)
    if not isinstance(known, dict):
        return
    heads = tuple(f"{node_path(config.rootpath, Path(folder))}/" for folder in folders)
    for key in [key for key in known if str(key).startswith(heads)]:
        del known[key]
    known.update(dict.fromkeys(map(_memory_key, faulted), True))


def _memory_key(nodeid: str) -> object:
    """Return a node id as pytest's memory of failures has it: a record of its own since 9.2."""
    try:
        from _pytest.nodeid import NodeId
    except ImportError:
        return nodeid
    return NodeId.parse(nodeid)
