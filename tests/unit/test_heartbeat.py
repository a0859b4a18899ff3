"""What a run says while it goes on, by a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_modelbench.heartbeat import Heartbeat, step_of

CELLS = [f"cases/p/pack.toml::test_case[c{n}:m:1]" for n in range(40)]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def report(nodeid: str, *, fault: str = "", usd: float | None = None) -> SimpleNamespace:
    found = {
        "cell": ["p", nodeid, "m", 1],
        "outcome": "fault" if fault else "passed",
        "fault": fault,
        "list_usd": usd,
    }
    return SimpleNamespace(nodeid=nodeid, modelbench=found)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def beat(clock: Clock, said: list[str]) -> Heartbeat:
    return Heartbeat(CELLS, said.append, clock=clock)


def end(
    beat: Heartbeat, nodeid: str, *, after: float = 0.0, clock: Clock | None = None, **how: object
) -> None:
    beat.pytest_runtest_logstart(nodeid)
    if clock is not None:
        clock.now += after
    beat.pytest_runtest_logreport(report(nodeid, **how))  # type: ignore[arg-type]
    beat.pytest_runtest_logfinish(nodeid)


def test_line_at_each_twentieth(beat: Heartbeat, clock: Clock, said: list[str]) -> None:
    clock.now = 10.0
    beat.tick()
    clock.now = 30.0
    end(beat, CELLS[0])
    assert said == ["modelbench 0:10  0/40 verdicts  0 faults"]
    end(beat, CELLS[1])
    assert said[1:] == ["modelbench 0:30  2/40 verdicts  0 faults"]


def test_never_two_lines_within_ten_seconds(beat: Heartbeat, clock: Clock, said: list[str]) -> None:
    clock.now = 30.0
    for nodeid in CELLS[:20]:
        end(beat, nodeid)
    assert len(said) == 1


def test_run_of_long_cells_speaks_early_and_names_the_oldest(
    beat: Heartbeat, clock: Clock, said: list[str]
) -> None:
    beat.pytest_runtest_logstart(CELLS[3])
    for clock.now in range(100):
        beat.tick()
    assert said == [
        f"modelbench {time}  0/40 verdicts  0 faults  1 running  oldest {time} c3:m:1"
        for time in ("0:10", "0:40", "1:10")
    ]


def test_lines_for_quiet_grow_rare(beat: Heartbeat, clock: Clock, said: list[str]) -> None:
    for clock.now in range(0, 8 * 3600, 5):
        beat.tick()
    assert 150 < len(said) < 300


def test_quiet_run_speaks_late(clock: Clock, said: list[str]) -> None:
    beat = Heartbeat(CELLS, said.append, step=step_of(-1), clock=clock)
    for clock.now in range(100):
        beat.tick()
    assert [line.split()[1] for line in said] == ["0:50"]


def test_first_fault_of_a_kind_is_said_at_once(beat: Heartbeat, said: list[str]) -> None:
    end(beat, CELLS[0], fault="server-error")
    end(beat, CELLS[1], fault="server-error")
    assert said == ["modelbench 0:00  m: a fault, server-error"]


def test_cost_says_what_it_leaves_out(beat: Heartbeat) -> None:
    end(beat, CELLS[0], usd=1.5)
    end(beat, CELLS[1])
    assert "$1.50 and 1 cell of unknown cost" in beat.line()


def test_time_left_is_told_in_the_middle_of_a_run_only(beat: Heartbeat, clock: Clock) -> None:
    for nodeid in CELLS[:20]:
        end(beat, nodeid, after=3.0, clock=clock)
    assert beat.line().endswith("  1:00 left")
    for nodeid in CELLS[20:37]:
        end(beat, nodeid)
    assert "left" not in beat.line()


def test_time_left_goes_by_the_pace_of_who_is_left(clock: Clock, said: list[str]) -> None:
    """Certificates take no time; a model's cells are not measured by theirs."""
    cells = [f"p/pack.toml::test_case[c{n}:{who}:1]" for n in range(25) for who in ("seed", "m")]
    beat = Heartbeat(cells, said.append, clock=clock)
    for nodeid in cells[0::2]:
        end(beat, nodeid, after=0.2, clock=clock)
    assert "left" not in beat.line(), "of m nothing is known"
    end(beat, cells[1], after=10.0, clock=clock)
    assert beat.line().endswith("  4:00 left")
    for nodeid in cells[3:9:2]:
        beat.pytest_runtest_logstart(nodeid)
    clock.now += 10.0
    for nodeid in cells[3:9:2]:
        beat.pytest_runtest_logreport(report(nodeid))
        beat.pytest_runtest_logfinish(nodeid)
    assert beat.line().endswith("  1:56 left"), "210 s of work; 45 s of it took 25 s"


def test_a_call_that_is_made_again_is_said_at_once_and_in_each_line(
    beat: Heartbeat, said: list[str]
) -> None:
    failing: dict[str, tuple[str, str]] = {}
    beat.tell_waits(lambda: "", lambda: failing)
    beat.look()
    failing["m"] = ("connection-refused", "127.0.0.1:1 takes no connections; start the server")
    beat.look()
    beat.look()
    told = "m: connection-refused, tried again: 127.0.0.1:1 takes no connections; start the server"
    assert said == [f"modelbench 0:00  {told}"]
    assert beat.line().endswith("  m: connection-refused")
    failing.clear()
    assert "refused" not in beat.line()


def test_cells_of_others_do_not_count(beat: Heartbeat, clock: Clock, said: list[str]) -> None:
    clock.now = 30.0
    end(beat, "tests/test_own.py::test_x")
    assert "0/40 verdicts" in beat.line()


def test_nothing_is_said_after_the_end(beat: Heartbeat, clock: Clock, said: list[str]) -> None:
    beat.stop()
    clock.now = 1000.0
    beat.tick()
    assert said == []


@pytest.mark.parametrize(("verbose", "step"), [(1, 0.05), (0, 0.05), (-1, 0.25), (-2, 0.0)])
def test_quiet_runs_say_less(verbose: int, step: float) -> None:
    assert step_of(verbose) == step
