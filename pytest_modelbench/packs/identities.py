"""The parts of a cell's identity that come from its case."""

from __future__ import annotations

from importlib import metadata
from typing import NamedTuple

from pydantic import JsonValue

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.identity import check_digest, reference_digest, task_digest
from pytest_modelbench.packs.model import DAMAGED_MANIFEST, Case


class CaseIdentity(NamedTuple):
    """The digests of a case: what is asked, what judges, what proves."""

    task: str
    check: str
    reference: str


def identity_of(case: Case, *, protocol: JsonValue, grader: str) -> CaseIdentity:
    """Return the digests of a case as it stands on the disk.

    ``protocol`` is the version of the case's protocol with the tools and schemas that it offers,
    ``grader`` the version of the grader. Title, tags, group and notes enter none. PackProblem where
    a library that ``[check] versions`` names is not installed.
    """
    return CaseIdentity(
        task=task_digest(
            prompt=case.prompt,
            seed=case.seed,
            limits=case.limits,
            protocol=[case.protocol, protocol],
            packages=case.environment.packages,
            network=case.network,
        ),
        check=check_digest(
            hidden=case.hidden,
            mode=case.check.mode,
            seconds=case.check.seconds,
            grader=grader,
            versions={name: _version(name, case) for name in case.check.versions},
        ),
        reference=reference_digest(
            case.reference,
            {one.name: (one.folder, one.loses) for one in case.damaged},
            leave_out=(DAMAGED_MANIFEST,),
        ),
    )


def _version(name: str, case: Case) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError as error:
        raise PackProblem(
            f"the checks of pack {case.pack!r} need {name!r}, which is not installed",
            path=case.manifest,
            remedy=f"install {name}, or remove it from [check] versions",
        ) from error
