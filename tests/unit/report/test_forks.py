from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.report.forks import in_forks

# Of Python 3.12 on; the threads of pytest-xdist hold no lock that these processes need.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_come_in_order_from_two_processes_that_end() -> None:
    found = list(in_forks(lambda thing: (thing, os.getpid()), list(range(7))))

    assert [thing for thing, _ in found] == list(range(7))
    first, second = (sorted({process for _, process in found[n::2]}) for n in (0, 1))
    assert len(first) == len(second) == 1
    assert len({*first, *second, os.getpid()}) == 3
    assert not any(is_there(process) for process in (*first, *second))


def test_more_than_a_pipe_holds_comes_whole() -> None:
    sizes = [2**20 + number for number in range(5)]
    assert [len(found) for found in in_forks(bytes, sizes)] == sizes


def test_what_a_call_raises_is_raised_here_and_both_end() -> None:
    def call(thing: int) -> int:
        if thing == 2:
            raise StoreProblem("schema 7 is not known", path=Path("a.jsonl"), line=3, remedy="do")
        if thing == 3:
            signal.pause()
        return os.getpid()

    processes: list[int] = []
    results = in_forks(call, range(4))
    with pytest.raises(StoreProblem, match=r"^a\.jsonl:3: schema 7 is not known; do$") as raised:
        processes.extend(results)
    assert len(processes) == 2
    assert not any(is_there(process) for process in processes)
    assert (raised.value.path, raised.value.line) == (Path("a.jsonl"), 3)


def test_a_process_that_is_ended_from_outside_is_said() -> None:
    with pytest.raises(ChildProcessError, match="a process that counted results was ended"):
        list(in_forks(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1, 2]))


def test_who_wants_no_more_leaves_no_process_behind() -> None:
    def call(thing: int) -> int:
        if thing > 1:
            signal.pause()
        return os.getpid()

    results = in_forks(call, range(4))
    processes = [next(results), next(results)]
    results.close()

    assert not any(is_there(process) for process in processes)
