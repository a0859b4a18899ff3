"""What is wrong with a candidate that its keys and their types alone do not show."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import JsonValue

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
NUMBER, WHOLE, BOOLEAN = "a number", "a whole number", "true or false"
TEXT, LIST, TABLE = "text", "a list", "a table"
PARAMS: Mapping[str, tuple[str, ...]] = {
    "temperature": (NUMBER,),
    "top_p": (NUMBER,),
    "top_k": (WHOLE,),
    "min_p": (NUMBER,),
    "typical_p": (NUMBER,),
    "presence_penalty": (NUMBER,),
    "frequency_penalty": (NUMBER,),
    "repetition_penalty": (NUMBER,),
    "repeat_penalty": (NUMBER,),
    "seed": (WHOLE,),
    "max_tokens": (WHOLE,),
    "max_completion_tokens": (WHOLE,),
    "max_output_tokens": (WHOLE,),
    "min_tokens": (WHOLE,),
    "timeout": (NUMBER,),
    "stop": (TEXT, LIST),
    "stop_sequences": (LIST,),
    "logprobs": (BOOLEAN, WHOLE),
    "top_logprobs": (WHOLE,),
    "logit_bias": (TABLE,),
    "parallel_tool_calls": (BOOLEAN,),
    "reasoning_effort": (TEXT, TABLE),
    "thinking": (TABLE,),
    "verbosity": (TEXT,),
    "response_format": (TABLE,),
    "extra_body": (TABLE,),
    "extra_headers": (TABLE,),
}
"""What most servers take, with its type; any other name is the server's own business."""
OF_FEW = (
    *("top_a", "top_n", "n_predict", "num_predict", "min_new_tokens", "max_new_tokens", "think"),
    *("reasoning", "reasoning_format", "parse_tool_calls"),
)
"""What few servers take and looks like a misspelt name of ``PARAMS``."""
PRICES = ("input", "output", "cached", "cache_written")


def flaw_of(candidate: Candidate) -> Flaw | None:
    """Return what is wrong with a candidate that each of its keys alone does not show."""
    for name in candidate.params:
        if name in OURS:
            return Flaw(f"params may not hold {name}", ("params", name), OURS[name])
    for name, value in candidate.params.items():
        if flaw := _flaw_of_param(name, value):
            return flaw
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


def _flaw_of_param(name: str, value: JsonValue) -> Flaw | None:
    """Return what is wrong with a parameter: another type than its own, or a misspelt name."""
    keys = ("params", name)
    if name in PARAMS:
        if value is None or any(_is(value, kind) for kind in PARAMS[name]):
            return None
        return Flaw(f"params.{name} is not {' or '.join(PARAMS[name])}", keys, "mend its value")
    meant = None if name in OF_FEW else _meant(name)
    if meant is None:
        return None
    return Flaw(
        f"params.{name} looks like a misspelt {meant}",
        keys,
        f"write {meant}; or {name} in params.extra_body, where your server takes it",
    )


def _is(value: JsonValue, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == BOOLEAN
    if isinstance(value, int):
        return kind in (NUMBER, WHOLE)
    if isinstance(value, float):
        return kind == NUMBER and math.isfinite(value)
    return (
        (kind == TEXT and isinstance(value, str))
        or (kind == LIST and isinstance(value, list))
        or (kind == TABLE and isinstance(value, dict))
    )


def _meant(name: str) -> str | None:
    """Return the known parameter that a name is close to, or begins like; None for none."""
    plain = name.lower().replace("-", "_")
    close = difflib.get_close_matches(plain, PARAMS, n=1, cutoff=0.8)
    begun = [known for known in PARAMS if len(plain) > 3 and known.startswith(plain)]
    return next(iter([*close, *begun]), None)


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
    written = api_base.isprintable() and " " not in api_base
    if parts.scheme not in ("http", "https") or not parts.hostname or not written:
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
