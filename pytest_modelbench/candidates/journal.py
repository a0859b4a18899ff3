"""What an attempt has come to so far, there even after a fault."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pytest_modelbench.records import Limits, Role, Usage


@dataclass
class Journal:
    """Counts, usage and transcript of one attempt, filled while it goes on.

    ``attempt`` and ``repeat`` say whose it is; ``grant`` is what the whole attempt may use, None
    where nobody but its candidate uses anything. ``judged`` is a judge's transcript.

    ``held`` are the seconds that the gateway held its calls for; ``transcript`` is gzip of JSON
    lines, as the gateway wrote it, empty where no model was called. ``versions`` are those of what
    was at work, an agent program's by ``program``, the model that judged by ``judge``.
    """

    attempt: str = ""
    repeat: int = 1
    grant: Limits | None = None
    counts: Counter[str] = field(default_factory=Counter)
    usage: dict[Role, Usage] = field(default_factory=dict)
    held: float = 0.0
    served_model: str = ""
    transcript: bytes = b""
    judged: bytes = b""
    versions: dict[str, str] = field(default_factory=dict)
