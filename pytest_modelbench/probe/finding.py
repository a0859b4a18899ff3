"""What was found by asking: one finding a question, and all of one candidate as a record."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, JsonValue

from pytest_modelbench.records import Record


class State(StrEnum):
    """What a question came to."""

    YES = "yes"
    NO = "no"
    PARTLY = "partly"
    UNKNOWN = "unknown"


class Finding(Record):
    """The answer to one question: ``text`` is what was seen, ``remedy`` what to do where it lacks.

    ``facts`` are figures for who reads the stored probe by program.
    """

    name: str
    state: State
    text: str
    remedy: str = ""
    facts: dict[str, JsonValue] = Field(default_factory=dict)


class Probe(Record):
    """One probe of one candidate, as it is kept beside the results."""

    schema_version: int = Field(default=1, alias="schema")
    candidate: str
    model: str
    api_base: str = ""
    note: str = ""
    started: str
    seconds: float
    findings: tuple[Finding, ...]
    facts: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Tell whether the candidate answered at all."""
        return any(one.name == "alive" and one.state is State.YES for one in self.findings)
