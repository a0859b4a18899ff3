"""The suite that every pack runs: one test, parametrized over its cells."""

from __future__ import annotations

from pytest_modelbench.fixtures import Attempt


def test_case(modelbench_attempt: Attempt) -> None:
    """Hold the candidate's work against the case's hidden check."""
    modelbench_attempt.verify()
