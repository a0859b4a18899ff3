"""Whether the model that answered is the one that was asked for."""

from __future__ import annotations

import re

from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.records import Candidate

_VERSION = re.compile(r"[-@:](latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|v\d+(?::\d+)?)\Z")


def same_model(asked: str, reply: Reply, candidate: Candidate) -> bool:
    """Tell whether a reply comes from the model that was asked for.

    The rule: names are compared without their case, their path and the file's ending. They must be
    equal, or differ only in that one of them has a date or version and the other has none
    (``gpt-4o`` and ``gpt-4o-2024-08-06``; not ``gpt-4-0613`` and ``gpt-4-1106``). Other names are
    the same where the candidate says so: ``served_as`` (a name or a list) or ``base_model`` among
    its facts, or its ``same_as``. A server that names no model is not doubted.
    """
    if not reply.served_model or not asked:
        return True
    served_as = candidate.facts.get("served_as")
    listed = served_as if isinstance(served_as, list) else [served_as]
    names = [asked, *listed, candidate.facts.get("base_model"), candidate.same_as]
    return any(_alike(name, reply.served_model) for name in names if isinstance(name, str) and name)


def _alike(one: str, other: str) -> bool:
    (stem, version), (other_stem, other_version) = _parts(one), _parts(other)
    if stem != other_stem:
        return False
    return version == other_version or not version or not other_version


def _parts(name: str) -> tuple[str, str]:
    name = name.strip().lower().rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf")
    found = _VERSION.search(name)
    if found is None:
        return name, ""
    version = found.group(1)
    return name[: found.start()], "" if version == "latest" else version.replace("-", "")
