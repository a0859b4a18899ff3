"""SIGINT and SIGTERM while a run goes on, and while it ends."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

import pytest

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """What stops a run: SIGTERM does what Ctrl-C does, and neither cuts the end of a run short.

    While cells run a signal is a KeyboardInterrupt, which pytest makes a clean stop of. Past its
    loop pytest catches none, and a report or JUnit's file would be lost to a traceback. So from
    there on the first signal is noted (the status becomes 2) and the second is a KeyboardInterrupt
    again.
    """

    def __init__(self) -> None:
        self.noted: signal.Signals | None = None
        self._session: pytest.Session | None = None
        self._before: dict[signal.Signals, Any] = {}  # Any: as signal.signal returns it

    def catch(self) -> None:
        """Make SIGTERM stop a run as Ctrl-C does; nothing in a thread, which gets no signal.

        Who has a signal ignored (a shell does so for a job in its background) goes on ignoring it.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        before = {number: signal.getsignal(number) for number in NUMBERS}
        self._before = {n: b for n, b in before.items() if b not in (None, signal.SIG_IGN)}
        if signal.SIGTERM in self._before:
            signal.signal(signal.SIGTERM, _interrupt)

    def hold(self, session: pytest.Session) -> None:
        """Note the next signal instead of raising: ``session`` has come to its end."""
        if self._before and self._session is None:
            self._session = session
            for number in self._before:
                signal.signal(number, self._note)

    def settle(self) -> None:
        """Give the session the status of what was noted, which pytest's loop has overwritten."""
        if self.noted is not None and self._session is not None:
            self._session.exitstatus = pytest.ExitCode.INTERRUPTED

    def release(self) -> None:
        """Leave both signals as they were."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted is not None:
            _interrupt(number, frame)
        self.noted = signal.Signals(number)
        self.settle()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {signal.Signals(number).name}")
