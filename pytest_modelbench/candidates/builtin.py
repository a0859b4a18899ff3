"""The two candidates that are built in: one lays the reference, one does nothing."""

from __future__ import annotations

from pytest_modelbench.candidates.tools import Workbench
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.solutions import solution_files
from pytest_modelbench.records import REFERENCE, SEED, Candidate


def damaged_reference(variant: str) -> Candidate:
    """Return the candidate that lays a damaged variant of each case's reference."""
    return Candidate(name=f"{REFERENCE}+{variant}", agent=REFERENCE)


def play(candidate: Candidate, case: Case, bench: Workbench) -> None:
    """Do what a built-in candidate does in the work tree of a case.

    KeyError for a damaged variant that the case does not have, ValueError for a case without a
    reference, and for a candidate that is not built in.
    """
    if candidate.agent == SEED:
        return
    if candidate.agent != REFERENCE:
        raise ValueError(f"candidate {candidate.name} is not built in")
    _, _, variant = candidate.name.partition("+")
    for place, source in solution_files(case, variant or None).items():
        bench.write(place, source.read_bytes())
