"""Ask a candidate through a gateway of its own, as a run would, and see what crossed the wire."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from pydantic import JsonValue

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.transcript import read_transcript
from pytest_modelbench.parsing import parse
from pytest_modelbench.records import Candidate, Limits

NO_SUCH_MODEL = "modelbench-no-such-model"
STREAMED = "+streamed"
MISNAMED = "+misnamed"

_OURS_TO_SET = ("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "n", "stop")


@dataclass(frozen=True)
class Answer:
    """What one question brought: a reply, or the fault in its place; ``raw`` is the last body."""

    reply: Reply | None
    fault: Fault | None
    seconds: float
    raw: str

    @property
    def answered(self) -> bool:
        """Tell whether there is a reply that a run could go on with."""
        return self.reply is not None and self.reply.outcome in ("answer", "tool-calls")

    @property
    def trouble(self) -> str:
        """Say in words why there is none."""
        if self.fault is not None:
            return f"{self.fault.kind}: {self.fault.text}"
        if self.reply is None:
            return ""
        return " ".join(filter(None, [self.reply.reason, self.reply.quote]))


class Asking:
    """A gateway for one candidate, and for two like it: one streamed, one under a wrong name."""

    def __init__(self, candidate: Candidate, seconds: float) -> None:
        plain = _bare(candidate)
        head, slash, _ = candidate.model.partition("/")
        wrong = f"{head}/{NO_SUCH_MODEL}" if slash else NO_SUCH_MODEL
        self.name = plain.name
        streamed = plain.model_copy(
            update={"name": plain.name + STREAMED, "params": {**plain.params, "stream": True}}
        )
        misnamed = plain.model_copy(update={"name": plain.name + MISNAMED, "model": wrong})
        self._process = GatewayProcess.start(
            [plain, streamed, misnamed], retries=1, max_wait=60.0, call_seconds=seconds
        )
        address = self._process.address
        self._client = GatewayClient(address.socket_path, address.secret)

    def __call__(
        self,
        messages: Sequence[JsonValue] | str,
        *,
        tools: Sequence[JsonValue] = (),
        kind: str = "",
        **params: JsonValue,
    ) -> Answer:
        """Ask once. ``kind`` is ``STREAMED`` or ``MISNAMED``; a text is a message of the user."""
        said: JsonValue = {"role": "user", "content": messages if isinstance(messages, str) else ""}
        asked = [said] if isinstance(messages, str) else list(messages)
        reply: Reply | None = None
        fault: Fault | None = None
        began = time.monotonic()
        try:
            session = self._client.grant("probe", self.name + kind, limits=Limits())
        except Fault as error:
            return Answer(None, error, 0.0, "")
        try:
            reply = session.chat(asked, list(tools) or None, params)
        except Fault as error:
            fault = error
        seconds = time.monotonic() - began
        raw = ""
        with contextlib.suppress(Fault):
            entries = read_transcript(session.close().transcript)
            raw = str(entries[-1].get("body", "")) if entries else ""
        held = reply.held_seconds if reply is not None else 0.0
        return Answer(reply, fault, seconds - held, raw)

    def __enter__(self) -> Asking:
        """Return it, ready."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the gateway."""
        self._process.close()


def numbers_in(raw: str, *names: str) -> Iterator[int]:
    """Yield the whole numbers at some keys, however deep in a JSON text."""
    try:
        value: JsonValue = parse(raw)
    except ValueError:
        return
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            found = (one.get(name) for name in names)
            yield from (n for n in found if isinstance(n, int) and not isinstance(n, bool))
            stack += one.values()
        elif isinstance(one, list):
            stack += one


def _bare(candidate: Candidate) -> Candidate:
    """Return the candidate without what the questions set, and without a server to wait for."""
    params: Mapping[str, JsonValue] = {
        name: value for name, value in candidate.params.items() if name not in _OURS_TO_SET
    }
    return candidate.model_copy(
        update={"params": dict(params), "server": "", "agent": "loop", "command": None}
    )
