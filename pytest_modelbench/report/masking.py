"""Mask what looks like a key in a text that is shown or exported; the rest stays as it was.

The values of a run's own keys are in no file at all: the gateway sees to that. These are the
others, those that a candidate met in its world or made up.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

MASK = "[masked]"

_PATTERNS = (
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|glpat|xox[abpr])[-_](?P<key>[\w-]{16,})"),
    re.compile(r"\b(?P<key>AIza[\w-]{20,})"),
    re.compile(r"\b(?P<key>(?:AKIA|ASIA)[A-Z0-9]{12,})\b"),
    re.compile(r"(?i)\bbearer\s+(?P<key>[\w.~+/=-]{16,})"),
    re.compile(
        r"(?i)\b(?:x-api-key|x-goog-api-key|api-key)['\"]?\s*[:=]\s*['\"]?(?P<key>[^\s'\",}]{8,})"
    ),
    re.compile(r"(?i)[?&](?:key|api_key|access_token|token)=(?P<key>[^\s&'\"]{8,})"),
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<key>.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        re.DOTALL,
    ),
)


class Masking:
    """Masks texts and counts what it masked, so that it can be said."""

    def __init__(self) -> None:
        self.count = 0

    def text(self, text: str) -> str:
        """Return a text with each key replaced by ``[masked]``."""
        for pattern in _PATTERNS:
            text = pattern.sub(self._masked, text)
        return text

    def value(self, value: JsonValue) -> JsonValue:
        """Return plain data with each of its strings masked, names of fields left as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        return value

    def _masked(self, found: re.Match[str]) -> str:
        if found["key"] == MASK:
            return found[0]
        self.count += 1
        whole, start = found[0], found.start("key") - found.start()
        return whole[:start] + MASK + whole[start + len(found["key"]) :]
