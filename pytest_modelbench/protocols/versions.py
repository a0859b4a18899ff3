"""The versions of the protocols: parts of identities, known without what a protocol brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pytest_modelbench.benchmarks.loops_version import LOOPS_VERSION
from pytest_modelbench.candidates.agent_version import AGENT_VERSION
from pytest_modelbench.checks.observation import GRADER_VERSION
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.model import AGENT, BENCHMARK


class Versions(NamedTuple):
    """What of a protocol enters identities.

    ``protocol`` is part of a task's, raised when a case is made into something else to meet;
    ``agent`` of a candidate's, ``grader`` of a check's.
    """

    protocol: str
    agent: str
    grader: str


VERSIONS: Mapping[str, Versions] = {
    AGENT: Versions("1", AGENT_VERSION, GRADER_VERSION),
    BENCHMARK: Versions("1", LOOPS_VERSION, GRADER_VERSION),
}


def versions_of(name: str) -> Versions:
    """Return the versions of a protocol by the name that a pack gives it."""
    if name not in VERSIONS:
        raise UsageProblem(f"there is no protocol {name!r}; there are: {', '.join(VERSIONS)}")
    return VERSIONS[name]
