"""The oddities of BFCL's rules that recorded verdicts may not show."""

from __future__ import annotations

import pytest

from pytest_modelbench.benchmarks.bfcl import java, javascript
from pytest_modelbench.benchmarks.bfcl.rules import Language, RecordProblem, judge, judge_call


def function(**parameters: object) -> dict[str, object]:
    return {
        "name": "f",
        "description": "",
        "parameters": {"type": "dict", "properties": parameters, "required": []},
    }


@pytest.mark.parametrize(
    ("schema", "value", "options", "error"),
    [
        ({"type": "integer"}, True, [1], "type_error:simple"),
        ({"type": "integer"}, 5.0, [5], "type_error:simple"),
        ({"type": "float"}, 5, [5.0], ""),
        ({"type": "integer"}, "n", ["n"], ""),  # the gold's own type is accepted, and compared raw
        ({"type": "integer"}, "N", ["n"], "value_error:others"),
        ({"type": "string"}, "New-York, N.Y.", ["new york ny"], ""),
        ({"type": "string"}, "New York!", ["new york"], "value_error:string"),
        ({"type": "array", "items": {"type": "string"}}, ["B", "a"], [["b", "A"]], ""),
        ({"type": "array", "items": {"type": "string"}}, ["a", "b"], [["b", "a"]],
         "value_error:list/tuple"),
        ({"type": "array", "items": {"type": "string"}}, [1], [["1"]], "type_error:nested"),
        ({"type": "array", "items": {"type": "string"}}, [], [["1"], ""], ""),
        ({"type": "dict"}, {"k": "V"}, [{"k": ["v"], "o": ["", 1]}], ""),
        ({"type": "dict"}, {}, [{"k": ["v"]}], "value_error:dict_key"),
        ({"type": "dict"}, {"k": "w"}, [{"k": ["v"]}], "value_error:dict_value"),
        ({"type": "array", "items": {"type": "dict"}}, [{"k": 1}], [[{"k": [1]}]], ""),
        ({"type": "array", "items": {"type": "dict"}}, [], [[{"k": [1]}]],
         "value_error:list_dict_count"),
    ],
)  # fmt: skip
def test_values(schema: object, value: object, options: list[object], error: str) -> None:
    ruling = judge_call(function(p=schema), {"f": {"p": value}}, {"f": {"p": options}}, _PYTHON)
    assert (ruling.valid, ruling.error) == (not error, error)


_PYTHON = Language.PYTHON


def test_parallel_calls_are_taken_greedily_and_never_given_back() -> None:
    functions = [function(p={"type": "integer"})]
    gold = [{"f": {"p": [1, 2]}}, {"f": {"p": [1]}}]
    assert judge("parallel", functions, [{"f": {"p": 2}}, {"f": {"p": 1}}], gold).valid
    # The first gold call takes 1, which the second needed.
    taken = judge("parallel", functions, [{"f": {"p": 1}}, {"f": {"p": 2}}], gold)
    assert taken.error == "parallel_function_checker_no_order:cannot_find_match"


def test_what_is_no_list_of_calls() -> None:
    functions = [function(p={"type": "integer"})]
    answers: tuple[object, ...] = ("text", None, [{}], [{"f": 1}], [{"f": {}, "g": {}}])
    for answer in answers:
        assert judge("irrelevance", functions, answer, []).valid
        assert not judge("live_relevance", functions, answer, []).valid
        wrong = judge("simple_python", functions, answer, [{"f": {"p": [1]}}])
        assert wrong.error == "ast_decoder:decoder_wrong_output_format"


def test_a_record_that_cannot_be_judged_is_no_wrong_answer() -> None:
    with pytest.raises(RecordProblem, match="complex"):
        judge_call(function(p={"type": "complex"}), {"f": {"p": 1}}, {"f": {"p": [1]}}, _PYTHON)
    with pytest.raises(RecordProblem, match="not among"):
        judge("multiple", [function()], [{"g": {}}], [{"g": {}}])
    stack = function(p={"type": "Stack"})
    with pytest.raises(RecordProblem, match="Stack"):
        judge_call(stack, {"f": {"p": "x"}}, {"f": {"p": ["x"]}}, Language.JAVA)


@pytest.mark.parametrize(
    ("text", "declared", "items", "value"),
    [
        ("12", "long", None, "12"),
        ("12L", "long", None, 12),
        ("1.5", "float", None, "1.5"),
        ("1.5f", "float", None, 1.5),
        ("'c'", "char", None, "'c'"),
        ('new String[]{"a", "b"}', "Array", "String", ['"a"', '"b"']),
        ('new ArrayList<>(Arrays.asList("a", "b"))', "ArrayList", "String", ["a", "b"]),
        ("new ArrayList<Long>() {{ add(1L); add(2L); }}", "ArrayList", "long", [1, 2]),
        ('new HashMap<String, Object>() {{ put("k", 1); }}', "HashMap", None, {"k": 1}),
        ("[1, 2]", "Array", "integer", "[1, 2]"),
    ],
)
def test_java(text: str, declared: str, items: str | None, value: object) -> None:
    assert java.read(text, declared, items) == value


@pytest.mark.parametrize(
    ("text", "declared", "items", "value"),
    [
        ("12n", "Bigint", None, 12),
        ("true", "Boolean", None, True),
        ("'a'", "String", None, "a"),
        ("['a', 'b']", "array", "String", ["a", "b"]),
        ("new Array(1, 2)", "array", "integer", [1, 2]),
        ("[[1, 2], [3]]", "array", None, [[1, 2], [3]]),
        ("{a: 1, 'b': [true]}", "dict", None, {"a": 1, "b": [True]}),
        ("anything()", "array", "any", "anything()"),
    ],
)
def test_javascript(text: str, declared: str, items: str | None, value: object) -> None:
    assert javascript.read(text, declared, items) == value
