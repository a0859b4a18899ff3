"""Between attempts and pytest's reports: what a verdict, a fault and a replay look like."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_modelbench.records import AttemptRecord, Cell
    from pytest_modelbench.store.entry import Entry

Facts = dict[str, Any]  # Any: builtins only, since execnet carries nothing else

SHOWN = 20
"""Users' own tests that were not passed and are listed at the end of a run."""
UNSOLVED, CERTIFIED = "unsolved", "certified"


def facts_of(record: AttemptRecord, *, certifies: bool = False, replayed: bool = False) -> Facts:
    """Return what a report says of an attempt, in builtin types."""
    verdict, fault = record.verdict, record.fault
    known = [usage.list_usd for usage in record.usage.values()]
    return {
        "cell": list(record.cell),
        "attempt": record.id,
        "outcome": record.outcome.value,
        "lost": [c.name for c in verdict.checks if not c.passed] if verdict else [],
        "reason": verdict.reason if verdict else "",
        "fault": fault.kind if fault else "",
        "permanent": bool(fault and fault.permanent),
        "fault_text": fault.text if fault else "",
        "certifies": certifies,
        "replayed": replayed,
        "list_usd": None if any(u is None for u in known) else sum(u for u in known if u),
    }


def replayed_facts(entry: Entry) -> Facts:
    """Return what a report says of a stored verdict, from an index that was read with details."""
    return {
        "cell": [entry.pack, entry.case, entry.candidate, entry.repeat],
        "attempt": entry.id,
        "outcome": "passed" if entry.passed else UNSOLVED,
        "lost": [name for name, _ in entry.detail.failing] if entry.detail else [],
        "reason": entry.reason,
        "fault": "",
        "permanent": False,
        "fault_text": "",
        "certifies": False,
        "replayed": True,
        "list_usd": 0.0,
    }


def check_facts(record: AttemptRecord, *, passed: bool, reason: str, replayed: bool) -> Facts:
    """Return what a report says of a user's own test of an attempt."""
    return facts_of(record, replayed=replayed) | {
        "outcome": "passed" if passed else "unsolved",
        "reason": reason,
        "lost": [],
        "list_usd": 0.0,
        "own": True,
    }


def attach(report: pytest.TestReport, facts: Facts, item: pytest.Item | None = None) -> None:
    """Put facts on a report, for the controller, and as properties, for JUnit.

    JUnit takes the properties of an item's last report, which is made of the item's own.
    """
    report.modelbench = facts  # type: ignore[attr-defined]  # reports carry plugins' attributes
    properties: list[tuple[str, object]] = [
        ("modelbench_outcome", facts["outcome"]),
        ("modelbench_attempt", facts["attempt"]),
    ]
    if facts["reason"]:
        properties.append(("modelbench_reason", facts["reason"]))
    if facts["lost"]:
        properties.append(("modelbench_lost", " ".join(facts["lost"])))
    report.user_properties += properties
    if item is not None:
        item.user_properties += properties


def facts(report: object) -> Facts | None:
    """Return the facts that a report carries, None for a project's own tests."""
    return getattr(report, "modelbench", None)


def refuse(report: pytest.TestReport) -> None:
    """Note on a report of a skip that it was ours: a cell that has no verdict, with the reason."""
    report.modelbench_refused = True  # type: ignore[attr-defined]  # as in attach


def is_refused(report: object) -> bool:
    """Tell whether a skip was ours rather than the user's."""
    return bool(getattr(report, "modelbench_refused", False))


def teststatus(
    report: pytest.TestReport, *, verbose: bool
) -> tuple[str, str, str | tuple[str, dict[str, bool]]] | None:
    """Return category, letter and word of a cell's report; None leaves it to pytest."""
    found = facts(report)
    if found is None:
        return None
    if found["replayed"] and report.passed and not verbose:
        category = UNSOLVED if found["outcome"] == "unsolved" else "passed"
        return category, "", ""  # counted; ten thousand letters of what is known say nothing
    stored = " (stored)" if found["replayed"] else ""
    if report.failed and found["outcome"] == "fault":
        return "error", "E", ("FAULT", {"red": True})
    if not report.passed or report.when != "call":
        return None
    if found["certifies"]:
        return CERTIFIED, "c", f"CERTIFIED{stored}"
    if found["outcome"] == "unsolved":
        why = f" ({_shown(found['reason'])})" if found.get("own") else ""
        return UNSOLVED, "u", (f"UNSOLVED{stored}{why}", {"yellow": True})
    return ("passed", ".", f"PASSED{stored}") if stored else None


def own_lines(reports: Iterable[object]) -> list[str]:
    """Return why attempts did not pass users' own tests, a line each, of the reports of a run."""
    told = [
        f"{getattr(report, 'nodeid', '')}: {_shown(found['reason'])}"
        for report in reports
        if (found := facts(report)) is not None and found.get("own")
    ]
    more = [f"and {len(told) - SHOWN} more: -v shows them"] if len(told) > SHOWN else []
    return [*told[:SHOWN], *more]


def _shown(reason: str) -> str:
    """Return a reason, which may have a candidate's words in it, as it can be printed."""
    from pytest_modelbench.report.escape import escape

    return escape(reason)


def synthetic_report(
    nodeid: str,
    outcome: str,
    *,
    duration: float = 0.0,
    longrepr: Any = None,  # Any: as pytest's
) -> pytest.TestReport:
    """Return a report of a cell that no worker ran in this session."""
    path, _, name = nodeid.partition("::")
    return pytest.TestReport(
        nodeid=nodeid,
        location=(path, None, name),
        keywords={},
        outcome=outcome,  # type: ignore[arg-type]  # passed, failed or skipped
        longrepr=longrepr,
        when="call" if outcome != "skipped" else "setup",
        duration=duration,
    )


def teardown_of(report: pytest.TestReport) -> pytest.TestReport:
    """Return the report that ends an item of which no worker ran anything."""
    return pytest.TestReport(
        nodeid=report.nodeid,
        location=report.location,
        keywords={},
        outcome="passed",
        longrepr=None,
        when="teardown",
        user_properties=report.user_properties,
    )


def replay_report(
    nodeid: str, entry: Entry, record: AttemptRecord | None, *, fail_unsolved: bool
) -> pytest.TestReport:
    """Return the one report of a stored verdict; ``record`` is given for built-in candidates."""
    found = replayed_facts(entry) if record is None else facts_of(record, replayed=True)
    wrong = wrong_for_certificate(entry.cell, found) if record is not None else ""
    if record is None and fail_unsolved and not entry.passed:
        wrong = unsolved_words(entry.cell, found)
    report = synthetic_report(
        nodeid, "failed" if wrong else "passed", duration=entry.seconds, longrepr=wrong or None
    )
    attach(report, found)
    return report


def unsolved_words(cell: Cell, found: Facts) -> str:
    """Return why a verdict is no pass, and the command that shows the attempt."""
    lost = ", ".join(found["lost"])
    return _with_command(f"unsolved ({found['reason']})" + (f": {lost}" if lost else ""), cell)


def _with_command(why: str, cell: Cell) -> str:
    return f"{why}\nnext: modelbench show {shlex.quote(cell.id)}" if why else ""


def wrong_for_certificate(cell: Cell, found: Facts, loses: Sequence[str] | None = None) -> str:
    """Return why an attempt is not what a sound case's must be; empty where all is well.

    A reference passes, the untouched seed does not, a damaged variant loses what it names. Other
    candidates may end either way. The command that shows the attempt stands below.
    """
    return _with_command(_wrong_for_certificate(cell, found, loses), cell)


def _wrong_for_certificate(cell: Cell, found: Facts, loses: Sequence[str] | None) -> str:
    passed = found["outcome"] == "passed"
    if cell.candidate == "reference" and not passed:
        lost = ", ".join(found["lost"]) or found["reason"] or "no check passed"
        return f"the reference does not pass: {lost}"
    if cell.candidate == "seed" and passed:
        return "the untouched seed passes: the check cannot tell work from no work"
    if loses is not None and set(loses) != set(found["lost"]):
        return (
            f"damaged variant {cell.variant} should lose {', '.join(sorted(loses))} "
            f"and loses {', '.join(sorted(found['lost'])) or 'nothing'}"
        )
    return ""
