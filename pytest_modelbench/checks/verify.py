"""From an observation to a verdict: a pure function, that can be repeated on kept evidence."""

from __future__ import annotations

import re

from pytest_modelbench.checks.observation import (
    GRADER_VERSION,
    IN_PROCESS,
    SEPARATE,
    Observation,
    Row,
)
from pytest_modelbench.records import Check, Trust, Verdict

WRONG = "wrong"
TIME = "grading-time"
NO_EVIDENCE = "no-evidence"

_REASON = re.compile(r"[A-Za-z][A-Za-z0-9 _-]{0,59}")


def verify(observation: Observation) -> Verdict:
    """Return the verdict that an observation gives.

    Passed only if every expected check was reported passed exactly once, at its call, and nothing
    else was reported, the session ended by its own account with exit 0, and in time. Missing,
    doubled or odd evidence is never a pass.
    """
    rows: dict[str, list[Row]] = {}
    for row in observation.rows:
        rows.setdefault(row.name, []).append(row)
    checks = [_check(name, rows.get(name, []), observation) for name in observation.expected]
    expected = set(observation.expected)
    checks += [
        Check(name=name, passed=False, reason="not expected", trust=Trust.least(_trusts(found)))
        for name, found in rows.items()
        if name not in expected
    ]
    sound = (
        observation.kind in (SEPARATE, IN_PROCESS)
        and observation.grader == GRADER_VERSION
        and bool(checks)
        and len(expected) == len(observation.expected)
        and observation.ended
        and observation.exit == 0
        and not observation.timed_out
        and observation.seconds >= 0
    )
    passed = sound and all(check.passed for check in checks)
    return Verdict(
        passed=passed,
        reward=1.0 if passed else 0.0,
        checks=tuple(checks),
        reason="" if passed else _why(observation, checks),
        trust=Trust.least([*_weakest(observation), *(check.trust for check in checks)]),
    )


def _check(name: str, rows: list[Row], observation: Observation) -> Check:
    trust = Trust.least(_trusts(rows))
    match rows:
        case []:
            reason = "timed out" if observation.timed_out else "not reported"
        case [Row(outcome="passed", phase="call")]:
            return Check(name=name, passed=True, trust=trust)
        case _:
            bad = [row for row in rows if row.outcome != "passed" or row.phase != "call"]
            reason = bad[0].reason or bad[0].outcome if bad else "reported twice"
    return Check(name=name, passed=False, reason=_short(reason), trust=trust)


def _why(observation: Observation, checks: list[Check]) -> str:
    if observation.timed_out:
        return TIME
    return WRONG if any(not check.passed for check in checks) else NO_EVIDENCE


def _weakest(observation: Observation) -> list[Trust]:
    """Return the trust of a kind of grading, which no row of it exceeds."""
    return [] if observation.kind == SEPARATE else [Trust.EVIDENT]


def _trusts(rows: list[Row]) -> list[Trust]:
    return [row.trust for row in rows]


def _short(reason: str) -> str:
    return reason if _REASON.fullmatch(reason) else "failed"
