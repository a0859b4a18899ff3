"""The benchmark of docs/write-a-benchmark.md, run as a user would run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

PAGE = Path(__file__).parents[2] / "docs" / "write-a-benchmark.md"
FILES = dict(
    re.findall(
        r"^```(?:toml|python)\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
)
PACK, CODE = "cases/stock/pack.toml", "cases/stock/stock.py"

GOOD = """
[[cases.one-move.steps]]
calls = [{ name = "move", arguments = { goods = "lamp", count = 30 } }]
[[cases.one-move.steps]]
calls = [{ name = "move", arguments = { goods = "lamp", count = 3 } }]
[[cases.one-move.steps]]
content = "Done."
[[cases.two-moves.steps]]
content = "I moved them all."
"""


@pytest.fixture
def stock(project: Project) -> Project:
    for name, text in FILES.items():
        project.write(name, text)
    project.write("scripts/good.toml", GOOD)
    return project.candidate("good", agent="scripted", script="scripts/good.toml")


def test_it_is_short() -> None:
    assert len(FILES[PACK].splitlines()) + len(FILES[CODE].splitlines()) < 100


@pytest.mark.slow
def test_it_certifies_runs_replays_and_judges_again(stock: Project) -> None:
    first = stock.run("--models", "good")
    assert first.exit == 0, first.out
    assert {cell.case: passed for cell, passed in stock.verdicts("good").items()} == {
        "one-move": [True],
        "two-moves": [False],
    }
    # Each case: reference, doing nothing, and two damaged answers.
    assert "8 certified" in first.out
    (record,) = [one for one in stock.tries("good") if one.case == "two-moves"]
    assert record.verdict is not None
    assert [(c.name, c.passed) for c in record.verdict.checks] == [
        ("cellar", False),
        ("shop", False),
    ]
    assert {one.counts["failed_calls"] for one in stock.tries("good")} == {0, 1}

    again = stock.run("--models", "good")
    assert again.exit == 0, again.out
    assert len(stock.tries("good")) == 2

    # Another rule: what was kept is judged again, and no model is asked.
    scores = (
        "    def scores(self, cases, shares):\n        return {'moved': sum(shares.values()) / 4}\n"
    )
    scores += "\n    def guesses(self, cases):\n        return {'at random': 0.125}\n"
    changed = FILES[CODE].replace('rules_version = "1"', 'rules_version = "2"')
    stock.write(CODE, f"{changed}\n{scores}")
    judged = stock.run("--models", "good")
    assert judged.exit == 0, judged.out
    assert [one.kind for one in stock.tries("good")] == ["attempt"] * 2 + ["regrade"] * 2
    assert "good: moved 25.0 %" in judged.out
    assert "guessing gets: at random 12.5 %" in judged.out


@pytest.mark.slow
def test_an_unsound_case_is_left_out_with_the_reason(stock: Project) -> None:
    wrong = FILES[CODE].replace('("shop", "cellar"), "says', '("shop",), "says')
    stock.write(CODE, wrong)
    ran = stock.run("--models", "good")
    assert ran.exit == 1, ran.out
    assert "damaged variant one-too-many should lose shop and loses cellar, shop" in ran.out
    assert stock.verdicts("good") == {}


@pytest.mark.slow
def test_a_users_own_test_names_a_case_of_it(stock: Project) -> None:
    stock.write(
        "test_mine.py",
        "import pytest\n\n"
        "@pytest.mark.modelbench(pack='stock', cases=['one-move'])\n"
        "def test_ends(attempt):\n    assert attempt.transcript\n",
    )
    ran = stock.run("--models", "good", "test_mine.py")
    assert ran.exit == 0, ran.out
    assert [cell.case for cell in stock.verdicts("good")] == ["one-move"]
