"""A pack of short cases, one a line: inputs are shown, fields are asked for and compared."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import (
    Answer,
    Benchmark,
    Met,
    Private,
    Tool,
    ToolRefused,
    verdict,
)
from pytest_modelbench.benchmarks.tables.checking import read_checks
from pytest_modelbench.benchmarks.tables.comparing import RULES_VERSION, best_guess, parse_rule
from pytest_modelbench.benchmarks.tables.importing import ATTACHMENTS, CASES_FILE, SHARED
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.parsing import is_of_characters, parse, parse_at
from pytest_modelbench.records import Check, Verdict

PRESENT = "answer-present"


@dataclass
class Desk:
    """What a candidate has before it: files by name, the fields to give, and what it gave."""

    files: Mapping[str, bytes]
    fields: tuple[str, ...]
    given: dict[str, JsonValue] = field(default_factory=dict)


class Table(Benchmark[Desk]):
    """Options: ``fields`` (field → rule), ``prompt``, and ``cases``, a file of one case a line."""

    version = "1"
    rules_version = RULES_VERSION

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Read what is asked for, and the files that all cases share."""
        wrong = sorted(set(options) - {"fields", "prompt", "cases"})
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has fields, prompt, cases")
        fields = options.get("fields")
        if not isinstance(fields, dict) or not fields or PRESENT in fields:
            raise ValueError("write [benchmark.fields]: what is asked for = its rule")
        checks = read_checks(folder)
        self.rules = {name: parse_rule(str(rule), name, checks) for name, rule in fields.items()}
        rules: list[object] = [RULES_VERSION, {n: r.text for n, r in self.rules.items()}]
        if any(rule.text.startswith("check") for rule in self.rules.values()):
            rules.append(checks.code)
        self.rules_version = json.dumps(rules)
        self.prompt = str(options.get("prompt", ""))
        self.folder = folder
        self.path = folder / str(options.get("cases", CASES_FILE))
        shared = folder / SHARED
        self.shared = {
            path.relative_to(shared).as_posix(): path.read_bytes()
            for path in sorted(shared.rglob("*"))
            if path.is_file()
        }

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case a line."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise PackProblem(
                "is not there", path=self.path, remedy="make it with `modelbench import`"
            ) from None
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield self._case(line, number)

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> Desk:
        """Lay out the shared files and the case's own."""
        return Desk({**self.shared, **self._attached(public)}, tuple(self.rules))

    def tools(self, world: Desk) -> Sequence[Tool]:
        """Return a tool to answer with, and two for files where there are any."""

        def answer(arguments: Mapping[str, JsonValue]) -> str:
            world.given = {name: arguments[name] for name in world.fields if name in arguments}
            return "Taken."

        def read(arguments: Mapping[str, JsonValue]) -> str:
            name = str(arguments["name"])
            if name not in world.files:
                raise ToolRefused(f"there is no file {name!r}; there are: {', '.join(world.files)}")
            try:
                return world.files[name].decode("utf-8-sig")
            except UnicodeDecodeError:
                raise ToolRefused(f"{name!r} is not text") from None

        names: dict[str, JsonValue] = {name: {"type": "string"} for name in world.fields}
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": names,
            "required": list(world.fields),
        }
        tools = [Tool("answer", "Give your answer; it ends the task.", schema, answer, ends=True)]
        if world.files:
            one: dict[str, JsonValue] = {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            }
            tools.append(Tool("read_file", f"Read one of: {', '.join(world.files)}.", one, read))
        return tools

    def harvest(self, world: Desk, met: Met) -> JsonValue:
        """Return the fields that were given by the tool, or as a JSON object in the last text."""
        if world.given:
            return {"answer": world.given}
        found = object_in(met.text or "", world.fields)
        return {"answer": found}

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Compare each field; the reward is the share that is right."""
        answer = observation.get("answer") if isinstance(observation, dict) else None
        given = answer if isinstance(answer, dict) else {}
        checks = [Check(name=PRESENT, passed=bool(given), reason="" if given else "no answer")]
        shares = []
        for name, rule in self.rules.items():
            share = rule.share(str(private.data[name]), given[name]) if name in given else 0.0
            shares.append(share)
            checks.append(
                Check(name=name, passed=share >= 1, reward=share, reason=_why(name in given, share))
            )
        reason = "wrong" if given else "no-answer"
        return verdict(checks, reward=sum(shares) / len(shares), reason=reason)

    def guesses(self, cases: Sequence[BenchmarkCase]) -> Mapping[str, float]:
        """Return how often the commonest outcome of a field is right, and those of all together."""
        if not cases:
            return {}
        right = [True] * len(cases)
        found: dict[str, float] = {}
        for name, rule in self.rules.items():
            golds = [str(case.private.data[name]) for case in cases]
            common = best_guess(rule, golds)
            hits = [rule.right(gold, common) for gold in golds]
            right = [both and hit for both, hit in zip(right, hits, strict=True)]
            found[f"the commonest {name}"] = sum(hits) / len(cases)
        if len(self.rules) > 1:
            found["all of them"] = sum(right) / len(cases)
        return found

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Return the gold, or the gold with one field made wrong."""
        gold = {name: str(case.private.data[name]) for name in self.rules}
        for number, (name, rule) in enumerate(self.rules.items(), 1):
            if variant == _variant(number, name):
                gold[name] = rule.wrong(gold[name])
        return Answer(calls=(("answer", {**gold}),))

    def _case(self, line: str, number: int) -> BenchmarkCase:
        def wrong(what: str) -> PackProblem:
            remedy = "write id, input and expected, or import the table again"
            return PackProblem(what, path=self.path, line=number, remedy=remedy)

        try:
            raw = parse(line)
        except ValueError as error:
            raise wrong(f"is not JSON: {error}") from None
        if not is_of_characters(line, raw):
            raise wrong("has half of a surrogate pair, which is no character")
        raw = raw if isinstance(raw, dict) else {}
        case_id, shown, expected = raw.get("id"), raw.get("input"), raw.get("expected")
        if not isinstance(case_id, str) or not isinstance(shown, dict):
            raise wrong("is no case: it has no id, or no input")
        if not isinstance(expected, dict) or not set(self.rules) <= set(expected):
            missing = sorted(set(self.rules) - set(expected if isinstance(expected, dict) else ()))
            raise wrong(f"the case {case_id!r} expects nothing for {', '.join(missing)}")
        for name, rule in self.rules.items():
            if not rule.gradable(str(expected[name])):
                raise wrong(f"the case {case_id!r}: {name} cannot be compared by {rule.text}")
        attachments = raw.get("attachments", {})
        public: dict[str, JsonValue] = {"input": shown, "attachments": attachments}
        files = {**self.shared, **self._attached(public)}
        return BenchmarkCase(
            id=case_id,
            prompt=self._told(shown, sorted(files)),
            public=public,
            private=Private({name: expected[name] for name in self.rules}),
            group=str(raw.get("group", "")),
            world=_digest(files) if files else "",
            damaged={_variant(at, name): (name,) for at, name in enumerate(self.rules, 1)},
        )

    def _told(self, shown: Mapping[str, JsonValue], files: Sequence[str]) -> str:
        said = "\n".join(f"{name}: {value}" for name, value in shown.items())
        if files:
            said += f"\n\nFiles, which `read_file` reads: {', '.join(files)}"
        fields = ", ".join(self.rules)
        how = f"Answer by calling `answer`, or with one JSON object, with these fields: {fields}"
        return f"{self.prompt}\n\n{said}\n\n{how}".strip()

    def _attached(self, public: Mapping[str, JsonValue]) -> dict[str, bytes]:
        attachments = public.get("attachments")
        found = {}
        for place in attachments.values() if isinstance(attachments, dict) else ():
            path = self.folder / ATTACHMENTS / str(place)
            if not path.is_file():
                raise PackProblem("is not there", path=path, remedy="import the table again")
            found[path.name] = path.read_bytes()
        return found


def object_in(text: str, fields: Sequence[str]) -> dict[str, JsonValue]:
    """Return the fields of the last JSON object in a text that has any of them; {} for none."""
    found: dict[str, JsonValue] = {}
    at = text.find("{")
    while at >= 0:
        try:
            value, end = parse_at(text, at)
        except ValueError:
            value, end = None, at + 1
        if isinstance(value, dict) and any(name in value for name in fields):
            found = {name: value[name] for name in fields if name in value}
        at = text.find("{", end)
    return found


def _variant(number: int, name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40]
    return f"wrong-{number}" + (f"-{plain}" if plain else "")


def _why(given: bool, share: float) -> str:
    if share >= 1:
        return ""
    return "wrong" if given else "missing"


def _digest(files: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, data in sorted(files.items()):
        total.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    return total.hexdigest()[:32]
