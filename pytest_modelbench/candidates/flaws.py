"""What is wrong with a candidate that its keys and their types alone do not show."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pytest_modelbench.records import Candidate

ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
RAW_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9@][A-Za-z0-9._:@-]*)+")


@dataclass(frozen=True)
class Flaw:
    """What is wrong with a candidate, at which of its keys, and what to do."""

    what: str
    keys: tuple[str, ...]
    remedy: str


OURS = {
    "api_base": "write api_base beside model, not in params",
    "base_url": "write api_base beside model, not in params",
    "messages": "the protocol writes the messages",
    "model": "write model beside params",
    "n": "repeats are asked for with --modelbench-repeats",
    "num_retries": "the gateway retries; leave it out",
    "max_retries": "the gateway retries; leave it out",
    "rpm": "write requests_per_minute beside model",
    "stream": "leave it out",
    "tool_choice": "write it under tuning",
    "tools": "the protocol offers the tools",
    "tpm": "write tokens_per_minute beside model",
}
PRICES = ("input", "output", "cached", "cache_written")


def flaw_of(candidate: Candidate) -> Flaw | None:
    """Return what is wrong with a candidate that each of its keys alone does not show."""
    for name in candidate.params:
        if name in OURS:
            return Flaw(f"params may not hold {name}", ("params", name), OURS[name])
    for name, price in candidate.price.items():
        if name not in PRICES:
            return Flaw(f"unknown price {name}", ("price", name), choice(name, PRICES))
        if not 0 <= price < float("inf"):
            return Flaw(f"a price of {price}", ("price", name), "give USD for a million tokens")
    if candidate.api_key_env and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", candidate.api_key_env):
        return Flaw(
            "api_key_env is not the name of a variable",
            ("api_key_env",),
            'write a name such as "MY_API_KEY"; a key itself must stand in no file',
        )
    if candidate.api_base:
        return _flaw_of_base(candidate.api_base)
    return None


def secret_in(value: object, keys: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the keys that lead to what is a secret by its name or its look, None for none."""
    if isinstance(value, Mapping):
        inner = (secret_in(one, (*keys, str(key))) for key, one in value.items())
    elif isinstance(value, list):
        inner = (secret_in(one, keys) for one in value)
    else:
        secret = isinstance(value, str) and _looks_secret(keys[-1], value)
        return keys if secret else None
    return next((found for found in inner if found), None)


def _looks_secret(key: str, value: str) -> bool:
    named = re.fullmatch(
        r"(x[_-])?(api[_-]?key|authorization|(.+[_-])?(secret|password|auth[_-]?token"
        r"|access[_-]?token|secret[_-]?access[_-]?key))",
        key,
        re.IGNORECASE,
    )
    return bool(value) and bool(named or re.match(r"sk-|Bearer\s", value))


def _flaw_of_base(api_base: str) -> Flaw | None:
    try:
        parts = urlsplit(api_base)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return Flaw(
            "api_base is not an address",
            ("api_base",),
            'write "http://127.0.0.1:8000/v1" or the like',
        )
    if parts.username is not None or parts.password is not None:
        return Flaw("api_base holds a password", ("api_base",), "name a variable with api_key_env")
    return None


def choice(name: str, known: Sequence[str]) -> str:
    """Return a remedy for an unknown name: the close one, and all that are known."""
    close = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}Known: {', '.join(sorted(known))}"
