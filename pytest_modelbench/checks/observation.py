"""The observation of a separate grading: what was seen, kept as evidence, before any verdict."""

from __future__ import annotations

from pydantic import Field, JsonValue

from pytest_modelbench.records import Record, Trust

GRADER_VERSION = "1"
"""Part of a check's identity: raised when the same harvest could be observed otherwise."""

JUDGE_VERSION = "1"
"""Part of the identity of a check that may ask a judge: raised with what ``judge.py`` tells it."""

SEPARATE = "separate"
IN_PROCESS = "in-process"


class Row(Record):
    """One phase of one check. ``text`` may quote hidden expectations; ``reason`` does not."""

    name: str
    outcome: str = Field(description="passed, failed, skipped, xfailed or xpassed")
    phase: str = Field(description="setup, call or teardown")
    reason: str = ""
    text: str = ""
    seconds: float = 0.0
    trust: Trust = Trust.TRUSTED


class Judgement(Record):
    """What a judge said to a check; ``asked`` counts the replies until one could be read."""

    check: str
    score: float
    why: str = ""
    asked: int = 1


class Observation(Record):
    """What one grading saw. ``expected`` was named before any of the candidate's code ran."""

    kind: str = SEPARATE
    expected: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    ended: bool = Field(default=False, description="the end record is there")
    exit: int | None = Field(default=None, description="pytest's exit code, from the end record")
    timed_out: bool = False
    seconds: float = 0.0
    limit_seconds: float = 0.0
    seed: int = 0
    grader: str = GRADER_VERSION
    by: dict[str, str] = Field(
        default_factory=dict, description="what observed: box, python, pytest"
    )
    judged: tuple[Judgement, ...] = Field(default=(), description="what a judge said, in order")
    data: JsonValue = Field(default=None, description="what a benchmark saw; its rules judge it")
