"""``modelbench.toml``: its candidates and servers, each problem with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from pytest_modelbench.candidates.command import flaw_of_command
from pytest_modelbench.candidates.flaws import ALIAS, choice, flaw_of, secret_in
from pytest_modelbench.candidates.function import FUNCTION, flaw_of_function
from pytest_modelbench.candidates.places import line_of, read_toml
from pytest_modelbench.candidates.tuning import Tuning
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.gateway.patience import Patience
from pytest_modelbench.gateway.words import unknown_words, words_of
from pytest_modelbench.records import BUILT_IN, Candidate, Record, Server

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Manifest:
    """``modelbench.toml`` with its text, so that each problem names its line."""

    path: Path
    text: str
    tables: Mapping[str, Any]  # Any: not checked yet

    @classmethod
    def read(cls, path: Path) -> Manifest:
        tables, text = read_toml(path)
        source = cls(path, text, tables)
        known = ("candidates", "servers", "gateway", "litellm_config")
        for key in tables:
            if key not in known:
                raise source.problem(f"unknown key {key}", (key,), choice(key, known))
        return source

    def problem(self, what: str, keys: Sequence[str], remedy: str) -> RegistryProblem:
        """Return a problem placed at the line of a key, or of the nearest table around it."""
        lines = (line_of(self.text, keys[:end]) for end in range(len(keys), 0, -1))
        line = next((line for line in lines if line is not None), None)
        return RegistryProblem(what, path=self.path, line=line, remedy=remedy)

    def litellm_config(self) -> Path | None:
        """Return the LiteLLM proxy configuration that is named, None for none."""
        name = self.tables.get("litellm_config")
        if name is None:
            return None
        if not isinstance(name, str) or not name:
            raise self.problem(
                "litellm_config is not a path", ("litellm_config",), 'write "config.yaml"'
            )
        if not (self.path.parent / name).is_file():
            raise self.problem(
                f"there is no {name}", ("litellm_config",), "name a file that is there"
            )
        return Path(name)

    def servers(self) -> dict[str, Server]:
        """Return the declared servers by name."""
        found = {}
        for name, table in self._named("servers"):
            keys = ("servers", name)
            self._refuse_unknown(table, keys, Server)
            found[name] = self._built(Server, {"name": name} | table, keys)
            if not found[name].turns and (found[name].start or found[name].stop):
                raise self.problem(
                    "start and stop serve one model after the other, and turns is false",
                    (*keys, "turns"),
                    "take one of the two back",
                )
        return found

    def patience(self) -> Patience:
        """Return how long calls are tried; the defaults where nothing is declared."""
        table = self.tables.get("gateway", {})
        if not isinstance(table, dict):
            raise self.problem("gateway is not a table", ("gateway",), "write [gateway]")
        self._refuse_unknown(table, ("gateway",), Patience)
        return self._built(Patience, table, ("gateway",))

    def candidates(self, servers: Mapping[str, Server]) -> dict[str, Candidate]:
        """Return the declared candidates by alias."""
        found = {}
        for name, table in self._named("candidates"):
            keys = ("candidates", name)
            if name in BUILT_IN:
                raise self.problem(f"{name} is built in", keys, "choose another alias")
            self._refuse_secrets(table, keys)
            self._refuse_unknown(table, keys, Candidate)
            candidate = self._built(Candidate, {"name": name} | table, keys)
            found[name] = self._sound(candidate, keys, servers)
        return found

    def _named(self, section: str) -> list[tuple[str, dict[str, Any]]]:  # Any: not checked yet
        tables = self.tables.get(section, {})
        if not isinstance(tables, dict):
            raise self.problem(f"{section} is not a table", (section,), f"write [{section}.NAME]")
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise self.problem(
                    f"{section}.{name} is not a table", (section, name), f"write [{section}.{name}]"
                )
            if not ALIAS.fullmatch(name):
                raise self.problem(
                    f"{name!r} cannot be a name",
                    (section, name),
                    "use letters, digits, '.', '_' and '-', the first a letter or a digit",
                )
        return list(tables.items())

    def _refuse_unknown(
        self,
        table: Mapping[str, object],
        keys: tuple[str, ...],
        record: type[Record],
    ) -> None:
        known = [name for name in record.model_fields if name not in ("name", "root")]
        for key in table:
            if key not in known:
                raise self.problem(f"unknown key {key}", (*keys, key), choice(key, known))

    def _refuse_secrets(self, table: Mapping[str, object], keys: tuple[str, ...]) -> None:
        """Raise for anything that looks like a key written down; its value is never quoted."""
        place = secret_in(table, keys)
        if place:
            raise self.problem(
                f"{place[-1]} holds a key itself",
                place,
                'name the variable that holds it, api_key_env = "MY_API_KEY", and take it back:'
                " whoever can read this file has it",
            )

    def _built(self, record: type[R], table: Mapping[str, object], keys: tuple[str, ...]) -> R:
        try:
            return record.model_validate(table, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            inner = tuple(str(part) for part in first["loc"])
            name = ".".join((*keys, *inner))
            unknown = first["type"] == "extra_forbidden"
            what = f"unknown key {name}" if unknown else f"{name}: {_plain(first['msg'])}"
            raise self.problem(what, (*keys, *inner), "see docs/candidates.md") from None

    def _sound(
        self, candidate: Candidate, keys: tuple[str, ...], servers: Mapping[str, Server]
    ) -> Candidate:
        """Return the candidate, its script's path made absolute, once its parts fit together."""
        if candidate.agent not in ("loop", "command", FUNCTION, "scripted"):
            raise self.problem(
                f"{candidate.agent!r} is no agent",
                (*keys, "agent"),
                'write "loop", "command", "function" or "scripted"',
            )
        if candidate.agent == "scripted" or (candidate.agent == "command" and candidate.script):
            candidate = self._with_script(candidate, keys)
        elif candidate.agent == FUNCTION:
            candidate = candidate.model_copy(update={"root": str(self.path.parent.absolute())})
        elif candidate.agent == "command":
            pass  # a program may have no model of this run behind it
        elif not candidate.model:
            raise self.problem(
                f"candidate {candidate.name} has no model", keys, 'write model = "openai/NAME"'
            )
        elif candidate.script:
            raise self.problem(
                "only a scripted candidate has a script",
                (*keys, "script"),
                'add agent = "scripted"',
            )
        if candidate.server and candidate.server not in servers:
            raise self.problem(
                f"there is no [servers.{candidate.server}]",
                (*keys, "server"),
                choice(candidate.server, list(servers)) if servers else "add that table",
            )
        flaw = flaw_of(candidate) or flaw_of_command(candidate) or flaw_of_function(candidate)
        if flaw is not None:
            raise self.problem(flaw.what, (*keys, *flaw.keys), flaw.remedy)
        self._fill_commands(candidate, servers)
        self._built(Tuning, candidate.tuning, (*keys, "tuning"))
        return candidate

    def _fill_commands(self, candidate: Candidate, servers: Mapping[str, Server]) -> None:
        """Raise where a command of a candidate's server has a word that the candidate lacks."""
        server = servers.get(candidate.server)
        for name in ("start", "stop", "ready"):
            for word in unknown_words(getattr(server, name, ""), candidate):
                there = ", ".join(name for name, value in words_of(candidate).items() if value)
                raise self.problem(
                    f"{name} has {{{word}}}, which candidate {candidate.name} has not",
                    ("servers", candidate.server, name),
                    f"declare it in [candidates.{candidate.name}.facts], or write {{{{ for a "
                    f"brace; there are {there}",
                )

    def _with_script(self, candidate: Candidate, keys: tuple[str, ...]) -> Candidate:
        if not candidate.script:
            raise self.problem(
                f"candidate {candidate.name} has no script", keys, 'write script = "FILE.toml"'
            )
        script = (self.path.parent / candidate.script).absolute()
        if not script.is_file():
            raise self.problem(
                f"there is no {candidate.script}", (*keys, "script"), "name a file that is there"
            )
        return candidate.model_copy(update={"script": str(script)})


def _plain(message: str) -> str:
    return re.sub(r"^Input should", "should", message)
