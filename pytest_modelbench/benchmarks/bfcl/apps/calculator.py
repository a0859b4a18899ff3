"""Arithmetic, without any state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation, localcontext

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal

METRES = {"km": 1000, "m": 1, "cm": 0.01, "mm": 0.001, "um": 1e-06, "nm": 1e-09}
FACTORS = {
    ("cm", "in"): 0.393701,
    ("in", "cm"): 2.54,
    ("m", "ft"): 3.28084,
    ("ft", "m"): 0.3048,
    ("m", "yd"): 1.09361,
    ("yd", "m"): 0.9144,
    ("km", "miles"): 0.621371,
    ("miles", "km"): 1.60934,
    ("kg", "lb"): 2.20462,
    ("lb", "kg"): 0.453592,
}


class Calculator(App):
    """Every function gives one result."""

    def logarithm(self, value: float, base: float, precision: int) -> object:
        """Return a logarithm, to so many digits."""

        def found() -> float:
            with localcontext() as context:
                context.prec = max(1, precision)
                return float(Decimal(value).ln() / Decimal(base).ln())

        return _result(found)

    def mean(self, numbers: Sequence[float]) -> object:
        """Return the mean."""
        return _of(numbers, lambda some: sum(some) / len(some))

    def standard_deviation(self, numbers: Sequence[float]) -> object:
        """Return the standard deviation of a whole population."""

        def spread(some: Sequence[float]) -> float:
            middle = sum(some) / len(some)
            return math.sqrt(sum((one - middle) ** 2 for one in some) / len(some))

        return _of(numbers, spread)

    def si_unit_conversion(self, value: float, unit_in: str, unit_out: str) -> object:
        """Convert a length."""
        _must_be_number(value)
        if unit_in not in METRES or unit_out not in METRES:
            raise Refusal(f"There is no conversion from {unit_in!r} to {unit_out!r}")
        return {"result": value * METRES[unit_in] * (1 / METRES[unit_out])}

    def imperial_si_conversion(self, value: float, unit_in: str, unit_out: str) -> object:
        """Convert between the two systems."""
        _must_be_number(value)
        if unit_in == unit_out:
            return {"result": value}
        if (unit_in, unit_out) == ("celsius", "fahrenheit"):
            return {"result": value * 1.8 + 32}
        if (unit_in, unit_out) == ("fahrenheit", "celsius"):
            return {"result": (value - 32) * (5 / 9)}
        if (unit_in, unit_out) not in FACTORS:
            raise Refusal(f"There is no conversion from {unit_in!r} to {unit_out!r}")
        return {"result": value * FACTORS[unit_in, unit_out]}

    def add(self, a: float, b: float) -> object:
        """Add."""
        return _result(lambda: a + b)

    def subtract(self, a: float, b: float) -> object:
        """Subtract."""
        return _result(lambda: a - b)

    def multiply(self, a: float, b: float) -> object:
        """Multiply."""
        _must_be_number(a)
        _must_be_number(b)
        return _result(lambda: a * b)

    def divide(self, a: float, b: float) -> object:
        """Divide."""
        if b == 0:
            raise Refusal("Nothing can be divided by zero")
        return _result(lambda: a / b)

    def power(self, base: float, exponent: float) -> object:
        """Raise to a power."""
        return _result(lambda: base**exponent)

    def square_root(self, number: float, precision: int) -> object:
        """Return a square root, to so many digits."""

        def found() -> float:
            if number < 0:
                raise Refusal("A negative number has no square root")
            with localcontext() as context:
                context.prec = max(1, precision)
                return float(Decimal(number).sqrt())

        return _result(found)

    def absolute_value(self, number: float) -> object:
        """Return a number without its sign."""
        return _result(lambda: abs(number))

    def round_number(self, number: float, decimal_places: int = 0) -> object:
        """Round."""
        return _result(lambda: round(number, decimal_places))

    def percentage(self, part: float, whole: float) -> object:
        """Return a share in percent."""
        if whole == 0:
            raise Refusal("The whole cannot be zero")
        return _result(lambda: part / whole * 100)

    def min_value(self, numbers: Sequence[float]) -> object:
        """Return the least."""
        return _of(numbers, min)

    def max_value(self, numbers: Sequence[float]) -> object:
        """Return the greatest."""
        return _of(numbers, max)

    def sum_values(self, numbers: Sequence[float]) -> object:
        """Return the sum."""
        return _of(numbers, sum)


def _of(numbers: Sequence[float], found: Callable[[Sequence[float]], float]) -> object:
    if not numbers:
        raise Refusal("The list is empty")
    return _result(lambda: found(numbers))


def _result(found: Callable[[], float]) -> object:
    try:
        return {"result": found()}
    except (TypeError, ValueError, OverflowError, InvalidOperation, ZeroDivisionError) as error:
        raise Refusal(f"That cannot be calculated: {error}") from None


def _must_be_number(value: object) -> None:
    if not isinstance(value, int | float):
        raise Refusal("The value has to be a number")
