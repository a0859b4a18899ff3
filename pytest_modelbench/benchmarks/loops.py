"""How a model meets a case of a benchmark: one answer, or a loop of tool calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from pytest_modelbench.benchmarks.tools import Tool, run_tool, schema_of
from pytest_modelbench.candidates import prompts
from pytest_modelbench.candidates.clock import Clock, End
from pytest_modelbench.candidates.loop import Model
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, ToolCall
from pytest_modelbench.records import Limits

TURNS = 50
"""The limit on turns of a tool loop where none is declared: a loop must end."""

COUNTED = (
    "turns",
    "calls",
    "invented_tools",
    "unreadable_arguments",
    "failed_calls",
    "tool_calls_as_text",
)
"""What is counted in every attempt, 0 among it."""

DETAIL_CHARS = 500
OUTPUT_CHARS = 16_000


@dataclass(frozen=True)
class Call:
    """One call as the model made it; ``arguments`` None where they could not be read."""

    name: str
    arguments: Mapping[str, JsonValue] | None


@dataclass(frozen=True)
class Met:
    """What came of a meeting.

    ``replied`` tells whether the candidate said anything at all; ``text`` is its last answer,
    ``calls`` are all that it made, also those of tools that there are not. ``end`` is '' in the
    ordinary way, else a short stable word (``step-limit``, ``time-limit``, ``no-answer``, or the
    reason of a failed reply).
    """

    replied: bool = False
    text: str | None = None
    calls: tuple[Call, ...] = ()
    end: str = ""
    detail: str = ""


Act = Callable[[str, dict[str, JsonValue]], tuple[str, bool]]
Solver = Callable[[Sequence[JsonValue], Sequence[JsonValue], Act], str | None]
"""A function candidate: given messages, schemas and a way to call tools, it returns its text."""


@dataclass
class Loop:
    """What a meeting needs: what is said first, tools, the model, limits; counts as it goes on.

    A function candidate has no ``model`` and is a ``solver``; the supplied loops are for both.
    """

    messages: list[JsonValue]
    tools: Sequence[Tool]
    model: Model | None
    limits: Limits
    tuning: Tuning
    counts: Counter[str]
    solver: Solver | None = None
    world: object = None
    """What `setup` made, for a benchmark with a `drive` of its own."""
    calls: list[Call] = field(default_factory=list)
    text: str | None = None
    replied: bool = False

    def __post_init__(self) -> None:
        self.clock = Clock(self.limits)
        self.counts.update(dict.fromkeys(COUNTED, 0))
        self._schemas: list[JsonValue] = [schema_of(tool) for tool in self.tools]

    def offer(self, tools: Sequence[Tool]) -> None:
        """Offer other tools from now on."""
        self.tools = tools
        self._schemas = [schema_of(tool) for tool in tools]

    def ask(self) -> Reply:
        """Make one call of the model; End where it is over, Fault where it is not its doing."""
        if self.model is None:
            what = "this benchmark asks a model turn by turn, and a function cannot be asked so"
            raise Fault("function", what, permanent=True)
        self.clock.check()
        choice = self.tuning.tool_choice
        reply = self.model.chat(
            list(self.messages),
            self._schemas or None,
            {"tool_choice": choice} if choice and self._schemas else None,
            working_left=self.clock.working_left,
            wall_left=self.clock.wall_left,
        )
        self.clock.held += reply.held_seconds
        self.counts["turns"] += 1
        if reply.reason == "tool-call-as-text":
            self.counts["tool_calls_as_text"] += 1
        if reply.outcome is ReplyOutcome.RESULT_FAIL and reply.reason not in _ANSWERED:
            raise End(reply.reason, reply.quote)
        self.replied = True
        self.text = reply.answer
        self.messages.append(reply.message())
        self.calls += [Call(call.name, call.arguments) for call in reply.tool_calls]
        self.counts["calls"] += len(reply.tool_calls)
        return reply

    def act(self, calls: Sequence[ToolCall]) -> bool:
        """Do the calls of a reply in their order; return True once one of them was the last word.

        What comes behind that in the same reply is not done.
        """
        for call in calls:
            text, ended = self._do(call)
            self.messages.append({"role": "tool", "tool_call_id": str(call.id), "content": text})
            if ended:
                return True
        return False

    def solve(self, solver: Solver) -> Met:
        """Let a function have its way: its calls are done as they come, its result is the text."""

        def act(name: str, arguments: dict[str, JsonValue]) -> tuple[str, bool]:
            self.replied = True
            self.calls.append(Call(name, arguments))
            self.counts["calls"] += 1
            failed = self._failed
            text, ended = self._do(ToolCall(id=None, name=name, arguments=arguments))
            if ended:
                raise End()
            return text, failed == self._failed

        try:
            self.text = solver(self.messages, self._schemas, act)
        except End as end:
            return self.over(end)
        self.replied = self.replied or self.text is not None
        self.messages.append({"role": "assistant", "content": self.text or ""})
        return self.over()

    @property
    def _failed(self) -> int:
        return self.counts["failed_calls"] + self.counts["invented_tools"]

    def over(self, end: End | None = None) -> Met:
        """Return what came of it."""
        reason, detail = ("", "") if end is None else (end.reason, end.detail[:DETAIL_CHARS])
        return Met(self.replied, self.text, tuple(self.calls), reason, detail)

    def _do(self, call: ToolCall) -> tuple[str, bool]:
        tool = next((one for one in self.tools if one.name == call.name), None)
        if tool is None:
            self.counts["invented_tools"] += 1
            return prompts.unknown_tool(call.name, [one.name for one in self.tools]), False
        if call.arguments is None:
            self.counts["unreadable_arguments"] += 1
            return prompts.unreadable(call.problem_text), False
        text, worked = run_tool(tool, call.arguments)
        if not worked:
            self.counts["failed_calls"] += 1
        return prompts.clip(text, self.limits.output_chars or OUTPUT_CHARS), worked and tool.ends


_ANSWERED = ("empty-answer", "no-answer-after-reasoning", "tool-call-as-text")
"""Reasons of a failed reply that is an answer still, if an empty or an odd one."""


def one_answer(loop: Loop) -> Met:
    """Ask once; the calls of the reply are done, and nobody looks at their results."""
    if loop.solver is not None:
        return loop.solve(loop.solver)
    try:
        loop.act(loop.ask().tool_calls)
    except End as end:
        return loop.over(end)
    return loop.over()


def tool_loop(loop: Loop) -> Met:
    """Ask until a reply calls no tool, or a call is the last word, or a limit ends it."""
    if loop.solver is not None:
        return loop.solve(loop.solver)
    newest, repeats = "", 0
    try:
        for _ in range(loop.limits.turns or TURNS):
            reply = loop.ask()
            if not reply.tool_calls:
                return loop.over()
            made = json.dumps([(call.name, call.raw) for call in reply.tool_calls])
            repeats = repeats + 1 if made == newest else 1
            newest = made
            if repeats > loop.tuning.repeat_limit:
                raise End("step-limit", f"the same call {repeats} times: {made[:200]}")
            if loop.act(reply.tool_calls):
                return loop.over()
        raise End("step-limit", f"{loop.counts['turns']} turns")
    except End as end:
        return loop.over(end)
