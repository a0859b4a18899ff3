"""A whole probe: every question in its order, and what is kept of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.probe import questions
from pytest_modelbench.probe.asking import Asking
from pytest_modelbench.probe.finding import Finding, Probe, State
from pytest_modelbench.probe.speed import WIDTHS, speed
from pytest_modelbench.records import Candidate
from pytest_modelbench.settings import new_run_id, utc_now
from pytest_modelbench.store.layout import prepare, quoted

FOLDER = ".probes"
"""Below the results; committed with them."""


def probe(
    candidate: Candidate,
    *,
    note: str = "",
    call_seconds: float = 300.0,
    widths: tuple[int, ...] = WIDTHS,
    said: Callable[[Finding], None] = lambda finding: None,
) -> Probe:
    """Ask a candidate everything; ``said`` gets each finding as it comes.

    A candidate that does not answer at all is asked no more. About twenty short calls, and one
    that is too long on purpose.
    """
    started, began = utc_now(), time.monotonic()
    findings: list[Finding] = []
    with Asking(candidate, call_seconds) as ask:
        for finding in _questions(ask, candidate, widths):
            findings.append(finding)
            said(finding)
    facts: dict[str, JsonValue] = {}
    for finding in findings:
        facts |= finding.facts
        facts.setdefault(finding.name, finding.state.value)
    return Probe(
        candidate=candidate.name,
        model=candidate.model,
        api_base=candidate.api_base,
        note=note or candidate.note,
        started=started,
        seconds=round(time.monotonic() - began, 1),
        findings=tuple(findings),
        facts=facts,
    )


def _questions(ask: Asking, candidate: Candidate, widths: tuple[int, ...]) -> Iterator[Finding]:
    first = questions.alive(ask)
    yield first
    if first.state is State.NO:
        return
    yield from questions.served_model(ask, candidate)
    yield questions.window(ask, candidate)
    yield from questions.tools(ask)
    yield questions.schema(ask)
    yield questions.streaming(ask)
    yield questions.caching(ask)
    yield questions.seeds(ask)
    yield speed(ask, widths)


def keep(found: Probe, results: Path) -> Path:
    """Write a probe beside the results and return its file."""
    prepare(results)
    folder = results / FOLDER / quoted(found.candidate)
    folder.mkdir(parents=True, exist_ok=True)
    moment = found.started.replace("-", "").replace(":", "").partition(".")[0]
    path = folder / f"{moment}Z-{new_run_id()}.json"
    data = found.model_dump(mode="json", by_alias=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="ascii")
    return path


def newest(candidate: str, results: Path) -> Probe | None:
    """Return the newest probe of a candidate that is kept, None for none."""
    files = sorted((results / FOLDER / quoted(candidate)).glob("*.json"))
    return Probe.model_validate_json(files[-1].read_text(encoding="ascii")) if files else None
