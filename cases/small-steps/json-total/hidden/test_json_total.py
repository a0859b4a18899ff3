import json


def test_lines(solution):
    assert json.loads(solution.text("total.json"))["lines"] == 5


def test_total(solution):
    assert json.loads(solution.text("total.json"))["total"] == 134
