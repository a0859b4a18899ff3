import json


def person(solution):
    return json.loads(solution.text("person.json"))


def test_name_and_city(solution):
    assert person(solution)["name"] == "Tomas Okafor"
    assert person(solution)["city"] == "Leeds"


def test_age_is_a_number(solution):
    assert person(solution)["age"] == 41


def test_no_other_keys(solution):
    assert sorted(person(solution)) == ["age", "city", "name"]
