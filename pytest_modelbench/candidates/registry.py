"""The registry: which candidates and servers there are, from ``modelbench.toml`` and LiteLLM."""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from pytest_modelbench.candidates.flaws import RAW_NAME
from pytest_modelbench.candidates.manifest import Manifest
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.gateway.patience import Patience
from pytest_modelbench.records import BUILT_IN, Candidate, Server
from pytest_modelbench.settings import REGISTRY


@dataclass(frozen=True)
class Registry:
    """Every candidate that can be named, and the servers that they may share.

    ``unusable`` are names that stand in a LiteLLM configuration and cannot be a candidate: what is
    wrong with one is said when somebody asks for it, and stops nobody else.
    """

    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    servers: Mapping[str, Server] = field(default_factory=dict)
    unusable: Mapping[str, RegistryProblem] = field(default_factory=dict)
    path: Path | None = None
    """Where ``modelbench.toml`` is, or was looked for; None: nowhere."""
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def read(cls, root: Path, litellm_config: Path | None = None) -> Registry:
        """Read ``modelbench.toml`` of a project, and the LiteLLM proxy configuration it names.

        Neither file need be there. ``litellm_config`` (absolute, or from ``root``) is read instead
        of the one that is named. RegistryProblem with file, line and remedy for what is not sound.
        """
        path = root / REGISTRY
        source = Manifest.read(path) if path.exists() else Manifest(path, "", {})
        servers = source.servers()
        candidates = source.candidates(servers)
        unusable: dict[str, RegistryProblem] = {}
        config = litellm_config or source.litellm_config()
        if config is not None:
            from pytest_modelbench.candidates.litellm_config import read_config

            aliases = read_config(root / config)
            for alias, entry in aliases.items():
                if alias in candidates:
                    raise source.problem(
                        f"candidate {alias} is in {config} as well",
                        ("candidates", alias),
                        "rename one of the two",
                    )
                if isinstance(entry, RegistryProblem):
                    unusable[alias] = entry
                else:
                    candidates[alias] = entry
        return cls(
            candidates,
            servers,
            unusable,
            path,
            source.patience(),
        )

    @property
    def known(self) -> tuple[str, ...]:
        """Return every name that ``resolve`` takes, raw LiteLLM names excepted; built-ins last."""
        return (*sorted(self.candidates), *BUILT_IN)

    def resolve(self, names: Sequence[str]) -> tuple[Candidate, ...]:
        """Return the candidates of some names, in their order.

        A name is an alias, a built-in one, or a raw LiteLLM name with its provider
        (``openai/gpt-5``). RegistryProblem for an unknown name, which lists those that are known,
        and for a name given twice.
        """
        for index, name in enumerate(names):
            if name in names[:index]:
                raise RegistryProblem(f"candidate {name} is named twice", remedy="name it once")
        return tuple(self._candidate(name) for name in names)

    def _candidate(self, name: str) -> Candidate:
        if name in BUILT_IN:
            return Candidate(name=name, agent=name)
        if name in self.candidates:
            return self.candidates[name]
        if name in self.unusable:
            raise self.unusable[name]
        if RAW_NAME.fullmatch(name):
            return Candidate(name=name, model=name)
        close = difflib.get_close_matches(name, self.known, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        there = self.path is None or self.path.exists()
        raise RegistryProblem(
            f"no candidate is named {name!r}" + ("" if there else ", and there is no such file"),
            path=self.path,
            remedy=f"{meant}Known: {', '.join(self.known)}, or a LiteLLM name such as openai/gpt-5",
        )

    def server_of(self, candidate: Candidate) -> str:
        """Return the name of the server that serves a candidate, '' for none that could be shared.

        The declared one, else the host and port of a loopback or private ``api_base``.
        """
        return candidate.server or _private_address(candidate.api_base)

    def taking_turns(
        self, candidates: Iterable[Candidate]
    ) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Return, for each server with more than one model, the candidates' names grouped by model.

        One group of a server runs at a time; those of one model may run side by side.
        """
        groups: dict[str, dict[tuple[str, str], list[str]]] = {}
        for candidate in candidates:
            server = self.server_of(candidate)
            declared = self.servers.get(server)
            if declared is not None and not declared.turns:
                continue
            if server and candidate.calls_model:
                model = (candidate.model, candidate.api_base)
                groups.setdefault(server, {}).setdefault(model, []).append(candidate.name)
        return {
            server: tuple(tuple(names) for names in models.values())
            for server, models in groups.items()
            if len(models) > 1
        }


def _private_address(api_base: str) -> str:
    """Return ``host:port`` of a loopback or private address, '' for a public one and for none."""
    parts = urlsplit(api_base)
    host = parts.hostname or ""
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    if host == "localhost" or host.endswith(".localhost"):
        return f"localhost:{port}"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if address.is_loopback:
        return f"localhost:{port}"
    return f"{host}:{port}" if address.is_private or address.is_link_local else ""
