"""BFCL's conversations: apps that calls change, and when a conversation went as its gold did."""

from __future__ import annotations

import ast
import inspect
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_modelbench.benchmarks.bfcl.apps.app import App, run
from pytest_modelbench.benchmarks.bfcl.apps.calculator import Calculator
from pytest_modelbench.benchmarks.bfcl.apps.files import Files
from pytest_modelbench.benchmarks.bfcl.apps.messages import Messages
from pytest_modelbench.benchmarks.bfcl.apps.posts import Posts
from pytest_modelbench.benchmarks.bfcl.apps.tickets import Tickets
from pytest_modelbench.benchmarks.bfcl.apps.trading import Trading
from pytest_modelbench.benchmarks.bfcl.apps.travel import Travel
from pytest_modelbench.benchmarks.bfcl.apps.vehicle import Vehicle
from pytest_modelbench.benchmarks.bfcl.rules import Ruling

CONVERSATION_RULES = "bfcl-eval 2026.3.23, conversations 1"

APPS: Mapping[str, type[App]] = {
    "GorillaFileSystem": Files,
    "MathAPI": Calculator,
    "MessageAPI": Messages,
    "TwitterAPI": Posts,
    "TicketAPI": Tickets,
    "TradingBot": Trading,
    "TravelAPI": Travel,
    "VehicleControlAPI": Vehicle,
}
"""The names of upstream's classes → what stands for them here."""

DOCUMENTS: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""The names of upstream's classes → the file that describes their functions."""

EMPTY_TURN = "multi_turn:empty_turn_model_response"
STATE = "multi_turn:instance_state_mismatch"
RESPONSE = "multi_turn:execution_response_mismatch"
CUT_OFF = "multi_turn:force_terminated"

Scenarios = Mapping[str, Mapping[str, Any]]  # Any: JSON, as an app takes it
Call = str | Mapping[str, Mapping[str, Any]]  # Any: JSON, the arguments of one function
"""A call as Python text, or as {name: arguments}."""


class Apps:
    """The apps of one conversation, in one run of it."""

    def __init__(self, classes: Sequence[str], scenarios: Scenarios) -> None:
        """Begin as the scenarios say; KeyError for a class that there is not."""
        self.apps = {name: APPS[name](scenarios.get(name, {})) for name in classes}
        self.functions: dict[str, Callable[..., object]] = {}
        for app in self.apps.values():
            self.functions.update(app.functions())

    def call(self, call: Call) -> str:
        """Do one call; return its result, or what is wrong with it, as text."""
        try:
            if isinstance(call, str):
                name, arguments = parse_call(call, self.functions)
            else:
                ((name, given),) = call.items()
                arguments = dict(given)
            function = self.functions.get(name)
            if function is None:
                raise NameError(f"name {name!r} is not defined")
        except (NameError, ValueError, SyntaxError) as error:
            return f"Error during execution: {error}"
        return run(function, arguments)

    def same(self, other: Apps) -> bool:
        """Tell whether another run has come to the same state in every app."""
        return all(app.same(other.apps[name]) for name, app in self.apps.items())


@dataclass(frozen=True)
class Conversation:
    """What a conversation is judged by: its apps, where they begin, and the gold's calls a turn."""

    classes: Sequence[str]
    scenarios: Scenarios
    gold: Sequence[Sequence[str]]


def judge_conversation(
    conversation: Conversation, turns: Sequence[Sequence[Sequence[Call]]]
) -> Ruling:
    """Judge the calls of a conversation: turns of steps of calls.

    After each turn whose gold has calls every app has to be where the gold's is, and every result
    that the gold got in this turn must have been got by now. A turn whose gold has none is not
    looked at. The first that is wrong is named.
    """
    if len(turns) != len(conversation.gold):
        return Ruling(False, CUT_OFF)
    mine, golds = (Apps(conversation.classes, conversation.scenarios) for _ in range(2))
    got: Counter[str] = Counter()
    for steps, gold in zip(turns, conversation.gold, strict=True):
        got.update(mine.call(call) for step in steps for call in step)
        wanted = Counter(golds.call(call) for call in gold)
        if not gold:
            continue
        if not steps or (len(steps) == 1 and not steps[0]):
            return Ruling(False, EMPTY_TURN)
        if not mine.same(golds):
            return Ruling(False, STATE)
        if wanted - got:
            return Ruling(False, RESPONSE)
    return Ruling(True)


def parse_call(
    text: str, functions: Mapping[str, Callable[..., object]] | None = None
) -> tuple[str, dict[str, Any]]:  # Any: JSON, as an app takes it
    """Return name and arguments of a call in Python; ValueError for anything else.

    ``functions`` are needed where arguments are told by their places.
    """
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"{text!r} is no call")
    name = node.func.id
    named = {word.arg or "": _value(word.value) for word in node.keywords}
    function = (functions or {}).get(name)
    if not node.args or function is None:
        return name, named
    places = list(inspect.signature(function).parameters)
    return name, {**dict(zip(places, map(_value, node.args), strict=False)), **named}


_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {  # Any: numbers
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value(node: ast.expr) -> object:
    """Return a literal, or what two of them come to."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    return ast.literal_eval(node)
