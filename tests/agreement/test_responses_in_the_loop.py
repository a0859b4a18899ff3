"""Every server behaviour of the field reports, met by the agent loop through the real gateway.

The behaviour is the first reply of its server; from then on the model calls ``finish``. What comes
of it is what the reports say, and what goes back to the server can be read by any.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.candidates.loop import Work, work
from pytest_modelbench.candidates.tools import Ran, Refused
from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.records import Candidate, Limits

if TYPE_CHECKING:
    from tests.conftest import ModelServer

DATA = Path(os.environ.get("MODELBENCH_DATA", Path(__file__).parents[1] / "data"))
FILES = [
    json.loads(file.read_text(encoding="utf-8"))
    for file in sorted((DATA / "field-reports" / "responses").glob("R*.json"))
]
FINISH = {
    "headers": {"content-type": "application/json"},
    "json": {
        "model": "acme-coder-9b",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "f1", "type": "function", "function": {"name": "finish"}}
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    },
}


@dataclass
class Tree:
    """A work tree in memory."""

    files: dict[str, bytes] = field(default_factory=lambda: {"calc.py": b"x = 1\n"})

    def list(self, path: str, *, limit: int) -> tuple[Sequence[str], bool]:
        return sorted(self.files)[:limit], False

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise Refused(f"{path} does not exist")
        return self.files[path]

    def write(self, path: str, content: bytes) -> None:
        self.files[path] = content

    def run(self, command: str, *, seconds: float, output_bytes: int) -> Ran:
        return Ran(0, None, b"done\n", 5, False)


@pytest.fixture(scope="module")
def running(
    server_class: type[ModelServer],
) -> Iterator[tuple[GatewayClient, dict[str, ModelServer]]]:
    """One gateway for all behaviours: a candidate and a server for each of them."""
    servers = {one["id"]: server_class([one["response"], FINISH]) for one in FILES}
    candidates = [
        Candidate(name=name, model="openai/acme-coder-9b", api_base=server.url)
        for name, server in servers.items()
    ]
    with GatewayProcess.start(candidates, retries=0, max_wait=0) as process:
        yield GatewayClient(process.address.socket_path, process.address.secret), servers
    for server in servers.values():
        server.close()


COUNTS = {
    "R04": ("unreadable_arguments", 1),
    "R06": ("invented_tools", 1),
    "R10": ("tool_calls_as_text", 1),
}
"""What of a behaviour is counted with the attempt."""


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one["id"], marks=[pytest.mark.slow] if one["id"] == "R30" else [])
        for one in FILES
    ],
)
def test_the_loop_makes_of_a_behaviour_what_the_reports_say(
    one: dict[str, Any], running: tuple[GatewayClient, dict[str, ModelServer]]
) -> None:
    client, servers = running
    name, expect, server = one["id"], one["expect"], servers[one["id"]]
    counts: Counter[str] = Counter()
    session = client.grant(f"loop-{name}", name)
    candidate = Candidate(name=name, model="openai/acme-coder-9b")
    ended: Work | Fault
    try:
        ended = work("Look at calc.py.", candidate, Limits(turns=5), session, Tree(), counts)
    except Fault as fault:
        ended = fault
    session.close()
    if expect["outcome"].startswith("fault"):
        assert isinstance(ended, Fault)
        assert ended.kind == expect["reason"]
        assert ended.permanent == (expect["outcome"] == "fault-permanent")
        assert len(server.seen) == 1
        return
    assert isinstance(ended, Work)
    if expect["reason"] in ("content-filter", "context-exceeded", "empty-answer"):
        # No step that could be followed by another: the tree is judged as it stands, at once.
        assert ended.end == expect["reason"]
        assert len(server.seen) == 1
        return
    assert ended == Work(), "it went on, and ended in the ordinary way"
    assert len(server.seen) == 2
    assert counts["turns"] == 2
    if name in COUNTS:
        counted, times = COUNTS[name]
        assert counts[counted] == times
    sent = server.seen[1].body["messages"]
    if expect["outcome"] == "tool_calls":
        (said,) = [message for message in sent if message.get("tool_calls")]
        results = [message for message in sent if message["role"] == "tool"]
        assert [r["tool_call_id"] for r in results] == [c["id"] for c in said["tool_calls"]]
        for call, right in zip(said["tool_calls"], expect["tool_calls"], strict=True):
            assert right["id"] in (None, call["id"])
            given = json.loads(call["function"]["arguments"])
            assert isinstance(given, dict)
            if right["arguments"] is not None:
                assert given == right["arguments"]
    else:
        # Neither a call nor an end: asked to go on, and the thinking is not sent back.
        assert sent[-1]["role"] == "user"
        thought = expect["reasoning"]
        assert thought is None or thought not in json.dumps(sent)
