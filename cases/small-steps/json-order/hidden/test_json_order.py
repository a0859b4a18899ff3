import json


def order(solution):
    return json.loads(solution.text("order.json"))


def test_items_in_order(solution):
    assert [line["item"] for line in order(solution)] == ["apples", "rye bread", "eggs"]


def test_counts_are_numbers(solution):
    assert [line["count"] for line in order(solution)] == [3, 1, 12]
