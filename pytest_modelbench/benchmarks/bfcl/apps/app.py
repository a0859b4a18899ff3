"""What all apps are: JSON that functions change, and draws that a scenario's seed decides."""

from __future__ import annotations

import copy
import inspect
import json
import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

State = dict[str, Any]  # Any: JSON of a scenario, and what functions make of it


class Refusal(Exception):
    """A function cannot do what it is asked; the result says so, beside what else it says."""

    def __init__(self, text: str, **others: object) -> None:
        super().__init__(text)
        self.result = {**others, "error": text}


class App:
    """One app of a conversation.

    ``state`` is what two runs are compared by, ``hidden`` what they are not. Every method whose
    name begins with a letter is a function of the app.
    """

    defaults: ClassVar[Mapping[str, Any]] = {}  # Any: JSON, as in `State`
    seed: ClassVar[int] = 0

    def __init__(self, scenario: Mapping[str, Any]) -> None:  # Any: JSON, as in `State`
        """Begin as a scenario says; what it does not say is as by default."""
        given = copy.deepcopy({**self.defaults, **scenario})
        self.random = random.Random(given.pop("random_seed", self.seed))
        self.state: State = {name: given[name] for name in self.defaults}
        self.hidden: State = {}

    def functions(self) -> Mapping[str, Callable[..., object]]:
        """Return the functions by name."""
        own = inspect.getmembers(self, predicate=inspect.ismethod)
        return {name: f for name, f in own if name[0] != "_" and name not in ("functions", "same")}

    def same(self, other: App) -> bool:
        """Tell whether another run of the app has come to the same state."""
        return self.state == other.state

    def _drawn(self, low: int, high: int) -> str:
        return str(self.random.randint(low, high))


def run(function: Callable[..., object], arguments: Mapping[str, object]) -> str:
    """Return what a call of a function gives, as text; never raise for what the call is."""
    try:
        result = function(**arguments)
    except Refusal as refusal:
        result = refusal.result
    except Exception as error:  # of any wrong argument
        return f"Error during execution: {error}"
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(result)
    return str(result)
