"""Rules of gates: what is understood, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.report.rules import Kind, Rule, parse_rule, read_rules


@pytest.mark.parametrize(
    ("text", "kind", "candidate", "limit", "baseline"),
    [
        ("floor:local-coder:0.6", Kind.FLOOR, "local-coder", 0.6, ""),
        ("floor:ollama/qwen:7b:0.6", Kind.FLOOR, "ollama/qwen:7b", 0.6, ""),
        ("not-worse-by:5:a:baseline=hosted", Kind.NOT_WORSE_BY, "a", 0.05, "hosted"),
        ("not-worse-by:a:5:baseline=hosted", Kind.NOT_WORSE_BY, "a", 0.05, "hosted"),
        ("not-worse-by:2.5:m:7:baseline=x:8", Kind.NOT_WORSE_BY, "m:7", 0.025, "x:8"),
        ("regression:a:baseline=b", Kind.REGRESSION, "a", None, "b"),
        ("superiority:ollama/x:7b:baseline=b", Kind.SUPERIORITY, "ollama/x:7b", None, "b"),
        ("cost-per-pass:a:0.05", Kind.COST_PER_PASS, "a", 0.05, ""),
        ("median-time:a:30", Kind.MEDIAN_TIME, "a", 30.0, ""),
    ],
)
def test_short_texts(
    text: str, kind: Kind, candidate: str, limit: float | None, baseline: str
) -> None:
    rule = parse_rule(text)
    assert (rule.kind, rule.candidate, rule.limit, rule.baseline) == (
        kind,
        candidate,
        limit,
        baseline,
    )
    assert rule.required
    assert parse_rule(rule.text).text == rule.text


def test_options_of_a_short_text() -> None:
    rule = parse_rule(
        "not-worse-by:5:a:baseline=old/main.json#b:pack=executor:alpha=0.025:on=reward"
    )
    assert rule.stored_baseline == ("old/main.json", "b")
    assert (rule.pack, rule.alpha, rule.on) == ("executor", 0.025, "reward")
    assert parse_rule("regression:a", baseline="hosted").baseline == "hosted"
    assert parse_rule("floor:a:0.5", baseline="hosted").baseline == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ceiling:a:1", "no kind 'ceiling': floor, not-worse-by"),
        ("floor:a", "floor needs a candidate and a number"),
        ("floor:a:60", "limit = 60.0 is not a share between 0 and 1"),
        ("not-worse-by:5:a", "it needs a baseline"),
        ("not-worse-by:-5:a:baseline=b", "is not a number of points"),
        ("superiority:a:baseline=a", "a is compared with itself"),
        ("floor:a:0.6:baseline=b", "floor has no 'baseline'"),
        ("median-time:a:nan", "needs a candidate and a number"),
        ("cost-per-pass:a:0", "not a positive number of dollars a pass"),
        ("floor:a:0.6:alpha=0.7", "decides nothing"),
        ("floor:a:0.6:alpha=x", "alpha 'x' is no number"),
        ("not-worse-by:5:a:baseline=b:interval=wald", "none of newcombe, tango"),
    ],
)
def test_what_is_no_rule_is_refused_with_examples(text: str, said: str) -> None:
    with pytest.raises(UsageProblem) as problem:
        parse_rule(text)
    assert said in str(problem.value)
    assert f"--modelbench-gate {text}: " in str(problem.value)
    assert "such as floor:NAME:0.6" in str(problem.value)


def pyproject(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_tables_of_pyproject(tmp_path: Path) -> None:
    rules = read_rules(
        pyproject(
            tmp_path,
            '[project]\nname = "x"\n\n[tool.modelbench.gates.quality]\nkind = "not-worse-by"\n'
            'candidates = ["a", "b"]\nbaseline = "hosted"\nmargin = 5\npack = "executor"\n\n'
            '[tool.modelbench.gates.speed]\nkind = "median-time"\ncandidate = "a"\nlimit = 30\n',
        )
    )
    assert [(rule.name, rule.candidate, rule.limit, rule.source) for rule in rules] == [
        ("quality (a)", "a", 0.05, "pyproject.toml:4"),
        ("quality (b)", "b", 0.05, "pyproject.toml:4"),
        ("speed", "a", 30.0, "pyproject.toml:11"),
    ]
    assert not any(rule.required for rule in rules)
    assert rules[0].text == parse_rule("not-worse-by:5:a:baseline=hosted:pack=executor").text


def test_no_file_and_no_table_are_no_rules(tmp_path: Path) -> None:
    assert read_rules(tmp_path / "pyproject.toml") == ()
    assert read_rules(pyproject(tmp_path, "[tool.ruff]\nline-length = 100\n")) == ()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('kind = "floor"\nlimit = 0.5\n', 'it needs candidate = "NAME"'),
        (
            'kind = "floor"\ncandidate = "a"\nfloor = 0.5\n',
            "floor has no 'floor'; it has alpha, limit",
        ),
        ('kind = "floor"\ncandidate = "a"\n', "limit = None is not a share"),
        ('kind = "floor"\ncandidate = "a"\nlimit = true\n', "limit = True is not a share"),
        ('kind = "floor"\ncandidate = ["a"]\nlimit = 0.5\n', "is no name of a candidate"),
        ('candidate = "a"\n', "there is no kind ''"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, table: str, said: str) -> None:
    path = pyproject(tmp_path, f"\n\n[tool.modelbench.gates.mine]\n{table}")
    with pytest.raises(UsageProblem) as problem:
        read_rules(path)
    assert str(problem.value).startswith("pyproject.toml:3: gate mine: ")
    assert said in str(problem.value)


def test_gates_that_are_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="a table a gate"):
        read_rules(pyproject(tmp_path, "[tool.modelbench]\ngates = 3\n"))


def test_the_text_of_a_rule_has_what_changes_its_verdict() -> None:
    rule = Rule("n", Kind.NOT_WORSE_BY, "a", 0.05, "b", alpha=0.1, interval="tango", source="here")
    assert rule.text == "not-worse-by:a:5:baseline=b:alpha=0.1:interval=tango"
