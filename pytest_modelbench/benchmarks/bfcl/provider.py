"""BFCL single-turn AST: functions are offered, nothing runs, the calls of one reply are judged.

What a score of it may be called is "BFCL single-turn AST": the leaderboard's own score has
conversations and agentic tasks besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer, Benchmark, Met, Private, Tool, verdict
from pytest_modelbench.benchmarks.bfcl.gold import gold_calls
from pytest_modelbench.benchmarks.bfcl.leaderboard import weighted
from pytest_modelbench.benchmarks.bfcl.records import CATEGORIES, LIVE, Record, read_category
from pytest_modelbench.benchmarks.bfcl.rules import RULES_VERSION, Language, judge
from pytest_modelbench.benchmarks.loops import Loop, one_answer
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.records import Check, Verdict

JSON_TYPES = {
    "integer": "integer",
    "float": "number",
    "number": "number",
    "string": "string",
    "boolean": "boolean",
    "array": "array",
    "tuple": "array",
    "dict": "object",
    "any": "string",
}
"""BFCL's names of types → those of JSON schemas."""

LONGEST_NAME = 64

CALLS_ANYWAY = "calls-anyway"


@dataclass(frozen=True)
class Offer:
    """The functions of a case as they are offered; ``names`` is the name sent → the real one."""

    tools: tuple[Tool, ...]
    names: Mapping[str, str]


class Bfcl(Benchmark[Offer]):
    """Options: ``data``, a folder below the pack's or anywhere; ``categories``, by default all."""

    version = "1"
    rules_version = RULES_VERSION

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take where the data is, and which categories are wanted."""
        wrong = sorted(set(options) - {"data", "categories"})
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has data, categories")
        data = options.get("data", "data")
        if not isinstance(data, str):
            raise TypeError("data is no text; it names a folder")
        self.folder = folder / data
        if not self.folder.is_dir():
            raise FileNotFoundError(f"there is no folder {self.folder}; data names it")
        wanted = options.get("categories", list(CATEGORIES))
        if not isinstance(wanted, list) or not all(one in CATEGORIES for one in wanted):
            raise ValueError(f"categories is a list of some of {', '.join(CATEGORIES)}")
        self.categories = [one for one in CATEGORIES if one in wanted]

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case a record of the categories that are wanted and there."""
        for category in self.categories:
            for record in read_category(self.folder, category):
                yield _case(record)

    def messages(
        self, case: BenchmarkCase, options: Mapping[str, JsonValue]
    ) -> Sequence[JsonValue]:
        """Return the messages of the record's one turn."""
        messages = case.public["messages"]
        return messages if isinstance(messages, list) else []

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> Offer:
        """Offer the functions under names that servers take."""
        language = Language.of(str(public["category"]))
        functions = [one for one in _list(public["functions"]) if isinstance(one, dict)]
        sent = sent_names([str(one["name"]) for one in functions])
        tools = [
            Tool(name, _description(one, language), schema_for(one, language), _nothing)
            for name, one in zip(sent, functions, strict=True)
        ]
        names = [str(one["name"]) for one in functions]
        return Offer(tuple(tools), dict(zip(sent, names, strict=True)))

    def tools(self, world: Offer) -> Sequence[Tool]:
        """Return the offered functions."""
        return world.tools

    def drive(self, loop: Loop) -> Met:
        """Ask once: there is one turn."""
        return one_answer(loop)

    def harvest(self, world: Offer, met: Met) -> JsonValue:
        """Return the calls under their real names; None where one of them cannot be read."""
        calls: list[JsonValue] = [
            {world.names.get(call.name, call.name): dict(call.arguments)}
            for call in met.calls
            if call.arguments is not None
        ]
        readable = len(calls) == len(met.calls)
        return {"replied": met.replied, "calls": calls if readable else None}

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Judge the calls by the rules of the category."""
        data, seen = private.data, observation if isinstance(observation, dict) else {}
        replied = seen.get("replied") is True
        ruling = judge(
            str(data["category"]),
            [one for one in _list(data["functions"]) if isinstance(one, dict)],
            seen.get("calls"),
            [one for one in _list(data["gold"]) if isinstance(one, dict)],
        )
        checks = [
            Check(name="replied", passed=replied, reason="" if replied else "no answer"),
            Check(name="calls", passed=ruling.valid, reason=ruling.error),
        ]
        return verdict(checks, reason="wrong" if replied else "no-answer")

    def scores(
        self, cases: Sequence[BenchmarkCase], shares: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Return the score weighted as the leaderboard weighs, and its parts."""
        found: dict[str, list[float]] = {}
        for case in cases:
            if case.id in shares:
                found.setdefault(str(case.public["category"]), []).append(shares[case.id])
        return weighted(found)

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Return the gold's calls; a text where none is right, any call where any is.

        The one variant calls a function where none is to be called.
        """
        data = case.private.data
        category = str(data["category"])
        functions = [one for one in _list(data["functions"]) if isinstance(one, dict)]
        names = [str(one["name"]) for one in functions]
        sent = dict(zip(names, sent_names(names), strict=True))
        if variant or ("relevance" in category and "irrelevance" not in category):
            return Answer(calls=((sent[names[0]], {}),))
        if "irrelevance" in category:
            return Answer("None of the functions answers this.")
        gold = [one for one in _list(data["gold"]) if isinstance(one, dict)]
        calls = gold_calls(functions, gold, Language.of(category))
        return Answer(calls=tuple((sent.get(name, name), given) for name, given in calls))


def sent_names(names: Sequence[str]) -> list[str]:
    """Return names that servers take (letters, digits, ``_``, ``-``; 64 at most), all different."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LONGEST_NAME] or "_"
        number = 2
        unique = plain
        while unique in found:
            unique = f"{plain[: LONGEST_NAME - 4]}_{number}"
            number += 1
        found.append(unique)
    return found


def _case(record: Record) -> BenchmarkCase:
    said = [one for one in record.messages if isinstance(one, dict) and one.get("role") == "user"]
    prompt = str(said[-1].get("content", "")) if said else ""
    functions: list[JsonValue] = [*record.functions]
    kind = "live" if record.category in LIVE else "non-live"
    return BenchmarkCase(
        id=record.id,
        prompt=prompt,
        public={"category": record.category, "messages": record.messages, "functions": functions},
        private=Private(
            {"category": record.category, "functions": functions, "gold": [*record.gold]}
        ),
        tags=(record.category, kind),
        # Elsewhere doing nothing loses the check already.
        damaged={CALLS_ANYWAY: ("calls",)}
        if "irrelevance" in record.category and functions
        else {},
    )


def _nothing(arguments: Mapping[str, JsonValue]) -> str:
    """Do nothing: calls are recorded, not run."""
    return ""


def _description(function: Mapping[str, JsonValue], language: Language) -> str:
    name = {"java": "Java 8", "javascript": "JavaScript"}.get(language.value, "Python 3")
    return f"{function.get('description', '')} The function is written in {name}."


def schema_for(function: Mapping[str, JsonValue], language: Language) -> dict[str, JsonValue]:
    """Return the JSON schema of a function's arguments; of source text for Java and JavaScript."""
    parameters = function.get("parameters")
    plain = dict(parameters) if isinstance(parameters, dict) else {}
    if language is not Language.PYTHON:
        properties = plain.get("properties")
        plain["properties"] = {
            name: _as_source(one, language)
            for name, one in (properties.items() if isinstance(properties, dict) else ())
        }
    return {"type": "object", **_as_json_schema(plain)}


def _as_source(schema: JsonValue, language: Language) -> JsonValue:
    """Return the schema of a value that is sent as source text, its real type told in words."""
    if not isinstance(schema, dict):
        return schema
    declared = str(schema.get("type", "any"))
    items = schema.get("items")
    of_items = f" of {items.get('type')}" if isinstance(items, dict) else ""
    name = "Java" if language is Language.JAVA else "JavaScript"
    told = f"Write it as a string of {name} source text; its type is {declared}{of_items}."
    return {"type": "string", "description": f"{schema.get('description', '')} {told}".strip()}


def _as_json_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a schema of BFCL's with the types of JSON schemas, all the way down."""
    found: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            found[key] = JSON_TYPES.get(value, "string")
        elif key == "properties" and isinstance(value, dict):
            found[key] = {
                name: _as_json_schema(one) if isinstance(one, dict) else one
                for name, one in value.items()
            }
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _as_json_schema(value)
        else:
            found[key] = value
    return found


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise UsageProblem(f"{str(value)[:60]!r} is no list")
    return value
