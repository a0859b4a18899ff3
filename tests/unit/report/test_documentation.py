"""Hold docs/gates.md and docs/reading-the-report.md to the code: what they show is understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pytest_modelbench.cli import main
from pytest_modelbench.report.rules import Kind, parse_rule, read_rules
from pytest_modelbench.stats import Stage, format_interval, look_alpha, mcnemar_exact, wilson
from pytest_modelbench.store.looks import EVAL_READINGS

DOCS = Path(__file__).parents[3] / "docs"
GATES = (DOCS / "gates.md").read_text(encoding="utf-8")
READING = (DOCS / "reading-the-report.md").read_text(encoding="utf-8")


def test_the_table_of_pyproject_is_read(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", GATES, re.DOTALL)
    path = tmp_path / "pyproject.toml"
    path.write_text(block, encoding="utf-8")
    assert [(rule.name, rule.kind) for rule in read_rules(path)] == [
        ("quality", Kind.NOT_WORSE_BY),
        ("level (local-coder)", Kind.FLOOR),
        ("level (hosted)", Kind.FLOOR),
    ]


def test_every_short_text_is_a_rule() -> None:
    rows = re.findall(r"(?m)^\| `([a-z-]+)` \| `([^`]+)` \|", GATES)
    assert {kind for kind, _ in rows} == set(Kind)
    for kind, text in rows:
        assert parse_rule(text).kind == kind
    for text in re.findall(r"--modelbench-gate (\S+:\S+)", GATES):
        parse_rule(text)


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"\$ modelbench (power .*)", GATES + READING)))
)
def test_commands_of_planning_run(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)) == 0
    out = capsys.readouterr().out
    if "--margin 5" in command:  # the sentence that the page quotes
        assert "equally good candidate in 19 of 100 runs" in " ".join(out.split())
        assert "in about 19 of 100 runs at 50 cases" in GATES


def test_figures_that_the_page_quotes() -> None:
    assert format_interval(wilson(20, 20)) == "[84-100]"
    assert format_interval(wilson(12, 16), 1) == "[50.5-89.8]"
    assert f"{mcnemar_exact(12, 2):.3f}" == "0.013"
    assert mcnemar_exact(6, 5) == 1
    assert mcnemar_exact(5, 0) > 0.05 > mcnemar_exact(6, 0)
    assert look_alpha(Stage.INTERIM) == 0.001
    assert f"After {EVAL_READINGS} the report asks" in READING
