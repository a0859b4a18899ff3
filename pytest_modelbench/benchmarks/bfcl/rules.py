"""When a function call is right, by the single-turn rules of BFCL v4 (bfcl-eval 2026.3.23).

Bug for bug: a verdict is upstream's, also where upstream's is odd. What is odd is said where it is
done. Rulings bear the names that upstream gives its errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_modelbench.benchmarks.bfcl import java, javascript
from pytest_modelbench.errors import UsageProblem

RULES_VERSION = "bfcl-eval 2026.3.23"


class Language(StrEnum):
    """What the arguments of a category are written in."""

    PYTHON = "python"
    JAVA = "java"
    JAVASCRIPT = "javascript"

    @staticmethod
    def of(category: str) -> Language:
        """Return the language of a category."""
        if "javascript" in category:
            return Language.JAVASCRIPT
        return Language.JAVA if "java" in category else Language.PYTHON


@dataclass(frozen=True)
class Ruling:
    """Right or not; ``error`` is upstream's name of the first thing that is wrong."""

    valid: bool
    error: str = ""


RIGHT = Ruling(True)


class RecordProblem(UsageProblem):
    """A record cannot be judged: its schema or its gold is not of the form that the rules know."""


def judge(
    category: str,
    functions: Sequence[Mapping[str, object]],
    answer: object,
    gold: Sequence[Mapping[str, object]],
) -> Ruling:
    """Judge an answer of a category.

    ``answer`` is a list of ``{name: arguments}``; anything else stands for a reply without calls.
    ``functions`` are those described to the model, ``gold`` is a list of ``{name: {parameter:
    [acceptable values]}}``, empty where the category asks for calls or for none and not for which.
    """
    calls = _calls(answer)
    if "irrelevance" in category:
        return Ruling(False, "irrelevance_error:decoder_success") if calls else RIGHT
    if "relevance" in category:
        return RIGHT if calls else Ruling(False, "relevance_error:decoder_failed")
    if calls is None:
        return Ruling(False, "ast_decoder:decoder_wrong_output_format")
    language = Language.of(category)
    if "parallel" in category:
        return _parallel(functions, calls, gold, language)
    kind = "multiple" if "multiple" in category else "simple"
    wanted = len(gold) if kind == "multiple" else 1
    if len(calls) != wanted:
        return Ruling(False, f"{kind}_function_checker:wrong_count")
    described = _described(functions, gold[0]) if kind == "multiple" else functions[0]
    return judge_call(described, calls[0], gold[0], language)


def judge_call(
    function: Mapping[str, object],
    call: Mapping[str, Mapping[str, object]],
    gold: Mapping[str, object],
    language: Language,
) -> Ruling:
    """Judge one call of a described function against the acceptable values of its parameters."""
    name = str(function["name"])
    parameters = _mapping(function["parameters"], name)
    schema = _mapping(parameters.get("properties", {}), name)
    options = {
        key: _options(value, name) for key, value in _mapping(_only(gold.values()), name).items()
    }
    if name not in call:
        return Ruling(False, "simple_function_checker:wrong_func_name")
    given = call[name]
    for required in _sequence(parameters.get("required", ())):
        if required not in given:
            return Ruling(False, "simple_function_checker:missing_required")
    for key, value in given.items():
        if key not in schema or key not in options:
            return Ruling(False, "simple_function_checker:unexpected_param")
        ruling = judge_value(_mapping(schema[key], name), value, options[key], language)
        if not ruling.valid:
            return ruling
    for key, acceptable in options.items():
        if key not in given and "" not in acceptable:
            return Ruling(False, "simple_function_checker:missing_optional")
    return RIGHT


def standardized(text: str) -> str:
    """Return a text without spaces and ``,./-_*^``, in lower case, its quotes double."""
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


# -- calls -------------------------------------------------------------------------------------


def _calls(answer: object) -> list[Mapping[str, Mapping[str, object]]] | None:
    """Return an answer's calls; None where it is not a list of one-key objects of objects."""
    if not isinstance(answer, list):
        return None
    for call in answer:
        if not isinstance(call, dict) or len(call) != 1:
            return None
        if not isinstance(_only(call.values()), dict):
            return None
    return answer


def _parallel(
    functions: Sequence[Mapping[str, object]],
    calls: Sequence[Mapping[str, Mapping[str, object]]],
    gold: Sequence[Mapping[str, object]],
    language: Language,
) -> Ruling:
    """Give each gold call, in order, the first unused call that is right for it; never go back."""
    if len(calls) != len(gold):
        return Ruling(False, "parallel_function_checker_no_order:wrong_count")
    left = list(calls)
    for wanted in gold:
        described = _described(functions, wanted)
        for index, call in enumerate(left):
            if judge_call(described, call, wanted, language).valid:
                del left[index]
                break
        else:
            return Ruling(False, "parallel_function_checker_no_order:cannot_find_match")
    return RIGHT


def _described(
    functions: Sequence[Mapping[str, object]], gold: Mapping[str, object]
) -> Mapping[str, object]:
    name = next(iter(gold))
    for function in functions:
        if function["name"] == name:
            return function
    raise RecordProblem(f"the gold calls {name!r}, which is not among the described functions")


# -- one value -----------------------------------------------------------------------------------

PYTHON_TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
PYTHON_LISTS = ("array", "tuple")


def judge_value(
    schema: Mapping[str, object], value: object, options: Sequence[object], language: Language
) -> Ruling:
    """Judge one argument: its type first, then whether it is among the options."""
    declared = str(schema["type"])
    inner: type | None = None
    if language is Language.PYTHON:
        wanted = _type(PYTHON_TYPES, declared)
        if declared in PYTHON_LISTS:
            inner = _type(PYTHON_TYPES, _item_type(schema))
        if declared == "tuple" and isinstance(value, tuple):
            value = list(value)
        if declared == "float" and type(value) is int:
            value = float(value)
    else:
        source = java if language is Language.JAVA else javascript
        wanted = _type(source.TYPES, declared)
        if not isinstance(value, str):
            return Ruling(False, source.TYPE_ERROR)
        item_type = _item_type(schema) if declared in source.LISTS else None
        if item_type is not None:
            inner = _type(source.TYPES, item_type)
        try:
            value = source.read(value, declared, item_type)
        except NotImplementedError as error:
            raise RecordProblem(str(error)) from None
    ruling, as_variable = _judge_type(value, options, wanted, inner)
    if not ruling.valid:
        return ruling
    if as_variable:
        return _among(value, options)
    if wanted is dict and isinstance(value, dict):
        return _judge_dict(value, options)
    if wanted is list and isinstance(value, list):
        return _judge_dicts(value, options) if inner is dict else _judge_list(value, options)
    if wanted is str and isinstance(value, str):
        acceptable = [standardized(one) for one in options if isinstance(one, str)]
        return RIGHT if standardized(value) in acceptable else Ruling(False, "value_error:string")
    return _among(value, options)


def _judge_type(
    value: object, options: Sequence[object], wanted: type, inner: type | None
) -> tuple[Ruling, bool]:
    """Judge a type, exactly; tell also whether the value is compared raw, as a variable's name.

    The type of the first option that is not "" is accepted beside the declared one. Items of a list
    are looked at one level deep; an option that is no list, such as "", lets all items pass.
    """
    of_gold = next((type(one) for one in options if one != ""), None)
    if type(value) is wanted:
        as_variable = of_gold is not None and of_gold is not wanted
        if inner is None or not isinstance(value, list):
            return RIGHT, as_variable
        for option in options:
            if not isinstance(option, list):
                return RIGHT, as_variable
            if all(_judge_type(item, option, inner, None)[0].valid for item in value):
                return RIGHT, as_variable
        wrong = "nested" if type(value) is of_gold else "simple"
        return Ruling(False, f"type_error:{wrong}"), False
    if of_gold is not None and type(value) is of_gold:
        return RIGHT, True
    return Ruling(False, "type_error:simple"), False


def _among(value: object, options: Sequence[object]) -> Ruling:
    return RIGHT if value in options else Ruling(False, "value_error:others")


def _judge_list(value: Sequence[object], options: Sequence[object]) -> Ruling:
    """Judge a list in its order. An option that is a text counts as the list of its letters."""
    found = [_standardized_text(item) for item in value]
    for option in options:
        if isinstance(option, list | str) and found == [_standardized_text(one) for one in option]:
            return RIGHT
    return Ruling(False, "value_error:list/tuple")


def _judge_dict(value: Mapping[str, object], options: Sequence[object]) -> Ruling:
    """Judge an object against those that are acceptable; the last one's error is the one told."""
    error = "dict_checker:unclear"
    for option in options:
        if option == "":
            continue
        if not isinstance(option, dict):
            raise RecordProblem(f"an acceptable object is {option!r}")
        error = _wrong_in_dict(value, option)
        if not error:
            return RIGHT
    return Ruling(False, error)


def _wrong_in_dict(value: Mapping[str, object], option: Mapping[str, object]) -> str:
    error = ""
    for key, item in value.items():
        if key not in option:
            error = "value_error:dict_key"
            break
        acceptable = [_standardized_text(one) for one in _options(option[key], key)]
        if _standardized_text(item) not in acceptable:
            error = "value_error:dict_value"
            break
    for key, acceptable_values in option.items():
        if key not in value and "" not in _options(acceptable_values, key):
            return "value_error:dict_key"
    return error


def _judge_dicts(value: Sequence[object], options: Sequence[object]) -> Ruling:
    """Judge a list of objects: as many, in the same order."""
    error = "list_dict_checker:unclear"
    for option in options:
        if not isinstance(option, list | str) or len(option) != len(value):
            error = "value_error:list_dict_count"
            continue
        for item, wanted in zip(value, option, strict=True):
            if not isinstance(item, dict):
                return Ruling(False, "type_error:nested")
            ruling = _judge_dict(item, [wanted])
            if not ruling.valid:
                error = ruling.error
                break
        else:
            return RIGHT
    return Ruling(False, error)


def _standardized_text(value: object) -> object:
    return standardized(value) if isinstance(value, str) else value


# -- the form of a record -------------------------------------------------------------------------


def _type(known: Mapping[str, type], name: str) -> type:
    if name not in known:
        raise RecordProblem(f"the schema has the type {name!r}; known: {', '.join(known)}")
    return known[name]


def _item_type(schema: Mapping[str, object]) -> str:
    items = schema.get("items")
    if not isinstance(items, dict) or "type" not in items:
        raise RecordProblem("the schema has a list without the type of its items")
    return str(items["type"])


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise RecordProblem(f"{where}: {value!r} is not an object")
    return value


def _options(value: object, where: str) -> Sequence[object]:
    """Return acceptable values. A text in place of the list counts as its letters, and as ""."""
    if isinstance(value, str):
        return ["", *value]
    if not isinstance(value, list):
        raise RecordProblem(f"{where}: the acceptable values {value!r} are not a list")
    return value


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _only(values: Iterable[object]) -> object:
    return next(iter(values))
