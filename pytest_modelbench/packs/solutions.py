"""The files of a reference and of its damaged variants, as they are laid over a seed."""

from __future__ import annotations

from pathlib import Path

from pytest_modelbench.identity import content_files
from pytest_modelbench.packs.model import DAMAGED_MANIFEST, Case


def solution_files(case: Case, variant: str | None = None) -> dict[str, Path]:
    """Return place → source of the reference's files, those of a damaged variant laid over them.

    Places use ``/``. A variant holds only what it changes. KeyError for a variant that the case
    does not have, ValueError where it has no reference.
    """
    if case.reference is None:
        raise ValueError(f"case {case.id!r} of pack {case.pack!r} has no reference")
    files = {file.name: file.path for file in content_files(case.reference)}
    if variant is not None:
        damaged = {one.name: one for one in case.damaged}[variant]
        files |= {
            file.name: file.path
            for file in content_files(damaged.folder)
            if file.name != DAMAGED_MANIFEST
        }
    return files
