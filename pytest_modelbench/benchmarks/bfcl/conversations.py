"""BFCL multi-turn: requests that come one after the other, met by functions of small apps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean

from pydantic import JsonValue

from pytest_modelbench.benchmarks.benchmark import Answer, Benchmark, Met, Private, Tool, verdict
from pytest_modelbench.benchmarks.bfcl.conversation import (
    APPS,
    CONVERSATION_RULES,
    DOCUMENTS,
    Apps,
    Conversation,
    judge_conversation,
    parse_call,
)
from pytest_modelbench.benchmarks.bfcl.provider import schema_for
from pytest_modelbench.benchmarks.bfcl.records import PREFIX, lines_of
from pytest_modelbench.benchmarks.bfcl.rules import Language
from pytest_modelbench.benchmarks.loops import Loop
from pytest_modelbench.candidates.clock import End
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.records import Check, Verdict

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param")
SCORE = "BFCL multi-turn without long context"
STEPS = 20
"""Replies with calls in one turn; a candidate that makes more is cut off, as upstream has it."""

MORE_FUNCTIONS = "There are more functions now. Can you do it with them?"
"""What is said in a turn that only brings functions that were missing."""

NEXT_TURN = "next-turn"
"""A tool of the reference alone: no model is offered it."""


@dataclass
class Talk:
    """One attempt's apps, the requests, and the calls that were made: turns of steps of calls."""

    apps: Apps
    requests: Sequence[Sequence[JsonValue]]
    functions: Mapping[str, Tool] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    """Functions that are offered from a turn on only."""
    made: list[list[list[dict[str, JsonValue]]]] = field(default_factory=list)
    stepwise: bool = False
    """Whether every call is a step of its own: nobody tells which belong together."""

    def begin(self) -> list[Tool]:
        """Begin a turn; return what is offered in it."""
        self.made.append([])
        turn = len(self.made) - 1
        return [tool for name, tool in self.functions.items() if self.missing.get(name, 0) <= turn]

    def do(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """Do a call, and keep it."""
        if not self.made:
            self.made.append([])
        if self.stepwise or not self.made[-1]:
            self.made[-1].append([])
        call: dict[str, JsonValue] = {name: dict(arguments)}
        self.made[-1][-1].append(call)
        return self.apps.call({name: arguments})


class BfclConversations(Benchmark[Talk]):
    """Options: ``data``, as for single turns, with ``multi_turn_func_doc`` in it or beside it.

    ``categories``, by default all of `CATEGORIES` that are there.
    """

    version = "1"
    rules_version = CONVERSATION_RULES

    def __init__(self, folder: Path, options: Mapping[str, JsonValue]) -> None:
        """Take where the data is, and read what the functions are."""
        wrong = sorted(set(options) - {"data", "categories"})
        if wrong:
            raise ValueError(f"it has no option {', '.join(wrong)}; it has data, categories")
        self.folder = folder / str(options.get("data", "data"))
        wanted = options.get("categories", list(CATEGORIES))
        if not isinstance(wanted, list) or not all(one in CATEGORIES for one in wanted):
            raise ValueError(f"categories is a list of some of {', '.join(CATEGORIES)}")
        self.categories = [one for one in CATEGORIES if one in wanted]
        self.documents = {name: self._document(file) for name, file in DOCUMENTS.items()}
        told = json.dumps(self.documents, sort_keys=True)
        self.digest = hashlib.sha256(told.encode()).hexdigest()[:32]

    def cases(self) -> Iterator[BenchmarkCase]:
        """Yield a case a conversation."""
        for category in self.categories:
            upstream = self.folder / f"{PREFIX}{category}.json"
            path = upstream if upstream.is_file() else self.folder / f"{category}.jsonl"
            if not path.is_file():
                continue
            answers = self.folder / "possible_answer" / upstream.name
            golds: dict[object, object] = {}
            if path is upstream and answers.is_file():
                golds = {raw.get("id"): raw.get("ground_truth") for _, raw in lines_of(answers)}
            for line, raw in lines_of(path):
                gold = raw.get("ground_truth", golds.get(raw.get("id")))
                yield self._case(category, raw, gold, path, line)

    def messages(
        self, case: BenchmarkCase, options: Mapping[str, JsonValue]
    ) -> Sequence[JsonValue]:
        """Return the first request."""
        return _lists(case.public["turns"])[0]

    def setup(self, public: Mapping[str, JsonValue], folder: Path) -> Talk:
        """Set the apps up as the conversation finds them."""
        classes = [str(name) for name in _list(public["classes"])]
        talk = Talk(Apps(classes, _scenarios(public)), _lists(public["turns"]))
        left_out = {str(name) for name in _list(public["left_out"])}
        for name in classes:
            for function in self.documents[name]:
                known = str(function["name"])
                if known not in left_out:
                    schema = schema_for(function, Language.PYTHON)
                    told = str(function.get("description", ""))
                    talk.functions = {
                        **talk.functions,
                        known: Tool(known, told, schema, partial(talk.do, known)),
                    }
        missing = public["missing"]
        for turn, names in missing.items() if isinstance(missing, dict) else ():
            talk.missing = {**talk.missing, **{str(n): int(turn) for n in _list(names)}}
        return talk

    def tools(self, world: Talk) -> Sequence[Tool]:
        """Return every function, and how the reference says that a turn begins."""

        def begin(arguments: Mapping[str, JsonValue]) -> str:
            world.stepwise = True
            world.begin()
            return ""

        return [*world.functions.values(), Tool(NEXT_TURN, "", {}, begin)]

    def drive(self, loop: Loop) -> Met:
        """Make one request after the other; each ends with a reply that calls nothing."""
        talk = loop.world
        assert isinstance(talk, Talk), "the world is what setup made"
        talk.stepwise = loop.solver is not None
        try:
            for number, request in enumerate(talk.requests):
                if number:
                    said: JsonValue = {"role": "user", "content": MORE_FUNCTIONS}
                    loop.messages += list(request) or [said]
                loop.offer(talk.begin())
                _one_turn(loop, talk)
        except End as end:
            return loop.over(end)
        return loop.over()

    def harvest(self, world: Talk, met: Met) -> JsonValue:
        """Return the calls."""
        turns: list[JsonValue] = [[[*step] for step in turn] for turn in world.made]
        return {"replied": met.replied, "turns": turns}

    def verify(self, private: Private, observation: JsonValue) -> Verdict:
        """Run the calls, and the gold's, on apps of their own, and compare after every turn."""
        seen = observation if isinstance(observation, dict) else {}
        replied = seen.get("replied") is True
        turns = [
            [[call for call in _list(step) if isinstance(call, dict)] for step in _list(turn)]
            for turn in _list(seen.get("turns") or [])
        ]
        data = private.data
        conversation = Conversation(
            [str(name) for name in _list(data["classes"])], _scenarios(data), _golds(data["gold"])
        )
        ruling = judge_conversation(conversation, turns)  # type: ignore[arg-type]  # JSON: a call has one key, or is told apart
        checks = [
            Check(name="replied", passed=replied, reason="" if replied else "no answer"),
            Check(name="conversation", passed=ruling.valid, reason=ruling.error),
        ]
        return verdict(checks, reason="wrong" if replied else "no-answer")

    def scores(
        self, cases: Sequence[BenchmarkCase], shares: Mapping[str, float]
    ) -> Mapping[str, float]:
        """Return the mean of the three categories, and each of them."""
        found: dict[str, list[float]] = {}
        for case in cases:
            if case.id in shares:
                name = str(case.public["category"]).removeprefix("multi_turn_")
                found.setdefault(name, []).append(shares[case.id])
        parts = {name: mean(some) for name, some in found.items()}
        whole = {SCORE: mean(parts.values())} if len(parts) == len(CATEGORIES) else {}
        return {**whole, **parts}

    def reference(self, case: BenchmarkCase, variant: str = "") -> Answer | None:
        """Return the gold's calls, turn by turn; or with one turn left silent."""
        turns = [list(turn) for turn in _golds(case.private.data["gold"])]
        if variant == "silent-turn":
            turns[max(at for at, turn in enumerate(turns) if turn)] = []
        elif variant:
            return None
        data = case.private.data
        functions = Apps([str(one) for one in _list(data["classes"])], _scenarios(data)).functions
        calls: list[tuple[str, Mapping[str, JsonValue]]] = []
        for turn in turns:
            calls.append((NEXT_TURN, {}))
            calls += [parse_call(text, functions) for text in turn]
        return Answer("Done.", tuple(calls))

    def _document(self, name: str) -> list[dict[str, JsonValue]]:
        """Return what is said of an app's functions."""
        for folder in (self.folder, self.folder.parent):
            path = folder / "multi_turn_func_doc" / f"{name}.json"
            if path.is_file():
                return [raw for _, raw in lines_of(path)]
        raise PackProblem(
            f"there is no multi_turn_func_doc/{name}.json in it",
            path=self.folder,
            remedy="bring upstream's folder multi_turn_func_doc",
        )

    def _case(
        self,
        category: str,
        raw: Mapping[str, JsonValue],
        gold: object,
        path: Path,
        line: int,
    ) -> BenchmarkCase:
        turns, classes = raw.get("question"), raw.get("involved_classes")
        sound = isinstance(turns, list) and isinstance(classes, list) and isinstance(gold, list)
        if not sound or not isinstance(raw.get("id"), str) or len(_list(gold)) != len(_list(turns)):
            raise PackProblem(
                "is no conversation of BFCL: it needs id, question, involved_classes and, beside "
                "it or in possible_answer/, as many turns of ground_truth",
                path=path,
                line=line,
                remedy="take the file as upstream has it",
            )
        unknown = sorted({str(name) for name in _list(classes)} - set(APPS))
        if unknown:
            raise PackProblem(
                f"the conversation {raw['id']} is with {', '.join(unknown)}, which is not here",
                path=path,
                line=line,
                remedy=f"there are {', '.join(APPS)}",
            )
        shared: dict[str, JsonValue] = {
            "classes": classes,
            "scenarios": raw.get("initial_config", {}),
        }
        first = next((one for one in _lists(turns)[0] if isinstance(one, dict)), {})
        return BenchmarkCase(
            id=str(raw["id"]),
            prompt=str(first.get("content", "")),
            public={
                **shared,
                "category": category,
                "turns": turns,
                "left_out": raw.get("excluded_function", []),
                "missing": raw.get("missed_function", {}),
            },
            private=Private({**shared, "gold": _list(gold)}),
            tags=(category, *(str(name) for name in _list(classes))),
            world=self.digest,
            damaged={"silent-turn": ("conversation",)},
        )


def _one_turn(loop: Loop, talk: Talk) -> None:
    """Let a candidate work until a reply calls nothing; End where it is cut off."""
    if loop.solver is not None:
        met = loop.solve(loop.solver)
        if met.end:
            raise End(met.end, met.detail)
        return
    for _ in range(STEPS):
        reply = loop.ask()
        if not reply.tool_calls:
            return
        talk.made[-1].append([])
        loop.act(reply.tool_calls)
        if not talk.made[-1][-1]:
            talk.made[-1].pop()  # none of its calls could be made
    raise End("step-limit", f"{STEPS} replies with calls in one turn")


def _list(value: object) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _lists(value: object) -> list[list[JsonValue]]:
    return [_list(one) for one in _list(value)]


def _golds(value: object) -> list[list[str]]:
    return [[str(call) for call in turn] for turn in _lists(value)]


def _scenarios(data: Mapping[str, JsonValue]) -> Mapping[str, Mapping[str, JsonValue]]:
    found = data["scenarios"]
    whole = found if isinstance(found, dict) else {}
    return {name: one for name, one in whole.items() if isinstance(one, dict)}
