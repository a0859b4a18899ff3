"""The agent: a lean tool loop of our own between a model and a work tree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from pytest_modelbench.candidates import prompts
from pytest_modelbench.candidates.clock import HELD_SHARE as HELD_SHARE  # for who looks for it here
from pytest_modelbench.candidates.clock import Clock, End
from pytest_modelbench.candidates.conversation import Conversation
from pytest_modelbench.candidates.tools import (
    COMMAND_SECONDS,
    NAMES,
    OUTPUT_CHARS,
    SCHEMAS,
    Tools,
    Workbench,
)
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.gateway.replies import Reply, ReplyOutcome, ToolCall
from pytest_modelbench.records import Candidate, Limits

TURNS = 100
"""The limit on turns where neither pack, case nor candidate declares one: a loop must end."""

COUNTED = (
    "turns",
    "prose_turns",
    "invented_tools",
    "unreadable_arguments",
    "failed_commands",
    "failed_calls",
    "tool_calls_as_text",
    "context_trims",
)
"""What is counted in every attempt of the loop, 0 among it."""

DETAIL_CHARS = 500
"""Of what the model says about its end."""


class Model(Protocol):
    """What the loop needs of a session with the gateway."""

    def chat(
        self,
        messages: Sequence[JsonValue],
        tools: Sequence[JsonValue] | None = None,
        params: Mapping[str, JsonValue] | None = None,
        *,
        working_left: float | None = None,
        wall_left: float | None = None,
    ) -> Reply:
        """Return the model's reply, a failed result among them; Fault where there is none.

        ``working_left`` and ``wall_left`` are the seconds that the attempt still has.
        """
        ...


@dataclass(frozen=True)
class Work:
    """How a candidate's work ended.

    ``end`` is '' when it finished, or stopped in the ordinary way, else a short stable word:
    ``step-limit``, ``time-limit``, ``failure-limit``, ``escalated``, ``no-answer``, or the reason
    of a failed reply (``context-exceeded``, ``other-model``, ``token-limit``…). ``detail`` tells a
    reader more.
    """

    end: str = ""
    detail: str = ""


def work(
    prompt: str,
    candidate: Candidate,
    limits: Limits,
    model: Model,
    bench: Workbench,
    counts: Counter[str],
) -> Work:
    """Let a model work on a task until it finishes or a limit ends it.

    Limits on tokens and cost are the gateway's to watch. Fault for whatever is not the model's
    doing; ``counts`` then holds what happened so far.
    """
    counts.update(dict.fromkeys(COUNTED, 0))
    return _Loop(candidate, limits, model, bench, counts).run(prompt)


class _Loop:
    """One attempt's loop: its conversation, its tools, and how far it has come."""

    def __init__(
        self,
        candidate: Candidate,
        limits: Limits,
        model: Model,
        bench: Workbench,
        counts: Counter[str],
    ) -> None:
        self.tuning = Tuning.of(candidate)
        window = self.tuning.window(candidate)
        self.turns = limits.turns or TURNS
        self.model = model
        self.counts = counts
        self.talk = Conversation(self._budget(window), overhead=len(json.dumps(SCHEMAS)))
        self.tools = Tools(
            bench,
            output_chars=self._output_chars(window, limits.output_chars or OUTPUT_CHARS),
            command_seconds=limits.command_seconds or COMMAND_SECONDS,
        )
        self.clock = Clock(limits)
        self.acted = False
        self.prose = self.failures = self.repeats = 0
        self.newest = ""

    def run(self, prompt: str) -> Work:
        self.talk.say("system", prompts.SYSTEM)
        self.talk.say("user", prompt)
        try:
            while True:
                self._turn()
        except End as end:
            return Work(end.reason, end.detail[:DETAIL_CHARS])

    def _turn(self) -> None:
        """Ask the model once and do what it says; End when the work is over."""
        turns = self.counts["turns"]
        if turns >= self.turns:
            same = self._repeated(self.repeats) if self.repeats > 2 else f"{turns} turns"
            raise End("step-limit", same)
        self.clock.check()
        self.counts["context_trims"] += self.talk.trim()
        reply = self._ask()
        self.counts["turns"] += 1
        if reply.outcome == ReplyOutcome.TOOL_CALLS:
            self._act(reply)
        else:
            self._without_calls(reply)

    def _ask(self) -> Reply:
        choice = self.tuning.tool_choice
        reply = self.model.chat(
            list(self.talk.messages),
            SCHEMAS,
            {"tool_choice": choice} if choice else None,
            working_left=self.clock.working_left,
            wall_left=self.clock.wall_left,
        )
        self.clock.held += reply.held_seconds
        return reply

    def _act(self, reply: Reply) -> None:
        """Do the calls of a reply in their order; each gets its result under its own id."""
        self.prose = 0
        self.talk.reply(reply.message())
        sound = True
        for call in reply.tool_calls:
            if call.name == "finish" and not sound:
                # The model has not seen yet what failed.
                self.talk.result(str(call.id), prompts.TOO_EARLY)
            else:
                self._call(call)
                sound = sound and self.failures == 0

    def _call(self, call: ToolCall) -> None:
        """Do one call and tell the model what it came to."""
        if call.name not in NAMES:
            self.counts["invented_tools"] += 1
            self._answer(call, prompts.unknown_tool(call.name, NAMES), worked=False)
        elif call.arguments is None:
            self.counts["unreadable_arguments"] += 1
            self._answer(call, prompts.unreadable(call.problem_text), worked=False)
        elif call.name == "finish":
            raise End(detail=str(call.arguments.get("summary", "")))
        elif call.name == "escalate":
            raise End("escalated", str(call.arguments.get("reason", "")))
        else:
            self._do(call, call.arguments)

    def _do(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> None:
        self._watch_repeats(call.name, arguments)
        self.clock.check()
        result = self.tools.call(call.name, arguments, self.clock.left)
        if not result.worked:
            self.counts["failed_commands" if result.command else "failed_calls"] += 1
        self.acted = True
        repeated = f"\n{prompts.REPEATED}" if self.repeats > 1 else ""
        self._answer(call, result.text + repeated, result.worked)

    def _watch_repeats(self, name: str, arguments: Mapping[str, JsonValue]) -> None:
        """End the work before a call that repeats the ones before it once too often."""
        call = json.dumps([name, dict(arguments)], sort_keys=True)
        self.repeats = self.repeats + 1 if call == self.newest else 1
        self.newest = call
        if self.repeats > self.tuning.repeat_limit:
            raise End("step-limit", self._repeated(self.tuning.repeat_limit))

    def _repeated(self, times: int) -> str:
        return f"the same call {times} times: {self.newest[:200]}"

    def _answer(self, call: ToolCall, text: str, worked: bool) -> None:
        """Send a call's result to the model; End after too many failures in a row."""
        self.talk.result(str(call.id), text)
        self.failures = 0 if worked else self.failures + 1
        if self.failures >= self.tuning.failure_limit:
            raise End("failure-limit", f"{self.failures} calls in a row failed")

    def _without_calls(self, reply: Reply) -> None:
        """Ask the model to go on; End after some such replies in a row, or when it cannot."""
        if reply.reason not in _NUDGES:
            ordinary = reply.reason == "empty-answer" and self.acted
            raise End("" if ordinary else reply.reason, reply.quote)
        as_text = reply.reason == "tool-call-as-text"
        self.counts["tool_calls_as_text" if as_text else "prose_turns"] += 1
        self.prose += 1
        if self.prose >= self.tuning.prose_limit:
            ordinary = self.acted and not as_text
            detail = f"{self.prose} replies in a row without a tool call"
            raise End("" if ordinary else reply.reason or "no-answer", detail)
        self.talk.reply(reply.message())
        self.talk.say("user", _NUDGES[reply.reason])

    def _budget(self, window: int | None) -> int | None:
        """Return the characters that fit in the window, None where it is unknown."""
        if window is None:
            return None
        tokens = max(window - self.tuning.answer_tokens, window // 2)
        return int(tokens * self.tuning.chars_per_token)

    def _output_chars(self, window: int | None, declared: int) -> int:
        """Return the limit on one result: as declared, at most a quarter of the window."""
        if window is None:
            return declared
        return min(declared, int(window * self.tuning.chars_per_token / 4))


_NUDGES = {
    "": prompts.PROSE,
    "no-answer-after-reasoning": prompts.ONLY_THOUGHT,
    "tool-call-as-text": prompts.AS_TEXT,
}
"""What is said to a reply without a call, by its reason; after any other the work is over."""
