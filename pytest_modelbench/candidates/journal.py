"""What an attempt has done so far: its transcript and its counts, there even after a fault."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from pydantic import JsonValue

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
"""What the agent loop counts. An attempt that ran it has all of them, 0 among them."""


@dataclass
class Journal:
    """The transcript (one record an event, in order) and the counts of one attempt."""

    entries: list[dict[str, JsonValue]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def note(self, event: str, **facts: JsonValue) -> None:
        """Add an event; facts that are empty are left out."""
        kept: dict[str, JsonValue] = {"event": event}
        kept |= {name: value for name, value in facts.items() if value not in (None, "", [], {})}
        self.entries.append(kept)

    def count(self, name: str) -> None:
        """Count one more of something."""
        self.counts[name] += 1

    def to_bytes(self) -> bytes:
        """Return the transcript as JSON lines, in ASCII: half a surrogate pair survives."""
        return b"".join(
            json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n"
            for entry in self.entries
        )
