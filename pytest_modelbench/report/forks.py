"""Two processes for a row of equal pieces of work.

``concurrent.futures`` would do the same, and takes as much memory as the counts of five thousand
cases.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, TypeVar

PROCESSES = 2
"""On every machine: each holds what it works on, and memory is to be bounded."""

_Thing = TypeVar("_Thing")
_Found = TypeVar("_Found")


def in_forks(
    call: Callable[[_Thing], _Found], things: Sequence[_Thing]
) -> Generator[_Found, None, None]:
    """Yield what a call returns for each thing, in order; what it raises is raised here.

    Every second thing is the other process's: let those that take long stand side by side. Results
    travel pickled. For a process without other threads: one could hold a lock while it is forked.

    Raises:
        ChildProcessError: a forked process was ended from outside.
    """
    with ExitStack() as forks:
        shares = [things[number::PROCESSES] for number in range(PROCESSES)]
        pipes = [forks.enter_context(_fork(call, share)) for share in shares]
        for number in range(len(things)):
            try:
                failed, found = pickle.load(pipes[number % PROCESSES])
            except (EOFError, pickle.UnpicklingError):
                told = "a process that counted results was ended (is memory short?): start again"
                raise ChildProcessError(told) from None
            if failed:
                raise found
            yield found


@contextmanager
def _fork(call: Callable[[_Thing], object], things: Sequence[_Thing]) -> Iterator[BinaryIO]:
    """Fork a process that works; yield the end of a pipe from which its results are read."""
    read_end, write_end = os.pipe()
    # Ctrl-C is for the parent to tell; a child that it reached here would go on as its parent.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            with os.fdopen(write_end, "wb") as pipe:
                _work(call, things, pipe)
        finally:
            os._exit(0)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            yield pipe
    finally:
        os.kill(child, signal.SIGKILL)  # it has ended, or nobody wants the rest
        os.waitpid(child, 0)


def _work(call: Callable[[_Thing], object], things: Sequence[_Thing], pipe: BinaryIO) -> None:
    try:
        for thing in things:
            pipe.write(pickle.dumps((False, call(thing))))
            pipe.flush()
    except Exception as error:  # whatever it is, it is raised in the parent
        pipe.write(pickle.dumps((True, error)))
