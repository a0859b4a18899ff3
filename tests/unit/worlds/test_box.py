"""What every level promises."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import INTERPRETER, Box, BoxSpec, Mount, ending
from pytest_modelbench.worlds.levels import LANDLOCK
from pytest_modelbench.worlds.world import World

SCRATCH = BoxSpec(workdir="/tmp")


def test_status_and_both_streams_are_told(box: Box) -> None:
    done = box.run(["sh", "-c", "echo out; echo err >&2; exit 3"], SCRATCH, seconds=60)
    assert (done.status, done.signal, done.timed_out) == (3, None, False)
    assert done.output == b"out\nerr\n"
    assert done.output_total == 8


def test_signal_is_told(box: Box) -> None:
    done = box.run(["sh", "-c", "kill -SEGV $$"], SCRATCH, seconds=60)
    assert (done.status, done.signal) == (None, signal.SIGSEGV)


def test_missing_command_is_the_candidates_trouble(box: Box) -> None:
    done = box.run(["no-such-program"], SCRATCH, seconds=60)
    assert done.status == 127
    assert b"no-such-program" in done.output


def test_missing_mount_is_our_trouble(box: Box, tmp_path: Path) -> None:
    spec = BoxSpec(mounts=(Mount(tmp_path / "absent", "/data"),), workdir="/tmp")
    with pytest.raises(Fault, match="absent") as raised:
        box.run(["true"], spec, seconds=60)
    assert raised.value.kind == "box"


def test_missing_workdir_is_our_trouble(box: Box) -> None:
    with pytest.raises(Fault, match="no-such-folder"):
        box.run(["true"], BoxSpec(workdir="/no-such-folder"), seconds=60)


def test_stdin_is_fed_whole(box: Box) -> None:
    data = bytes(range(256)) * 4096
    done = box.run(["sha256sum"], SCRATCH, stdin=data, seconds=60)
    import hashlib

    assert done.output.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_stdin_that_nobody_reads_does_not_hang(box: Box) -> None:
    done = box.run(["sh", "-c", "exec <&-; echo done"], SCRATCH, stdin=b"x" * 10**6, seconds=60)
    assert (done.status, done.output) == (0, b"done\n")


def test_stdin_is_empty_by_default(box: Box) -> None:
    assert box.run(["wc", "-c"], SCRATCH, seconds=60).output.strip() == b"0"


def test_flood_keeps_head_and_tail_and_the_writer_ends(box: Box) -> None:
    script = "echo begin; head -c 5000000 /dev/zero; echo; echo end"
    done = box.run(["sh", "-c", script], SCRATCH, seconds=60, output_bytes=1000)
    assert done.status == 0
    assert done.output_total == 5_000_011
    assert done.output.startswith(b"begin\n")
    assert done.output.endswith(b"\nend\n")
    assert b"[... 4999011 bytes left out ...]" in done.output
    assert len(done.output) < 1100


def test_deadline_ends_all(box: Box, marker: str, living: Callable[[], list[int]]) -> None:
    script = f"trap '' TERM; setsid sleep {marker} & sleep {marker} & echo started; sleep {marker}"
    for seconds in (0.5, 5, 50):  # the longer ones where a busy machine let it not even start
        done = box.run(["sh", "-c", script], SCRATCH, seconds=seconds)
        assert (done.status, done.signal, done.timed_out) == (None, None, True)
        assert living() == []
        if done.output:
            break
    assert done.output == b"started\n"
    assert done.seconds < seconds + 20


def test_survivors_end_with_the_command(
    box: Box, marker: str, living: Callable[[], list[int]]
) -> None:
    """A daemon in a session of its own, whose parents are gone, and which holds the output pipe."""
    daemon = f"(setsid sh -c 'trap \"\" TERM HUP; sleep {marker}' &) & sleep {marker} & exit 5"
    done = box.run(["sh", "-c", daemon], SCRATCH, seconds=120)
    assert (done.status, done.timed_out) == (5, False)
    assert living() == []
    assert done.seconds < 60, "it was not waited for until its time was up"


def test_a_survivor_does_nothing_when_what_it_waits_for_is_ended(box: Box, world: World) -> None:
    late = "setsid sh -c 'sleep 1000; echo late >>late' &"
    done = box.run(["sh", "-c", 40 * late + " exit 0"], world.spec(), seconds=120)
    assert done.status == 0
    assert not (world.tree / "late").exists()


def test_environment_is_no_one_elses(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "tell-nobody")
    spec = BoxSpec(workdir="/tmp", environment={"GIVEN": "a 'b' $c\nd", "LD_HINT": "e f"})
    done = box.run(["env", "-0"], spec, seconds=60)
    found = dict(row.split("=", 1) for row in done.output.decode().split("\0") if row)
    assert "SECRET_KEY" not in found
    assert found["GIVEN"] == "a 'b' $c\nd"
    assert found["LD_HINT"] == "e f"
    assert found["USER"] == "candidate"
    assert found["HOME"] != os.environ.get("HOME")


def test_options_cannot_be_smuggled(strict_box: Box) -> None:
    spec = BoxSpec(workdir="/tmp", environment={"A": "b\0--bind\0/\0/host"})
    with pytest.raises(ValueError, match="NUL"):
        strict_box.run(["true"], spec, seconds=60)


def test_home_and_temporary_folder_are_new_each_time(box: Box) -> None:
    script = 'ls -A "$HOME" "$TMPDIR" && touch "$HOME/left" "$TMPDIR/left" && ls "$HOME" "$TMPDIR"'
    first = box.run(["sh", "-c", script], SCRATCH, seconds=60)
    second = box.run(["sh", "-c", script], SCRATCH, seconds=60)
    assert first.status == 0
    assert first.output.count(b"left") == 2
    assert second.output.count(b"left") == 2


def test_python_runs(box: Box) -> None:
    done = box.run([INTERPRETER, "-I", "-S", "-c", "print(6 * 7)"], SCRATCH, seconds=60)
    assert done.output == b"42\n"


def test_file_size_is_limited(box: Box) -> None:
    spec = BoxSpec(workdir="/tmp", file_bytes=2**20)
    script = 'head -c 2000000 /dev/zero >"$TMPDIR/big"; wc -c <"$TMPDIR/big"'
    done = box.run(["sh", "-c", script], spec, seconds=60)
    assert done.output.split()[-1] == str(2**20).encode()


def test_memory_is_limited(box: Box) -> None:
    script = "try:\n    bytearray(2**30)\nexcept MemoryError:\n    print('refused')"
    small = BoxSpec(workdir="/tmp", memory_bytes=2**29)
    assert box.run([INTERPRETER, "-c", script], small, seconds=60).output == b"refused\n"


def test_no_descriptor_of_ours_is_open_in_the_box(box: Box) -> None:
    if box.level == LANDLOCK:
        pytest.skip("it closes /proc, where they are listed; the reaper is that of portable")
    with Path("/dev/null").open("rb") as file:
        os.set_inheritable(file.fileno(), True)
        script = "import os; print(*sorted(os.readlink(f'/proc/self/fd/{n}').partition(':')[0] "
        script += "for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')))"
        done = box.run([INTERPRETER, "-I", "-S", "-c", script], SCRATCH, seconds=60)
    # A hold on the box's own user namespace is there where root made the box; it opens nothing.
    assert set(done.output.split()) <= {b"/dev/null", b"pipe", b"user"}


def test_conversation(box: Box, marker: str, living: Callable[[], list[int]]) -> None:
    process = box.start(["sh", "-c", f"sleep {marker} & setsid sleep {marker} & cat"], SCRATCH)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"ping\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"ping\n"
    box.stop(process)
    assert process.returncode is not None
    assert living() == []
    assert process.stdin.closed
    box.stop(process)


@pytest.mark.parametrize(("script", "told"), [("exit 3", 3), ("kill -TERM $$", 128 + 15)])
def test_a_started_command_tells_how_it_ended(box: Box, script: str, told: int) -> None:
    process = box.start(["sh", "-c", script], SCRATCH)
    assert process.wait(60) == told
    box.stop(process)


def test_conversation_that_ended_by_itself(
    box: Box, marker: str, living: Callable[[], list[int]]
) -> None:
    process = box.start(["sh", "-c", f"setsid sleep {marker} & echo bye >&1; exit 0"], SCRATCH)
    assert process.stdout is not None
    assert process.stdout.readline() == b"bye\n"
    process.wait(60)
    box.stop(process)
    assert living() == []


def test_passed_descriptor_reaches_the_command(box: Box) -> None:
    read, write = os.pipe()
    process = box.start(
        [INTERPRETER, "-c", f"import os; os.write({write}, b'x')"], SCRATCH, pass_fds=[write]
    )
    os.close(write)
    assert os.read(read, 10) == b"x"
    os.close(read)
    box.stop(process)


def test_killed_harness_leaves_nothing(
    box: Box, marker: str, living: Callable[[], list[int]], tmp_path: Path
) -> None:
    script = f"""
        import sys
        sys.path[:] = {sys.path!r}
        from pytest_modelbench.worlds.levels import choose
        from pytest_modelbench.worlds.box import BoxSpec
        choose({box.level!r}).run(
            ["sh", "-c", "setsid sleep {marker} & echo up >up; sleep {marker}"],
            BoxSpec(workdir="/tmp"), seconds=60)
    """
    harness = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path)
    try:
        while len(living()) < 2:
            assert harness.poll() is None
            time.sleep(0.01)  # what another process does is seen only by looking
    finally:
        harness.kill()
        harness.wait()
    _until(lambda: living() == [])


def test_ending_reads_as_shells_do() -> None:
    assert ending(0) == (0, None)
    assert ending(-9) == (None, 9)
    assert ending(137) == (None, 9)
    assert ending(255) == (255, None)


def test_tree_is_worked_in(box: Box, world: World) -> None:
    script = "pwd; ./run.sh; echo more >>package/calc.py; git status --short; cat /work/run.sh"
    done = box.run(["sh", "-c", script], world.spec(), seconds=60)
    lines = done.output.decode().splitlines()
    assert lines[1:] == ["ran", " M package/calc.py", "#!/bin/sh", "echo ran"]
    assert (world.tree / "package" / "calc.py").read_text().endswith("more\n")


def test_home_lasts_through_an_attempt(box: Box, world: World) -> None:
    box.run(["sh", "-c", "echo a >~/kept; echo b >/tmp/kept"], world.spec(), seconds=60)
    done = box.run(["sh", "-c", "cat ~/kept /tmp/kept"], world.spec(), seconds=60)
    assert done.output == b"a\nb\n"


def _until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
