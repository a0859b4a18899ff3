"""Everything a run was asked for, resolved once by the controller."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

CASES = "cases"
REFERENCES = "reference_solutions"
RESULTS = "results"
REGISTRY = "modelbench.toml"


@dataclass(frozen=True)
class Settings:
    """One run's settings. Workers receive it whole and read neither options nor environment.

    Paths are absolute. ``selected`` maps a pack's folder to the case ids that the command line
    names (none: all of them). ``models`` are names as the user wrote them. ``lent`` are names of
    packs that only users' own tests ask for.
    """

    root: str
    references: str
    results: str
    models: tuple[str, ...]
    run: str
    started: str
    packs: tuple[str, ...] = ()
    lent: tuple[str, ...] = ()
    selected: tuple[tuple[str, tuple[str, ...]], ...] = ()
    repeats: int = 1
    note: str = ""
    fresh: bool = False
    rerun_stale: bool = False
    fault_retries: int = 1
    isolation: str = "auto"
    fail_unsolved: bool = False
    last_failed: bool = False
    models_named: bool = True
    interval: str = "wilson"
    midp: bool = False
    baseline: str = ""
    budget_usd: float | None = None
    budget_tokens: int | None = None
    split: str = ""
    draw: str = ""
    """How cases were chosen, in words."""
    drawn: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """A pack's folder and the case ids that a split or a sample leaves; none: all of them."""

    def to_json(self) -> str:
        """Return the form that travels to workers."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Read ``to_json``'s form back."""
        data = json.loads(text)
        data["models"] = tuple(data["models"])
        data["packs"] = tuple(data["packs"])
        data["lent"] = tuple(data["lent"])
        for name in ("selected", "drawn"):
            data[name] = tuple((folder, tuple(ids)) for folder, ids in data[name])
        return cls(**data)

    def cases_of(self, pack_folder: Path) -> tuple[str, ...]:
        """Return the case ids that the command line selects of a pack; empty: all."""
        return dict(self.selected).get(str(pack_folder), ())


def project_root(folder: Path | None = None) -> Path:
    """Return the nearest folder with a modelbench.toml, upwards from the current one or another.

    It is the one that the search begins in where no folder has one.
    """
    start = Path.cwd() if folder is None else folder
    return next((one for one in (start, *start.parents) if (one / REGISTRY).is_file()), start)


def in_project(name: str) -> Path:
    """Return a folder of the project of the current folder, as it is named from there."""
    return Path(os.path.relpath(project_root() / name))


def utc_now() -> str:
    """Return the time as records hold it: UTC, ISO 8601, milliseconds, Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_run_id() -> str:
    """Return a name for a run that no other run on any machine has."""
    return os.urandom(6).hex()
