"""What is the containers' own affair; what they promise is in ``test_box`` and ``test_own_root``.

Where neither Docker nor Podman runs, a program of the tests stands in for the command: it reads the
same arguments and starts the same process 1, by bubblewrap.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_modelbench.errors import Fault, UsageProblem
from pytest_modelbench.worlds import levels
from pytest_modelbench.worlds.box import INTERPRETER, Box, BoxSpec, Mount
from pytest_modelbench.worlds.container import DOCKER, PODMAN, ContainerBox

SCRATCH = BoxSpec(workdir="/tmp")

STAND_IN = f"""#!{INTERPRETER} -ISs
import csv, json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
verb, arguments = sys.argv[1], sys.argv[2:]
with open(here + "/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if verb == "images":
    print("0123")
if verb == "ps":
    print(open(here + "/left").read() if os.path.exists(here + "/left") else "")
if verb != "run":
    sys.exit()
box = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--as-pid-1", "--proc", "/proc"]
box += ["--die-with-parent", "--dev", "/dev", "--cap-drop", "ALL"]
for name in ("bin", "sbin", "lib", "lib64"):
    if os.path.islink("/" + name):
        box += ["--symlink", os.readlink("/" + name), "/" + name]
take = iter(arguments)
for one in take:
    if one == "--mount":
        row = dict(pair.partition("=")[::2] for pair in next(csv.reader([next(take)])))
        box += ["--ro-bind" if "readonly" in row else "--bind", row["source"], row["target"]]
    elif one == "--tmpfs":
        box += ["--tmpfs", next(take).partition(":")[0]]
    elif one.startswith("pytest-modelbench-root:"):
        break
os.execvp("bwrap", [*box, *take])
"""


@pytest.fixture
def stand_in(strict_box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ContainerBox:
    """A box of Docker's whose command is not Docker's; it writes down what it was asked."""
    program = tmp_path / "bin" / DOCKER
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SOME_API_KEY", "tell-nobody")
    box = ContainerBox(DOCKER)
    box.prepare()
    return box


def calls(tmp_path: Path, verb: str) -> list[list[str]]:
    """Return the arguments of each call of a verb."""
    rows = (tmp_path / "bin" / "calls").read_text().splitlines()
    return [told[1:] for told in map(json.loads, rows) if told[0] == verb]


def test_the_command_line_is_what_holds_a_container(stand_in: ContainerBox, tmp_path: Path) -> None:
    (tmp_path / "a, b").mkdir()
    data = Mount(tmp_path / "a, b", "/data")
    spec = BoxSpec((data,), "/tmp", {"TOKEN": "given"}, 2**20, memory_bytes=2**30, processes=40)
    done = stand_in.run(["sh", "-c", "echo $TOKEN; echo no >&2; exit 3"], spec, seconds=60)
    assert (done.status, done.output) == (3, b"given\nno\n")
    (told,) = calls(tmp_path, "run")
    image = next(n for n, one in enumerate(told) if one.startswith("pytest-modelbench-root:"))
    options = told[:image]
    process_1 = [INTERPRETER, "-I", "-S", "/opt/modelbench/reaper.py", "/opt/modelbench/start"]
    assert told[image + 1 :] == process_1
    assert {"--rm", "--read-only"} <= set(options)
    pairs = set(itertools.pairwise(options))
    user = os.geteuid() if stand_in.owner is None else stand_in.owner
    group = os.getegid() if stand_in.owner is None else stand_in.owner
    assert {
        ("--pull", "never"),
        ("--network", "none"),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--log-driver", "none"),
        ("--pids-limit", "41"),
        ("--memory", str(2**30 + 2**21)),
        ("--memory-swap", str(2**30 + 2**21)),
        ("--user", f"{user}:{group}"),
        ("--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777,size=1048576"),
        ("--tmpfs", "/home/candidate:rw,exec,nosuid,nodev,mode=1777,size=1048576"),
        ("--env", "HTTPS_PROXY="),
        ("--mount", "type=bind,source=/usr,target=/usr,readonly"),
        ("--mount", f'type=bind,"source={tmp_path}/a, b",target=/data,readonly'),
    } <= pairs
    assert not {"--privileged", "--cap-add", "--device", "--volume", "-v"} & set(options)
    mounted = [one for option, one in pairs if option == "--mount"]
    rows = [dict(f.partition("=")[::2] for f in next(csv.reader([one]))) for one in mounted]
    # The system's folders and what the box was given, and no socket of a daemon.
    assert {row["source"] for row in rows if "readonly" not in row} == set()
    assert not any(row["target"] in ("/", "/var", "/run", "/root", "/home") for row in rows)
    # What a command is, and its variables, stand in no argument.
    assert not any("TOKEN" in one or "given" in one for one in told)


def test_a_conversation_and_its_descriptors(stand_in: ContainerBox) -> None:
    read, write = os.pipe()
    script = f"import os; os.write({write}, b'x'); os.write(1, os.read(0, 9)); os._exit(5)"
    process = stand_in.start([INTERPRETER, "-c", script], SCRATCH, pass_fds=[write])
    os.close(write)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"ping")
    process.stdin.close()
    assert process.stdout.read() == b"ping"
    assert os.read(read, 10) == b"x"
    os.close(read)
    assert process.wait(60) == 5
    stand_in.stop(process)


def test_no_key_reaches_the_program_that_makes_containers(stand_in: ContainerBox) -> None:
    process = stand_in.start(["cat"], SCRATCH)
    try:
        told = Path(f"/proc/{process.pid}/environ").read_bytes()
    finally:
        stand_in.stop(process)
    assert b"PATH=" in told
    assert b"tell-nobody" not in told


def test_only_containers_of_dead_harnesses_are_swept(
    stand_in: ContainerBox, tmp_path: Path
) -> None:
    """A name says whose a container is: user, namespace of processes, process, its start."""
    stand_in.run(["true"], SCRATCH, seconds=60)
    (told,) = calls(tmp_path, "run")
    mine = told[told.index("--name") + 1]
    _, user, namespace, pid, start, chance = mine.split("-")
    assert (int(user), int(pid)) == (os.geteuid(), os.getpid())
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = f"modelbench-{user}-{namespace}-{ended.pid}-1-{chance}"
    again = f"modelbench-{user}-{namespace}-{pid}-{int(start) - 1}-{chance}"
    kept = [
        mine,
        f"modelbench-{int(user) + 1}-{namespace}-{ended.pid}-1-{chance}",
        f"modelbench-{user}-{int(namespace) + 1}-{ended.pid}-1-{chance}",
        "postgres",
    ]
    (tmp_path / "bin" / "left").write_text("\n".join([dead, *kept, again]))
    stand_in.prepare()
    assert calls(tmp_path, "rm") == [["--force", dead], ["--force", again]]


def test_a_program_that_is_not_there_or_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    levels.probe_named.cache_clear()
    try:
        with pytest.raises(UsageProblem, match="docker is not on the PATH; install it and start"):
            levels.choose(DOCKER)
        levels.probe_named.cache_clear()
        words = "Cannot connect to the Docker daemon at unix:///x.sock. Is it running?"
        (tmp_path / DOCKER).write_text(f"#!/bin/sh\necho '{words}' >&2; exit 1\n")
        (tmp_path / DOCKER).chmod(0o755)
        with pytest.raises(UsageProblem, match=r"images failed: Cannot connect.*start the daemon"):
            levels.choose(DOCKER)
    finally:
        levels.probe_named.cache_clear()


def test_a_container_that_never_asks_for_its_command_is_a_fault(
    stand_in: ContainerBox, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / DOCKER
    program.write_text("#!/bin/sh\necho 'no space left on device' >&2; exit 125\n")
    with pytest.raises(Fault, match="docker run failed: no space left on device"):
        stand_in.run(["true"], SCRATCH, seconds=60)


@pytest.fixture(params=[DOCKER, PODMAN])
def container_box(request: pytest.FixtureRequest) -> ContainerBox:
    """A box of real containers."""
    found = levels.probe_named(request.param)
    if not found.available:
        pytest.skip(f"{request.param}: {found.why_not}")
    box = levels.choose(request.param)
    assert isinstance(box, ContainerBox)
    return box


def names(box: ContainerBox) -> set[str]:
    done = subprocess.run(
        [box.level, "ps", "--all", "--format", "{{.Names}}"], capture_output=True, check=True
    )
    return {one for one in done.stdout.decode().split() if one.startswith("modelbench-")}


def test_no_container_is_left(container_box: ContainerBox) -> None:
    before = names(container_box)
    container_box.run(["sh", "-c", "sleep 60"], SCRATCH, seconds=0.2)
    process = container_box.start(["cat"], SCRATCH)
    assert len(names(container_box) - before) == 1
    container_box.stop(process)
    with pytest.raises(Fault, match="no-such"):
        container_box.run(["true"], BoxSpec(workdir="/no-such"), seconds=60)
    assert names(container_box) <= before


def test_memory_of_all_processes_is_limited(container_box: ContainerBox) -> None:
    spec = BoxSpec(workdir="/tmp", memory_bytes=2**28, scratch_bytes=2**20)
    hold = "b = bytearray(150 * 2**20); import time; time.sleep(3)"
    script = f"for i in 1 2 3 4; do {INTERPRETER} -I -S -c '{hold}' & done; wait %1 && wait %2"
    script += " && wait %3 && wait %4 && echo all"
    done = container_box.run(["sh", "-c", script], spec, seconds=60)
    assert b"all" not in done.output


def test_a_users_proxies_stay_outside(
    container_box: ContainerBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"proxies": {"default": {"httpProxy": "http://me:tell-nobody@proxy:1"}}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://me:tell-nobody@proxy:1")
    box = ContainerBox(container_box.level)
    box.prepare()
    told = box.run(["sh", "-c", "env; cat /proc/1/environ"], SCRATCH, seconds=60).output
    assert b"candidate" in told
    assert b"tell-nobody" not in told


def test_the_next_start_sweeps(container_box: ContainerBox) -> None:
    """A container that was made and never started, by a process that is no more."""
    script = """
        import subprocess, sys
        from pytest_modelbench.worlds import container
        box = container.ContainerBox(sys.argv[1])
        box.prepare()
        name = container._name()
        made = ["create", "--name", name, "--ulimit", "nproc=99:99", box._image, "/usr/bin/true"]
        subprocess.run([box.level, *made], check=True, stdout=subprocess.DEVNULL)
        print(name)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), container_box.level],
        capture_output=True,
        check=True,
    )
    (name,) = done.stdout.decode().split()
    assert name in names(container_box)
    container_box.prepare()
    assert name not in names(container_box)
