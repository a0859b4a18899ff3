"""The parts of a cell's identity that come from its case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import NamedTuple

from pydantic import JsonValue

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.identity import check_digest, reference_digest, task_digest
from pytest_modelbench.packs.model import DAMAGED_MANIFEST, Case, CheckSpec
from pytest_modelbench.packs.source import BenchmarkCase, Source


class CaseIdentity(NamedTuple):
    """The digests of a case: what is asked, what judges, what proves."""

    task: str
    check: str
    reference: str


def identity_of(
    case: Case, *, protocol: JsonValue, grader: str, judge: Sequence[str] = ()
) -> CaseIdentity:
    """Return the digests of a case as it stands on the disk.

    ``protocol`` is the version of the case's protocol with the tools and schemas that it offers,
    ``grader`` the version of the grader, ``judge`` the identity of the model that checks may ask.
    Title, tags, group and notes enter none. PackProblem where a library that ``[check] versions``
    names is not installed.
    """
    if case.source is not None and case.given is not None:
        return _of_given(case, case.source, case.given, protocol=protocol, grader=grader)
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
            mode=_mode(case.check),
            seconds=case.check.seconds,
            grader=grader,
            versions={name: _version(name, case) for name in case.check.versions},
            judge=judge,
        ),
        reference=reference_digest(
            case.reference,
            {one.name: (one.folder, one.loses) for one in case.damaged},
            leave_out=(DAMAGED_MANIFEST,),
        ),
    )


def _mode(check: CheckSpec) -> str:
    """Return how a case is judged, with what is demanded of its trust where anything is."""
    if check.least_trust is CheckSpec.least_trust:
        return check.mode
    return f"{check.mode}, {check.least_trust} at least"


def _of_given(
    case: Case, source: Source, given: BenchmarkCase, *, protocol: JsonValue, grader: str
) -> CaseIdentity:
    """Return the digests of a case that a benchmark gives: of its data and its rules' versions.

    The code of a benchmark that is a file of the pack counts to what judges: a result is judged
    again when it changed, and asked for again when its author raises ``version``.
    """
    benchmark = source.benchmark
    task = _data_digest(
        {
            "prompt": given.prompt,
            "public": given.public,
            "world": given.world,
            "limits": case.limits.model_dump(mode="json", exclude_none=True),
            "protocol": [case.protocol, protocol, source.name, benchmark.version],
        }
    )
    check = _data_digest(
        {
            "private": given.private.data,
            "rules": [benchmark.rules_version, source.code, grader],
            "versions": {name: _version(name, case) for name in case.check.versions},
            **({} if case.check.threshold is None else {"threshold": case.check.threshold}),
        }
    )
    # What a reference answers follows from the data and the code; both are in the check.
    damaged = {name: sorted(loses) for name, loses in given.damaged.items()}
    return CaseIdentity(task, check, _data_digest({"check": check, "damaged": damaged}))


def _data_digest(value: Mapping[str, object]) -> str:
    """Return the digest of JSON data as it was read, in a fifth of the time of ``digest``.

    A benchmark has thousands of cases. ``1.0`` is not ``1`` here, as it is not in their files.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _version(name: str, case: Case) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError as error:
        raise PackProblem(
            f"the checks of pack {case.pack!r} need {name!r}, which is not installed",
            path=case.manifest,
            remedy=f"install {name}, or remove it from [check] versions",
        ) from error
