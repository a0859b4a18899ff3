"""What stands in braces in the commands of a server: words of the candidate that is served."""

from __future__ import annotations

import re
import shlex
from urllib.parse import urlsplit

from pytest_modelbench.records import Candidate

_PLACE = re.compile(r"\{\{|\}\}|(?<!\$)\{([a-z][a-z0-9_]*)\}")


def words_of(candidate: Candidate) -> dict[str, str]:
    """Return what may stand in braces in a command of a candidate's server.

    Its ``model`` without the provider, its name, address and port, and every plain fact.
    """
    parts = urlsplit(candidate.api_base)
    facts = {
        name: str(value)
        for name, value in candidate.facts.items()
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    }
    return facts | {
        "model": candidate.model.partition("/")[2] or candidate.model,
        "candidate": candidate.name,
        "api_base": candidate.api_base,
        "host": parts.hostname or "",
        "port": "" if parts.port is None else str(parts.port),
    }


def unknown_words(command: str, candidate: Candidate) -> list[str]:
    """Return the words in braces that a candidate has nothing for."""
    known = words_of(candidate)
    return [
        name for found in _PLACE.finditer(command) if (name := found[1]) and not known.get(name)
    ]


def filled(command: str, candidate: Candidate) -> str:
    """Return a command with a candidate's words in it, quoted for the shell; ``{{`` is a brace."""
    words = words_of(candidate)

    def word(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else shlex.quote(words.get(found[1], ""))

    return _PLACE.sub(word, command)
