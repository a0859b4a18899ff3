"""What crosses the border of the gateway process: what it is told, asked for, and reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic import Field

from pytest_modelbench.gateway.patience import Patience
from pytest_modelbench.gateway.replies import Reply
from pytest_modelbench.gateway.windows import Used
from pytest_modelbench.records import Candidate, Limits, Record, Role, Server, Usage

DOORS = "doors"
"""Name of the socket, in the gateway's folder, on which boxes hand their listeners over."""

SERVED = "served"
"""Name of the file, in the gateway's folder, that says that the process answers, or has."""

FAILURE = "failure"
"""Name of the file that says why there will be no gateway any more."""

SERVER_END_SECONDS = 90.0


class GatewayConfig(Patience):
    """What the gateway serves; it comes by standard input. Holds names of keys, never a key."""

    candidates: tuple[Candidate, ...] = ()
    servers: tuple[Server, ...] = ()
    secret: str = Field(min_length=16, repr=False)
    folder: str = Field(description="private to one run; journal and transcripts lie there")
    budget_usd: float | None = Field(default=None, gt=0, description="of the whole run")
    budget_tokens: int | None = Field(default=None, gt=0)
    root: str = Field(default="", description="where servers' commands are run")
    log: str = Field(default="", description="folder of what they print; '' for nowhere")
    used: tuple[Used, ...] = Field(default=(), description="by older runs, for declared windows")

    def candidate(self, name: str) -> Candidate | None:
        """Return a candidate by its name, None when there is none."""
        return next((c for c in self.candidates if c.name == name), None)


class GrantRequest(Record):
    """What a worker asks for: calls of one candidate for one role of one attempt."""

    attempt: str
    candidate: str
    role: Role = Role.CANDIDATE
    case: str = ""
    repeat: int = Field(default=1, ge=1)
    limits: Limits = Limits()
    pool: Limits | None = Field(
        default=None, description="tokens and usd of the whole attempt, of which this is a part"
    )


class Entry(Record):
    """What the gateway says to a worker that asks to begin a cell.

    ``waits`` says why it has to wait, and the line that follows says more; ``until``: when that
    will be over, in seconds since the epoch, 0.0 where nobody knows. ``refused`` is the kind of
    fault that keeps it out, "" where it is admitted.
    """

    waits: str = ""
    until: float = 0.0
    refused: str = ""
    text: str = ""
    permanent: bool = False


class Ended(Record):
    """The end of a grant as the gateway saw it: what no program can make look otherwise.

    ``ended`` is the reason of the last call when it was no reply to go on with.
    """

    usage: Usage
    held_seconds: float = 0.0
    served_model: str = ""
    ended: str = ""
    reasons: dict[str, int] = Field(default_factory=dict)
    in_flight: int = Field(default=0, description="calls of a program that are under way")
    final: Reply | None = Field(
        default=None, description="what ended an agent program; its later calls got the same"
    )


class Stop(Record):
    """Why a candidate is not called any more."""

    reason: str
    text: str = ""
    status: int | None = None


def end_seconds(servers: Iterable[Server]) -> float:
    """Return how long the gateway may take at its end to stop servers that it has started."""
    return SERVER_END_SECONDS if any(s.start or s.stop for s in servers) else 0.0


class Redactor:
    """Keeps the values of keys out of everything that is written or shown."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        named = {value: name for name, value in keys.items() if len(value) >= 6}
        self._named = named
        longest = sorted(named, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest))) if longest else None

    def __call__(self, text: str) -> str:
        """Return a text with each key's value replaced by the name of its variable."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"[{self._named[found.group()]}]", text)
