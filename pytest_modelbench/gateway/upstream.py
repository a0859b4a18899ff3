"""The ways to a model: one interface, and which candidate goes which way.

An upstream makes one request and says what crossed the wire. It never retries, never classifies
and never raises for what a server does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.gateway.prices import known_providers, provider_of
from pytest_modelbench.gateway.replies import Exchange
from pytest_modelbench.gateway.script import Script, read_script
from pytest_modelbench.gateway.texttools import TEXT
from pytest_modelbench.records import Candidate

if TYPE_CHECKING:
    from pytest_modelbench.gateway.direct import Connections

DIRECT = frozenset(
    {
        "openai",
        "hosted_vllm",
        "llamafile",
        "lm_studio",
        "litellm_proxy",
        "custom_openai",
        "openai_like",
    }
)
"""LiteLLM prefixes of servers that speak OpenAI's API: they are spoken directly."""

_BASES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "hosted_vllm": ("HOSTED_VLLM_API_BASE",),
    "llamafile": ("LLAMAFILE_API_BASE",),
    "lm_studio": ("LM_STUDIO_API_BASE",),
    "litellm_proxy": ("LITELLM_PROXY_API_BASE",),
}
_DEFAULT_BASES = {"openai": "https://api.openai.com/v1", "llamafile": "http://127.0.0.1:8080/v1"}
_KEYS = {
    "openai": "OPENAI_API_KEY",
    "hosted_vllm": "HOSTED_VLLM_API_KEY",
    "lm_studio": "LM_STUDIO_API_KEY",
    "litellm_proxy": "LITELLM_PROXY_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}


@dataclass(frozen=True)
class Asking:
    """A request as its program made it, in the API that it speaks."""

    body: Mapping[str, JsonValue]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One request to make. ``seconds`` bounds it to the last byte; ``tries`` counts from 0.

    ``native`` is the request in the server's own API, where that is the program's too; ``params``
    are then those that are laid over it.
    """

    messages: list[JsonValue]
    tools: list[JsonValue]
    params: Mapping[str, JsonValue]
    stream: bool
    seconds: float
    case: str
    repeat: int
    tries: int
    native: Asking | None = None


class Upstream(Protocol):
    """One way to one candidate's model.

    ``problem`` says why it cannot be gone at all (reason and words), None where it can;
    ``asks_for`` is the model's name as the server is asked for it, "" where any is right.
    """

    problem: tuple[str, str] | None
    asks_for: str
    reasoning_beside: bool

    async def prepare(self) -> None:
        """Load what the first request needs; that is waiting, not the candidate's time."""
        ...

    async def send(self, call: Call) -> Exchange:
        """Make one request."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True)
class Target:
    """Where a candidate's requests go: ``model`` as the server is asked for it."""

    provider: str
    model: str
    api_base: str
    key: str | None = field(repr=False)
    problem: tuple[str, str] | None = None
    key_name: str = ""
    """The variable that the key was found in."""

    @property
    def key_in_words(self) -> str:
        """Return which key a server that refuses it was sent; empty where LiteLLM finds one."""
        if self.key_name:
            return f"the key of the variable {self.key_name} was sent"
        if self.direct:
            return "no key was sent: api_key_env of the candidate names the variable that has one"
        return ""

    @property
    def direct(self) -> bool:
        """Tell whether the server speaks OpenAI's API, so that no library is needed."""
        return self.provider in DIRECT or (self.provider == "" and bool(self.api_base))


def target_of(candidate: Candidate, environ: Mapping[str, str] | None = None) -> Target:
    """Resolve provider, address and key of a candidate.

    A key goes to a declared address only when the candidate names its variable: the key of a
    provider is not for any server that somebody writes into a file.
    """
    environ = os.environ if environ is None else environ
    provider = provider_of(candidate.model)
    head, _, rest = candidate.model.partition("/")
    named = head == provider and bool(rest)
    model = rest if named and provider in DIRECT else candidate.model
    base = candidate.api_base
    if not base and provider in DIRECT:
        found = (environ.get(name, "") for name in _BASES.get(provider, ()))
        base = next((b for b in found if b), _DEFAULT_BASES.get(provider, ""))
    problem: tuple[str, str] | None = None
    key: str | None = None
    key_name = candidate.api_key_env
    if key_name:
        key = environ.get(key_name) or None
        if key is None:
            problem = ("unauthorised", f"the variable {candidate.api_key_env} is not set")
    elif not candidate.api_base:
        key_name = _KEYS.get(provider, "")
        key = environ.get(key_name) or None
        if key is None and base == _DEFAULT_BASES["openai"]:
            problem = ("unauthorised", "the variable OPENAI_API_KEY is not set")
    if not candidate.model:
        problem = ("unknown-model", f"candidate {candidate.name} declares no model")
    elif base and not base.startswith(("http://", "https://")):
        problem = ("bad-address", f"api_base {base!r} does not begin with http:// or https://")
    elif not base and provider in DIRECT:
        problem = ("bad-address", f"candidate {candidate.name} needs an api_base")
    elif not base and provider == "":
        problem = (
            "unknown-model",
            f"{candidate.model!r} names no provider that LiteLLM knows; write PROVIDER/MODEL, or "
            "give the candidate an api_base",
        )
    key_name = key_name if key is not None else ""
    return Target(provider, model, base.rstrip("/"), key, problem, key_name)


def wires_of(candidate: Candidate) -> frozenset[str]:
    """Return the APIs beside chat that a candidate's server speaks itself.

    Anthropic speaks ``messages`` and OpenAI ``responses``; of any other server its ``speaks`` says.
    """
    if candidate.script or not candidate.model or candidate.tuning.get("tool_parser") == TEXT:
        return frozenset()
    provider = provider_of(candidate.model)
    known = set[str](candidate.speaks)
    if provider == "anthropic":
        known.add("messages")
    elif provider == "openai" and target_of(candidate).api_base == _DEFAULT_BASES["openai"]:
        known.add("responses")
    return frozenset(known)


def keys_of(candidate: Candidate) -> dict[str, str]:
    """Return name and value of the variables that hold keys of a candidate, where they are set."""
    provider = provider_of(candidate.model) if candidate.model else ""
    names = {
        candidate.api_key_env,
        _KEYS.get(provider, ""),
        f"{provider.upper()}_API_KEY" if provider in known_providers() else "",
    }
    return {name: os.environ[name] for name in names if name and os.environ.get(name)}


def needs_litellm(candidate: Candidate) -> bool:
    """Tell whether a candidate is reached through LiteLLM."""
    return not candidate.script and not target_of(candidate).direct


class Upstreams:
    """The ways to all candidates, made at their first call; connections are shared among them."""

    def __init__(self) -> None:
        self._ways: dict[tuple[str, str], Upstream] = {}
        self._connections: Connections | None = None

    def of(self, candidate: Candidate, native: str = "") -> Upstream:
        """Return the way to a candidate's model; imports what it needs, and no more.

        ``native`` names the API of its own, one of ``wires_of``, that its server is spoken by.
        """
        way = self._ways.get((candidate.name, native))
        if way is None:
            way = self._make_native(candidate, native) if native else self._make(candidate)
            self._ways[candidate.name, native] = way
        return way

    async def close(self) -> None:
        """Let go of all connections."""
        for way in self._ways.values():
            await way.close()
        if self._connections is not None:
            await self._connections.close()

    def _make(self, candidate: Candidate) -> Upstream:
        if candidate.agent == "scripted" or candidate.script:
            from pytest_modelbench.gateway.scripted import Scripted

            return Scripted(*_script_of(candidate))
        target = target_of(candidate)
        if target.direct or target.problem is not None:
            from pytest_modelbench.gateway.direct import Direct

            return Direct(target, self._shared_connections())
        from pytest_modelbench.gateway.translated import Translated

        return Translated(target)

    def _make_native(self, candidate: Candidate, wire: str) -> Upstream:
        from pytest_modelbench.gateway.native import Native

        target = target_of(candidate)
        if target.provider == "anthropic" and not target.api_base:
            problem = target.problem
            if target.key is None and problem is None:
                problem = ("unauthorised", "the variable ANTHROPIC_API_KEY is not set")
            target = replace(target, api_base="https://api.anthropic.com", problem=problem)
        return Native(target, wire, self._shared_connections())

    def _shared_connections(self) -> Connections:
        from pytest_modelbench.gateway.direct import Connections

        if self._connections is None:
            self._connections = Connections()
        return self._connections


def _script_of(candidate: Candidate) -> tuple[Script, str, str]:
    try:
        return read_script(Path(candidate.script)), candidate.script, ""
    except RegistryProblem as error:
        return Script(), candidate.script, str(error)
