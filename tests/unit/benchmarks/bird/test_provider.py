"""BIRD as a benchmark: what is asked, what is submitted, and the verdict on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.benchmark import Met
from pytest_modelbench.benchmarks.bird.provider import Bird, sql_in
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.source import BenchmarkCase
from pytest_modelbench.protocols.benchmark import play
from pytest_modelbench.records import Candidate, Verdict

DATA = Path(__file__).parents[3] / "data" / "bird"


@pytest.fixture(scope="module")
def bird() -> Bird:
    """The benchmark on the database that is there."""
    return Bird(DATA, {})


@pytest.fixture(scope="module")
def cases(bird: Bird) -> dict[str, BenchmarkCase]:
    """Its cases by id."""
    return {case.id: case for case in bird.cases()}


def judged(bird: Bird, case: BenchmarkCase, candidate: str) -> Verdict:
    world = bird.setup(case.public, DATA)
    agent = Candidate(name=candidate, agent=candidate.partition("+")[0])
    met = play(bird, case, agent, bird.tools(world))
    return bird.verify(case.private, bird.observe(case, bird.harvest(world, met)))


def test_every_case_is_sound(bird: Bird, cases: dict[str, BenchmarkCase]) -> None:
    assert len(cases) == 60
    for case in cases.values():
        assert judged(bird, case, "reference").passed, case.id
        nothing = judged(bird, case, "seed")
        assert (nothing.passed, nothing.reason) == (False, "no-answer")
        for variant, loses in case.damaged.items():
            spoilt = judged(bird, case, f"reference+{variant}")
            assert {c.name for c in spoilt.checks if not c.passed} == set(loses)


@pytest.mark.parametrize(
    ("sql", "reason", "reward"),
    [
        ("DELETE FROM superhero", "forbidden", 0.0),
        ("SELECT nope FROM superhero", "query-error", 0.0),
        ("SELECT 1", "wrong", 0.0),
    ],
)
def test_what_is_wrong_is_told_apart(
    bird: Bird, cases: dict[str, BenchmarkCase], sql: str, reason: str, reward: float
) -> None:
    case = cases["720"]
    found = bird.verify(case.private, bird.observe(case, {"sql": sql}))
    assert (found.passed, found.reason, found.reward) == (False, reason, reward)


def test_a_reward_may_be_soft(cases: dict[str, BenchmarkCase]) -> None:
    soft = Bird(DATA, {"compare": "soft_f1"})
    case = cases["720"]
    partly = f"SELECT * FROM ({case.private.data['sql']}) LIMIT 1"
    found = soft.verify(case.private, soft.observe(case, {"sql": partly}))
    assert not found.passed
    assert 0 < found.reward < 1
    assert soft.rules_version != Bird(DATA, {}).rules_version


def test_r_ves_is_told_and_decides_nothing(bird: Bird, cases: dict[str, BenchmarkCase]) -> None:
    timing = Bird(DATA, {"r_ves": 5})
    case = cases["720"]
    gold = str(case.private.data["sql"])
    right = timing.verify(case.private, timing.observe(case, {"sql": gold}))
    assert right.passed
    assert 50 <= right.measures["r-ves"] <= 112  # 100 x the root of 0.25 to 1.25
    slow = "SELECT count(*) FROM superhero a, superhero b, superhero c WHERE a.id > 747"
    late = f"SELECT * FROM ({gold}) WHERE ({slow}) > 0"
    passed = timing.verify(case.private, timing.observe(case, {"sql": late}))
    assert (passed.passed, passed.reward) == (True, 1.0)
    assert passed.measures["r-ves"] == 50.0
    wrong = timing.verify(case.private, timing.observe(case, {"sql": "SELECT 1"}))
    assert (wrong.passed, wrong.measures) == (False, {"r-ves": 0.0})
    assert bird.verify(case.private, bird.observe(case, {"sql": gold})).measures == {}
    assert timing.rules_version != bird.rules_version


def test_the_hint_is_an_option_of_the_candidate(
    bird: Bird, cases: dict[str, BenchmarkCase]
) -> None:
    case = cases["720"]
    hint = str(case.public["evidence"])
    assert hint in str(bird.messages(case, {}))
    assert hint not in str(bird.messages(case, {"evidence": False}))
    assert str(case.private.data["sql"]) not in str(bird.messages(case, {}))
    with pytest.raises(ValueError, match="it has evidence"):
        bird.check_options({"hints": True})


def test_a_missing_database_is_said(tmp_path: Path) -> None:
    questions = (DATA / "questions_without_db.json").read_text()
    (tmp_path / "questions.json").write_text(questions)
    with pytest.raises(PackProblem, match=r"there is no \w+\.sqlite"):
        list(Bird(tmp_path, {}).cases())


def test_sql_of_a_text() -> None:
    assert sql_in("So:\n```sql\nSELECT 1\n```\nor\n```\nSELECT 2\n```") == "SELECT 2"
    assert sql_in("  with a as (select 1) select * from a") is not None
    assert sql_in("I do not know.") is None


def test_the_world_shows_rows_and_takes_the_last_word(
    bird: Bird, cases: dict[str, BenchmarkCase]
) -> None:
    world = bird.setup(cases["720"].public, DATA)
    run, submit = bird.tools(world)
    shown = run.run({"sql": "SELECT id, gender FROM gender"})
    assert shown.splitlines()[:2] == ["id | gender", "1 | Male"]
    assert "forbidden" in run.run({"sql": "DROP TABLE gender"})
    assert "more different rows" in run.run({"sql": "SELECT id FROM superhero"})
    submit.run({"sql": "SELECT 1"})
    assert bird.harvest(world, Met(True, "SELECT 2")) == {"sql": "SELECT 1"}
