"""A LiteLLM proxy configuration (``config.yaml``) as a source of candidates."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_modelbench.candidates.flaws import ALIAS, OURS, RAW_NAME, flaw_of, secret_in
from pytest_modelbench.errors import RegistryProblem
from pytest_modelbench.records import BUILT_IN, Candidate

VARIABLE = "os.environ/"
PLACEHOLDERS = ("", "dummy", "empty", "fake", "none", "no-key", "not-needed")
"""Keys, in lower case, that say 'this server wants none'."""

ROUTING = {
    "max_parallel_requests",
    "max_retries",
    "num_retries",
    "order",
    "rpm",
    "stream_timeout",
    "tpm",
    "weight",
}
"""Parameters of the proxy's own router, which are not sent: the gateway has its own retries."""

LIMITS = {"rpm": "requests_per_minute", "tpm": "tokens_per_minute"}
"""Those of them that the gateway keeps as well, and what they are called here."""

PRICES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached",
    "cache_creation_input_token_cost": "cache_written",
}

_EXPONENT = re.compile(r"\d+e-?\d+", re.IGNORECASE)

_Problem = Callable[[str, str], RegistryProblem]
"""What makes a problem of an entry: what is wrong, what to do."""


def read_config(path: Path) -> dict[str, Candidate | RegistryProblem]:
    """Return the models of ``model_list`` by alias; a problem for each that is not sound.

    RegistryProblem is raised where the file as a whole cannot be read. A name for a group of
    deployments is not sound: a candidate is one model at one address. Patterns (``openai/*``) are
    passed over, since a raw LiteLLM name needs no alias.
    """
    lines = _lines_of_entries(path)
    found: dict[str, Candidate | RegistryProblem] = {}
    first: dict[str, int] = {}
    for entry, line in lines:
        name = entry.get("model_name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str):
            raise RegistryProblem(
                "an entry of model_list has no model_name",
                path=path,
                line=line,
                remedy="give it one",
            )
        if "*" in name:
            continue
        if name in found:
            found[name] = RegistryProblem(
                f"{name} stands for several deployments (lines {first[name]} and {line})",
                path=path,
                line=first[name],
                remedy="a candidate is one model at one address: give each a name of its own",
            )
            continue
        first[name] = line
        try:
            found[name] = _candidate(name, entry, path, line)
        except RegistryProblem as problem:
            found[name] = problem
    return found


def _lines_of_entries(path: Path) -> list[tuple[object, int]]:
    # litellm brings PyYAML; only who names such a file pays for its import.
    import yaml

    try:
        text = path.read_bytes().decode("utf-8-sig")
        config: object = yaml.safe_load(text)
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise RegistryProblem(
            f"cannot be read ({error.strerror})", path=path, remedy="name a file that is there"
        ) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        what = getattr(error, "problem", None) or "its text cannot be read"
        raise RegistryProblem(f"is not YAML: {what}", path=path, line=line) from None
    models = config.get("model_list") if isinstance(config, dict) else None
    if tree is None or not isinstance(models, list):
        raise RegistryProblem(
            "has no model_list", path=path, remedy="give the config.yaml of a LiteLLM proxy"
        )
    nodes = next(value for key, value in tree.value if key.value == "model_list")
    return [
        (model, node.start_mark.line + 1) for model, node in zip(models, nodes.value, strict=True)
    ]


def _candidate(
    name: str,
    entry: Mapping[str, Any],  # Any: not checked yet
    path: Path,
    line: int,
) -> Candidate:
    def problem(what: str, remedy: str) -> RegistryProblem:
        return RegistryProblem(f"{name}: {what}", path=path, line=line, remedy=remedy)

    if name in BUILT_IN:
        raise problem("this name is built in", "choose another")
    if not (ALIAS.fullmatch(name) or RAW_NAME.fullmatch(name)):
        raise problem(
            "cannot be a name here",
            "use letters, digits, '.', '_' and '-', the first a letter or a digit",
        )
    given, info = entry.get("litellm_params"), entry.get("model_info") or {}
    if not isinstance(given, dict) or not isinstance(info, dict):
        raise problem("has no litellm_params", "give it a table with model")
    params = {key: value for key, value in given.items() if key not in ROUTING}
    key_variable = _key_variable(params.pop("api_key", None), problem)
    params = {key: _from_environment(key, value, problem) for key, value in params.items()}
    fields: dict[str, object] = {
        "name": name,
        "model": params.pop("model", ""),
        "api_base": params.pop("api_base", None) or params.pop("base_url", None) or "",
        "api_key_env": key_variable,
        "price": _price(params | info),
        "facts": {key: value for key, value in info.items() if key != "id" and key not in PRICES},
    }
    fields |= {ours: given[theirs] for theirs, ours in LIMITS.items() if given.get(theirs)}
    fields["params"] = {
        key: value for key, value in params.items() if key not in PRICES and key not in OURS
    }
    try:
        candidate = Candidate.model_validate(fields, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise problem(f"{where}: {first['msg']}", "mend it in litellm_params") from None
    if not candidate.model:
        raise problem("has no model", "write litellm_params: {model: openai/NAME}")
    flaw = flaw_of(candidate)
    if flaw is not None:
        raise problem(flaw.what, flaw.remedy)
    return candidate


def _key_variable(key: object, problem: _Problem) -> str:
    """Return the name of the variable that holds the key, '' for a server that wants none."""
    if key is None or (isinstance(key, str) and key.lower() in PLACEHOLDERS):
        return ""
    if isinstance(key, str) and key.startswith(VARIABLE):
        return key.removeprefix(VARIABLE)
    raise problem(
        "holds a key itself",
        f"write api_key: {VARIABLE}NAME and take the key back; a file is no place for it",
    )


def _from_environment(name: str, value: object, problem: _Problem) -> object:
    """Return a parameter, looked up where it names a variable; another secret is refused."""
    place = secret_in(value, (name,))
    if place:
        raise problem(
            f"{'.'.join(place)} is a secret of its own",
            "leave it out: the provider's usual variables are read by LiteLLM itself",
        )
    if not isinstance(value, str) or not value.startswith(VARIABLE):
        return value
    variable = value.removeprefix(VARIABLE)
    if variable not in os.environ:
        raise problem(f"{name} names the variable {variable}, which is not set", "set it")
    return os.environ[variable]


def _price(values: Mapping[str, object]) -> dict[str, float]:
    """Return USD for a million tokens of each class for which a price of one token is given."""
    found = {}
    for theirs, ours in PRICES.items():
        value = values.get(theirs)
        # YAML 1.1 takes 1e-6, written without a point, for a string.
        if isinstance(value, int | float) or (
            isinstance(value, str) and _EXPONENT.fullmatch(value)
        ):
            found[ours] = round(float(value) * 1e6, 9)
    return found
