"""Signals of a run: SIGTERM as Ctrl-C; the end of a run hears the second only."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from pytest_modelbench.interrupts import NUMBERS, Interrupts


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def session() -> pytest.Session:
    # A session has nothing else that matters here.
    return cast("pytest.Session", SimpleNamespace(exitstatus=pytest.ExitCode.OK))


@pytest.mark.parametrize("number", NUMBERS)
def test_each_interrupts_a_run_that_goes_on(number: signal.Signals) -> None:
    interrupts = Interrupts()
    interrupts.catch()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert interrupts.noted is None


@pytest.mark.parametrize("first", NUMBERS)
@pytest.mark.parametrize("second", NUMBERS)
def test_the_end_of_a_run_notes_the_first_and_hears_the_second(
    session: pytest.Session, first: signal.Signals, second: signal.Signals
) -> None:
    interrupts = Interrupts()
    interrupts.catch()
    interrupts.hold(session)
    signal.raise_signal(first)
    assert interrupts.noted is first
    assert session.exitstatus == 2
    session.exitstatus = pytest.ExitCode.TESTS_FAILED  # as pytest does when its loop returns
    interrupts.hold(session)
    interrupts.settle()
    assert session.exitstatus == 2
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(second)


def test_without_a_signal_the_status_stays(session: pytest.Session) -> None:
    interrupts = Interrupts()
    interrupts.catch()
    interrupts.hold(session)
    interrupts.settle()
    assert session.exitstatus == 0


def test_afterwards_all_is_as_before(session: pytest.Session) -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    interrupts = Interrupts()
    interrupts.catch()
    interrupts.hold(session)
    assert [signal.getsignal(number) for number in NUMBERS] != before
    interrupts.release()
    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_what_is_ignored_stays_ignored(session: pytest.Session) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts = Interrupts()
    interrupts.catch()
    interrupts.hold(session)
    signal.raise_signal(signal.SIGINT)
    assert interrupts.noted is None
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
