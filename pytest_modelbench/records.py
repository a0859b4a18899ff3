"""Frozen records and their JSON form: what travels between modules, processes and files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

# Handed on, for those who work with records.
from pytest_modelbench.words import BUILT_IN as BUILT_IN
from pytest_modelbench.words import REFERENCE as REFERENCE
from pytest_modelbench.words import SCHEMA as SCHEMA
from pytest_modelbench.words import SEED as SEED
from pytest_modelbench.words import Cell as Cell
from pytest_modelbench.words import Outcome as Outcome
from pytest_modelbench.words import Role as Role
from pytest_modelbench.words import Stage as Stage
from pytest_modelbench.words import Trust as Trust

SEAL = "digest"
"""The last field of a line: the digest of all before it."""


def sealed(data: Mapping[str, object]) -> str:
    """Return the JSON line of some data, with its seal at the end.

    A seal finds a line that was edited by hand, or harmed. It is no signature: who forges a line
    can make its seal, too.
    """
    text = json.dumps(data, separators=(",", ":"))
    return f'{text[:-1]},"{SEAL}":"{_digest(text)}"}}'


def seal_holds(data: Mapping[str, JsonValue]) -> bool | None:
    """Tell whether a line, as parsed, is what its seal says; None for one without a seal."""
    if SEAL not in data:
        return None
    rest = {name: value for name, value in data.items() if name != SEAL}
    return data[SEAL] == _digest(json.dumps(rest, separators=(",", ":")))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Seconds or dollars."""


class Record(BaseModel):
    """Base of the records that cross a border (file, wire, process).

    What checks a record is built when the first of its kind is made: most runs make few kinds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Declared(Record):
    """Base of what a user declares in a file. TOML has infinity, and JSON, its way on, has none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Limits(Declared):
    """What an attempt may use. None: no limit. Times in seconds, ``usd`` at list price."""

    turns: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0, description="working time")
    wall_seconds: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0, description="input and output together")
    usd: float | None = Field(default=None, gt=0)
    command_seconds: float | None = Field(default=None, gt=0)
    output_chars: int | None = Field(default=None, gt=0, description="of one tool result")

    def within(self, other: Limits) -> Limits:
        """Return the smaller limit of the two, field by field."""
        mine, theirs = self.model_dump(), other.model_dump()
        return Limits(
            **{
                name: min(x for x in (mine[name], theirs[name]) if x is not None)
                if mine[name] is not None or theirs[name] is not None
                else None
                for name in mine
            }
        )


class Identity(Record):
    """Content hashes of the four parts; each change invalidates the least."""

    task: str
    check: str
    candidate: str
    reference: str = ""


class Check(Record):
    """The outcome of one named check. ``reason`` never quotes hidden material."""

    name: str
    passed: bool
    reason: str = ""
    trust: Trust = Trust.TRUSTED
    reward: float | None = Field(default=None, ge=0, le=1)


class Verdict(Record):
    """Passed or not, with a reward in [0, 1] and the named checks.

    ``reason`` says in a short stable word why it is not a pass: ``wrong`` (a check failed),
    ``no-answer``, ``step-limit``, ``time-limit``, ``context-exceeded``, ``escalated``, …
    """

    passed: bool
    reward: float = Field(ge=0, le=1)
    checks: tuple[Check, ...] = ()
    reason: str = ""
    trust: Trust = Trust.TRUSTED
    measures: dict[str, float] = Field(
        default_factory=dict, description="figures told beside it; nothing is decided by them"
    )


class FaultRecord(Record):
    """A fault as it is stored; ``text`` is short and holds no secret."""

    kind: str
    stage: Stage
    text: str = ""
    status: int | None = None
    permanent: bool = False


class Flag(Record):
    """A call that a person should look at: kind, the turn it was made in, its words, shortened."""

    kind: str
    step: int = 0
    line: str = ""


class Usage(Record):
    """What one role of one attempt used, summed over its calls. None: unknown, which is never 0.

    ``input`` is all input, cached and cache-written tokens among it. ``unmetered`` counts the calls
    whose usage the server did not say; the token sums then cover the other calls only.
    """

    requests: Count = 0
    calls: Count = 0
    unmetered: Count = 0
    input: Count | None = None
    cached: Count | None = None
    cache_written: Count | None = None
    output: Count | None = None
    reasoning: Count | None = None
    list_usd: Amount | None = None
    billed_usd: Amount | None = None
    retries: Count = 0
    waits: Count = 0
    wait_seconds: Amount = 0.0
    price: str = Field(default="", description="where the list price comes from")
    derived_usd: Amount | None = Field(
        default=None,
        description="on one's own server: its usd_per_hour over the output tokens a second that "
        "it was measured at; an estimate, apart from list and billed",
    )
    reported_usd: Amount | None = Field(
        default=None, description="what an agent program says it cost: shown, and never counted"
    )


class Line(Record):
    """Base of the records that are lines of a results file; what a line says ends in its seal."""

    @model_validator(mode="before")
    @classmethod
    def _without_seal(cls, data: object) -> object:
        if isinstance(data, dict) and SEAL in data:
            return {name: value for name, value in data.items() if name != SEAL}
        return data


class AttemptRecord(Line):
    """One line of a results file: one try of one cell, or a regrade of a stored harvest."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    kind: str = Field(default="attempt", pattern="^(attempt|regrade)$")
    id: str
    run: str
    series: str = Field(default="", description="'' until a fresh start names a new one")
    pack: str
    case: str
    candidate: str
    repeat: int = Field(ge=1)
    tries: int = Field(default=1, ge=1, alias="try", description="which try of the cell in its run")
    identity: Identity
    outcome: Outcome
    verdict: Verdict | None = None
    fault: FaultRecord | None = None
    started: str = Field(description="UTC, ISO 8601 with milliseconds and Z")
    seconds: Amount = Field(description="wall time")
    working: Amount | None = Field(default=None, description="wall time less what the gateway held")
    usage: dict[Role, Usage] = Field(default_factory=dict)
    counts: dict[str, Count] = Field(
        default_factory=dict,
        description="turns, prose_turns, invented_tools, unreadable_arguments, "
        "failed_commands, context_trims, …",
    )
    flags: tuple[Flag, ...] = Field(default=(), description="the first ones; ``counts`` has all")
    end: str = Field(default="", description="how the work ended; '' in the ordinary way")
    detail: str = Field(default="", description="more of the end, in words for a reader")
    box: str = Field(default="", description="isolation level really used")
    served_model: str = ""
    scripted: bool = False
    note: str = ""
    evidence: dict[str, str] = Field(
        default_factory=dict, description="harvest, observation, transcript, judge → 'sha256:…'"
    )
    harvest: dict[str, str] | None = Field(
        default=None, description="files up to 4 kB in all kept in the line, else evidence holds it"
    )
    versions: dict[str, str] = Field(
        default_factory=dict, description="of what was at work: program, judge (the model)"
    )
    grades: str = Field(
        default="", description="a regrade: id of the attempt whose harvest it judges"
    )

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @property
    def cell(self) -> Cell:
        """Return the cell that this try belongs to."""
        return Cell(self.pack, self.case, self.candidate, self.repeat)

    def to_line(self) -> str:
        """Return the JSON line, newline excluded; fields at their default are left out.

        ASCII only, so that half a surrogate pair survives (FR20). Ends in a digest of the rest.
        """
        data = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return sealed({"schema": self.schema_version, "kind": self.kind} | data)


class CheckRecord(Line):
    """One line of a results file: what a user's own test found of one attempt.

    ``name`` is the test's node id without its cell, ``source`` the digest of its source: a changed
    test is another check. ``reason`` is the assertion's first line.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    kind: str = Field(default="check", pattern="^check$")
    id: str
    run: str
    pack: str
    case: str
    candidate: str
    repeat: int = Field(ge=1)
    attempt: str = Field(description="id of the attempt that was judged")
    name: str
    source: str
    passed: bool
    reason: str = ""
    started: str = Field(description="UTC, ISO 8601 with milliseconds and Z")
    seconds: float = Field(description="wall time of the test's body")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @property
    def cell(self) -> Cell:
        """Return the cell whose attempt was judged."""
        return Cell(self.pack, self.case, self.candidate, self.repeat)

    def to_line(self) -> str:
        """Return the JSON line, newline excluded; fields at their default are left out."""
        data = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return sealed({"schema": self.schema_version, "kind": self.kind} | data)


class UsageWindow(Declared):
    """What may be used of something within some hours: tokens, requests or usd."""

    hours: float = Field(gt=0)
    tokens: int | None = Field(default=None, gt=0, description="input and output together")
    requests: int | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _bounds_something(self) -> UsageWindow:
        if self.tokens is None and self.requests is None and self.usd is None:
            raise ValueError("a window needs tokens, requests or usd")
        return self


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Windows = Annotated[tuple[UsageWindow, ...], BeforeValidator(_as_tuple)]
"""Windows as a file declares them: a list there, which a strict tuple would refuse."""


class Server(Declared):
    """``[servers.NAME]`` of modelbench.toml.

    ``start``, ``stop`` and ``ready`` are shell commands around the turn of each of its models.
    ``turns`` false: its models are served side by side.
    """

    name: str
    start: str = ""
    stop: str = ""
    ready: str = ""
    ready_seconds: float = Field(default=600.0, gt=0)
    turns: bool = True
    concurrency: int | None = Field(default=None, gt=0)
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)
    windows: Windows = ()
    usd_per_hour: float | None = Field(default=None, ge=0)


class Command(Record):
    """``[candidates.NAME.command]``: an agent program, how it is started and how its end is read.

    ``{task}``, ``{base_url}`` and the other places are filled in in ``argv``, ``stdin``,
    ``environment`` and ``files`` (by their path below the program's home).
    """

    argv: list[str]
    programs: list[str] = Field(
        default_factory=list,
        description="folders of the host that it needs: FOLDER or FOLDER:IN-BOX",
    )
    stdin: str = ""
    environment: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    version: list[str] = Field(default_factory=list, description="command that prints its version")
    result: str = Field(default="exit", description="exit, or json:PATH of what says it failed")
    success: list[str] = Field(
        default_factory=list, description="values at PATH that are no failure; else any true one is"
    )
    result_file: str = Field(default="", description="below its home, beside its output")
    cost: str = Field(default="", description="json:PATH of the USD that it says it cost")


class Candidate(Declared):
    """What is measured: ``[candidates.NAME]`` of modelbench.toml, or a raw LiteLLM model name."""

    name: str
    agent: str = Field(
        default="loop", description="loop, command, function, scripted, reference, seed"
    )
    model: str = ""
    api_base: str = ""
    api_key_env: str = Field(default="", description="name of the variable that holds the key")
    server: str = ""
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)
    windows: Windows = ()
    budget_usd: float | None = Field(default=None, gt=0, description="of one run, all its attempts")
    budget_tokens: int | None = Field(default=None, gt=0)
    params: dict[str, JsonValue] = Field(default_factory=dict, description="temperature, seed, …")
    tuning: dict[str, JsonValue] = Field(default_factory=dict, description="of the agent loop")
    limits: Limits = Limits()
    options: dict[str, JsonValue] = Field(
        default_factory=dict, description="handed to the protocol"
    )
    script: str = Field(default="", description="scripted: path of the script, absolute")
    note: str = ""
    facts: dict[str, JsonValue] = Field(
        default_factory=dict, description="LiteLLM model_info declared"
    )
    list_price_of: str = ""
    price: dict[str, float] = Field(
        default_factory=dict,
        description="usd per million tokens: input, output, cached, cache_written",
    )
    same_as: str = Field(
        default="", description="an address that is the same service, for identity"
    )
    speaks: list[Literal["messages", "responses"]] = Field(
        default_factory=list, description="APIs beside chat that its server speaks itself"
    )
    command: Command | None = Field(default=None, description="of agent = command")
    function: str = Field(default="", description="of agent = function: package.module:name")
    root: str = Field(default="", description="of a function: the project's folder; is no key")

    @property
    def calls_model(self) -> bool:
        """Tell whether attempts of this candidate need the gateway."""
        if self.agent == "command":
            return bool(self.model or self.script)
        return self.agent not in (REFERENCE, SEED, "function")


def to_json(value: BaseModel) -> dict[str, Any]:  # Any: JSON for a wire that takes builtins only
    """Return the builtin-types form that xdist and JSON accept."""
    return value.model_dump(mode="json", by_alias=True)
