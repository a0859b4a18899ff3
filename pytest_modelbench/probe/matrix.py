"""A probe as lines of a terminal: what there is, and what to do about what there is not."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pytest_modelbench.probe.finding import Finding, Probe
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.masking import Masking

NAME = 22


def heading(candidate: str, model: str, api_base: str, *, utf8: bool = True) -> str:
    """Return the first line."""
    where = f" at {api_base}" if api_base else ""
    return escape(f"probe of {candidate}: {model}{where}", utf8=utf8)


def row(finding: Finding, width: int = 80, *, utf8: bool = True) -> list[str]:
    """Return one finding; servers' words in it can do nothing to a terminal."""
    head = f"{finding.name:<{NAME}} {finding.state.value:<8} "
    text = escape(Masking().text(finding.text), utf8=utf8)
    return textwrap.wrap(
        text or "-", max(width, 60), initial_indent=head, subsequent_indent=" " * len(head)
    )


def remedies(findings: Sequence[Finding], width: int = 80, *, utf8: bool = True) -> list[str]:
    """Return what to do, a paragraph for each finding that needs something."""
    lines: list[str] = []
    seen: set[str] = set()
    for finding in findings:
        if not finding.remedy or finding.remedy in seen:
            continue
        seen.add(finding.remedy)
        text = escape(f"{finding.name}: {finding.remedy}", utf8=utf8)
        lines += textwrap.wrap(text, max(width, 60), initial_indent="  ", subsequent_indent="    ")
    return ["", "What to do", *lines] if lines else []


def render(found: Probe, width: int = 80, *, utf8: bool = True) -> list[str]:
    """Return a whole probe."""
    lines = [heading(found.candidate, found.model, found.api_base, utf8=utf8)]
    for finding in found.findings:
        lines += row(finding, width, utf8=utf8)
    return [*lines, *remedies(found.findings, width, utf8=utf8)]
