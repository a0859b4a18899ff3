"""What reports look like, shape by shape. Each was read by eye when it was taken.

Take up a change that is meant with ``pytest --snapshot-update``, and read what changed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from pytest_modelbench.records import (
    AttemptRecord,
    Check,
    FaultRecord,
    Identity,
    Outcome,
    Role,
    Stage,
    Usage,
    Verdict,
)
from pytest_modelbench.report.decisions import (
    Shown,
    gate_lines,
    markdown_gates,
    markdown_remarks,
    remark_lines,
)
from pytest_modelbench.report.gates import judge
from pytest_modelbench.report.grid import Grid, Options
from pytest_modelbench.report.markdown import markdown
from pytest_modelbench.report.rules import parse_rule
from pytest_modelbench.report.scorecard import Scorecard, scorecard
from pytest_modelbench.report.terminal import render
from pytest_modelbench.store.looks import Reading
from pytest_modelbench.store.reader import read

Outcomes = Mapping[str, Mapping[str, str]]
"""candidate → case → a letter a repeat: p passed, u unsolved, f fault, - not run."""

REASONS = ("wrong", "wrong", "wrong", "step-limit", "no-answer")
CHECKS = ("test_words", "test_no_text", "test_as_a_program")
FAULTS = ("overloaded", "overloaded", "stream-cut")


FIRST = Reading(1, False, True, ("new",))


@dataclass(frozen=True)
class Shape:
    """Outcomes, and what stands beside them. ``records`` are stored, too."""

    outcomes: Outcomes
    records: tuple[AttemptRecord, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Reading | None = FIRST
    shown: Mapping[str, Any] = field(default_factory=dict)
    gates: tuple[str, ...] = ()
    stored: Mapping[str, Any] = field(default_factory=dict)
    width: int = 80
    utf8: bool = True


def tried(candidate: str, case: str, repeat: int, letter: str, **given: Any) -> AttemptRecord:
    """Return a record whose every number follows from what it is."""
    draw = random.Random(f"{candidate} {case} {repeat} {letter}")
    seconds = round(draw.uniform(10, 60), 1)
    fields: dict[str, Any] = {
        "id": f"{candidate}/{case}/{repeat}/{given.get('identity', '')}/{given.get('run', '')}",
        "run": "run-1",
        "pack": "executor",
        "case": case,
        "candidate": candidate,
        "repeat": repeat,
        "identity": Identity(task="t1", check="c1", candidate="m1"),
        "started": f"2026-01-09T09:{draw.randrange(60):02}:{draw.randrange(60):02}.000Z",
        "seconds": seconds,
        "working": round(seconds * 0.9, 1),
        "box": "bubblewrap",
    }
    usage = Usage(
        requests=draw.randrange(3, 12),
        calls=3,
        input=draw.randrange(5_000, 60_000),
        cached=draw.randrange(5_000),
        output=draw.randrange(200, 4_000),
        reasoning=draw.randrange(200),
        retries=draw.choice((0, 0, 0, 1)),
        list_usd=draw.uniform(0.002, 0.03),
    )
    if letter == "f":
        fields["outcome"] = Outcome.FAULT
        fields["fault"] = FaultRecord(kind=draw.choice(FAULTS), stage=Stage.WORK)
    else:
        passed = letter == "p"
        lost = draw.choice(CHECKS)
        fields["outcome"] = Outcome.PASSED if passed else Outcome.UNSOLVED
        fields["verdict"] = Verdict(
            passed=passed,
            reward=float(passed),
            reason="" if passed else draw.choice(REASONS),
            checks=tuple(
                Check(
                    name=name,
                    passed=passed or name != lost,
                    reason="" if passed or name != lost else "AssertionError",
                )
                for name in CHECKS
            ),
        )
        fields["usage"] = {Role.CANDIDATE: usage}
        fields["counts"] = {"turns": draw.randrange(3, 20), "failed_commands": draw.randrange(3)}
    return AttemptRecord(**(fields | given))


def chance(
    skills: Mapping[str, float], cases: int, repeats: int = 1, faults: float = 0.0
) -> Outcomes:
    """Return outcomes of candidates of some skill, drawn with a fixed seed."""
    draw = random.Random(20260109)
    hard = [draw.gauss(0, 0.2) for _ in range(cases)]
    return {
        name: {
            f"case-{case + 1:03}": "".join(
                "f"
                if draw.random() < faults
                else "p"
                if draw.random() < skill + hard[case]
                else "u"
                for _ in range(repeats)
            )
            for case in range(cases)
        }
        for name, skill in skills.items()
    }


THREE = {"local-coder": 0.81, "hosted-pro": 0.7, "local-fast": 0.5}
LONG = {f"some-organisation/model-family-{n:02}-instruct"[:40]: 0.3 + n / 60 for n in range(30)}
TWO = chance({"local-coder": 0.8, "hosted-pro": 0.6}, 40)


def rewarded() -> tuple[AttemptRecord, ...]:
    """Return attempts whose reward is the share of three fields that is right."""
    draw = random.Random(7)
    records = []
    for name, skill in (("local-coder", 0.85), ("hosted-pro", 0.6)):
        for case in range(20):
            right = sum(draw.random() < skill for _ in range(3))
            reward = right / 3
            verdict = Verdict(
                passed=right >= 2, reward=reward, reason="" if right >= 2 else "wrong"
            )
            letter = "p" if right >= 2 else "u"
            records.append(tried(name, f"bank-{case:02}", 1, letter, verdict=verdict))
    return tuple(records)


def paid() -> tuple[AttemptRecord, ...]:
    """Return attempts that a judge was paid for, with each kind of cost."""
    judge_usage = Usage(requests=1, calls=1, input=900, output=50, list_usd=0.0021)
    usage = {
        "own-server": Usage(requests=4, calls=4, input=9_000, output=700, derived_usd=0.0007),
        "program": Usage(
            requests=9,
            calls=9,
            input=50_000,
            cached=42_000,
            output=2_000,
            list_usd=0.02,
            billed_usd=0.019,
            reported_usd=0.05,
        ),
        "unmetered": Usage(requests=3, calls=3, unmetered=3),
    }
    return tuple(
        tried(
            name,
            f"case-{n:03}",
            1,
            "pu"[n % 3 == 0],
            usage={Role.CANDIDATE: used, Role.JUDGE: judge_usage},
        )
        for name, used in usage.items()
        for n in range(12)
    )


def changed() -> tuple[AttemptRecord, ...]:
    """Return attempts of older tasks and candidates."""
    older = Identity(task="t0", check="c1", candidate="m1")
    other = Identity(task="t1", check="c1", candidate="m0")
    return (
        *(tried("local-coder", f"case-00{n}", 1, "u", identity=older, run="old") for n in (1, 2)),
        tried("hosted-pro", "case-001", 1, "p", identity=other, run="old"),
    )


HOSTILE = "\x1b[31mred\x1b[0m|<b>\n# x"

SHAPES: dict[str, Shape] = {
    "one case": Shape({"local-coder": {"fix-bug": "p"}}),
    "one case, two candidates": Shape(
        {"local-coder": {"fix-bug": "ppp"}, "hosted-pro": {"fix-bug": "upu"}}
    ),
    "no verdict": Shape(
        {"local-coder": {"fix-bug": "f"}, "hosted-pro": {"fix-bug": "-"}},
        options={"not_run": {}},
        reading=Reading(1, False, False, ()),
    ),
    "usual": Shape(chance(THREE, 50, 5)),
    "usual, wide": Shape(chance(THREE, 50, 5), width=200),
    "one attempt a case, ascii": Shape(chance(THREE, 50), utf8=False),
    "interim with faults": Shape(
        chance(THREE, 50, 5, faults=0.02), reading=Reading(2, False, False, ("new",))
    ),
    "thirty candidates": Shape(chance({f"model-{n:02}": 0.3 + n / 60 for n in range(30)}, 40)),
    "thirty candidates of long names, wide": Shape(chance(LONG, 40), width=200),
    "names of 40 characters": Shape(
        chance({name: skill for name, skill in list(LONG.items())[::14]}, 12)
    ),
    "baseline": Shape(
        chance({**THREE, "small": 0.45, "tiny": 0.2}, 60), options={"baseline": "hosted-pro"}
    ),
    "rewards with a threshold": Shape({}, rewarded(), shown={"threshold": 0.6}),
    "gates of each outcome": Shape(
        TWO,
        gates=(
            "floor:local-coder:0.5",
            "floor:hosted-pro:0.9",
            "not-worse-by:5:hosted-pro:baseline=local-coder",
            "not-worse-by:15:local-coder:baseline=hosted-pro",
            "superiority:local-coder:baseline=hosted-pro",
            "regression:hosted-pro:baseline=local-coder",
            "cost-per-pass:local-coder:0.02",
            "median-time:hosted-pro:30",
        ),
    ),
    "an incomplete gate": Shape(
        chance({"local-coder": 0.7}, 20, faults=0.1),
        reading=Reading(1, False, False, ("new",)),
        gates=("floor:local-coder:0.5",),
    ),
    "dev split": Shape(TWO, reading=Reading(1, False, True, ("new",), "dev")),
    "eval split, read often, resized": Shape(
        TWO,
        reading=Reading(6, True, True, ("new",), "eval", 6),
        options={"looks": 6, "resized": True},
    ),
    "partial": Shape(TWO, reading=None, options={"compare": False}),
    "judge, own server, program, unmetered": Shape({}, paid()),
    "old versions": Shape(
        {
            "local-coder": {"case-001": "p", "case-002": "p"},
            "hosted-pro": {"case-001": "u", "case-002": "u"},
        },
        changed(),
    ),
    "excluded, and all alike": Shape(
        {name: {f"case-{n:03}": "pppuuu"[n % 6] * 3 for n in range(12)} for name in THREE},
        options={"uncertified": {"case-004": "the untouched seed passes"}},
        shown={"alike": {name: (12, 12) for name in THREE}, "draw": "a sample of 12, seed 1"},
    ),
    "hostile text": Shape(
        {},
        (
            tried(
                HOSTILE,
                "case-001",
                1,
                "u",
                verdict=Verdict(
                    passed=False,
                    reward=0.0,
                    reason=HOSTILE,
                    checks=(Check(name=HOSTILE, passed=False, reason="a|b\x07"),),
                ),
                counts={HOSTILE: 3},
                served_model=HOSTILE,
            ),
            tried("\u202eevil", "case-001", 1, "p", note=""),
        ),
        options={"uncertified": {}},
    ),
}


def card_of(results: Any, shape: Shape) -> Scorecard:
    records = [
        tried(name, case, repeat, letter)
        for name, row in shape.outcomes.items()
        for case, letters in row.items()
        for repeat, letter in enumerate(letters, 1)
        if letter != "-"
    ]
    results.append(*shape.records, *records)
    names = list(shape.outcomes) or list(dict.fromkeys(r.candidate for r in shape.records))
    cases = dict.fromkeys(case for row in shape.outcomes.values() for case in row)
    cases = cases or dict.fromkeys(record.case for record in shape.records)
    repeats = max((len(s) for row in shape.outcomes.values() for s in row.values()), default=1)
    grid = Grid("executor", tuple(cases), tuple(names), repeats)
    return scorecard(
        read(results.root, details=True), grid, lambda case, name: TODAY, Options(**shape.options)
    )


TODAY = Identity(task="t1", check="c1", candidate="m1")


class Plain(SingleFileSnapshotExtension):
    """A file a snapshot, so that each reads as a user sees it."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class Markdown(Plain):
    """As above, to be looked at as what it is."""

    file_extension = "md"


@pytest.mark.parametrize("name", SHAPES)
def test_terminal(results: Any, snapshot: SnapshotAssertion, name: str) -> None:
    shape = SHAPES[name]
    card = card_of(results, shape)
    shown = Shown(shape.reading, **shape.shown)
    gates = judge(
        [parse_rule(text) for text in shape.gates], [card], lambda *_: None, lambda *_: False
    )
    lines = [
        *render(card, shape.width, shape.utf8),
        *remark_lines(card, shown, shape.width, utf8=shape.utf8),
    ]
    assert max(map(len, lines)) <= shape.width
    lines += gate_lines(gates, shape.width, utf8=shape.utf8)
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Plain)


@pytest.mark.parametrize("name", [name for name, s in SHAPES.items() if s.width == 80 and s.utf8])
def test_markdown(results: Any, snapshot: SnapshotAssertion, name: str) -> None:
    shape = SHAPES[name]
    card = card_of(results, shape)
    shown = Shown(shape.reading, **shape.shown)
    gates = judge(
        [parse_rule(text) for text in shape.gates], [card], lambda *_: None, lambda *_: False
    )
    parts = (markdown(card), markdown_remarks(card, shown), markdown_gates(gates))
    assert "\n".join(filter(None, parts)) == snapshot(extension_class=Markdown)
