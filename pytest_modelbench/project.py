"""Which project a run is of, said where it is not that of the folder where the run was started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_modelbench.settings import REGISTRY, Settings, project_root


def place_lines(config: pytest.Config, settings: Settings) -> list[str]:
    """Return which modelbench.toml and results a run uses; nothing for the current folder's own."""
    here, root = config.invocation_params.dir, Path(settings.root)
    if root == here:
        return []
    registry = _from(root / REGISTRY, here)
    if not (root / REGISTRY).is_file():
        registry = f"no {registry}"
    return [f"modelbench: uses {registry}, results in {_from(Path(settings.results), here)}"]


def overlooked(config: pytest.Config, settings: Settings) -> list[str]:
    """Return a warning where the modelbench.toml of the current folder, or above, is not read."""
    here = config.invocation_params.dir
    own = project_root(here)
    if own == Path(settings.root) or not (own / REGISTRY).is_file():
        return []
    return [
        f"does not read {_from(own / REGISTRY, here)}: pytest took {settings.root} for the "
        "project; `-c FILE`, an ini file beside it such as an empty pytest.ini, makes it yours"
    ]


def _from(path: Path, folder: Path) -> str:
    return os.path.relpath(path, folder)
