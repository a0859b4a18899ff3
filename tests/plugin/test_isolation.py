"""The level that a whole run has: what was asked for, under its own name, or a refusal."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.worlds import seccomp

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # several runs of pytest

LESSER = ("landlock", "portable")


@pytest.fixture
def ready(project: Project) -> Project:
    return project.certified("one").scripted("right")


def without_bubblewrap(project: Project) -> None:
    """Give the project a PATH on which bwrap is not: links to all other programs."""
    programs = project.path.parent / "programs"
    programs.mkdir()
    for folder in reversed(os.environ["PATH"].split(":")):
        for path in Path(folder).iterdir() if Path(folder).is_dir() else ():
            (programs / path.name).unlink(missing_ok=True)
            (programs / path.name).symlink_to(path)
    (programs / "bwrap").unlink(missing_ok=True)
    (programs / "docker").unlink(missing_ok=True)
    project.environ["PATH"] = str(programs)


def filtered() -> Callable[[], None]:
    """Return what makes a process and its children unable to make a user namespace."""
    if not seccomp.supported():
        pytest.skip("the filter is not known for this machine")
    code = seccomp.program()
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))

    def become() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        assert libc.prctl(22, 2, program, 0, 0) == 0
        assert len(buffer) == len(code)  # and it is there until now

    return become


def test_without_bubblewrap_strict_refuses_and_auto_says_what_it_took(ready: Project) -> None:
    without_bubblewrap(ready)
    refused = ready.run("--models", "right", "--modelbench-isolation", "strict")
    assert refused.exit == 4, refused.out
    assert "isolation 'strict' is not available on this machine" in refused.out
    assert "bwrap is not on the PATH; install the package bubblewrap" in refused.out
    assert ready.tries("right") == []
    named = ready.run("--models", "right", "--modelbench-isolation", "docker")
    assert named.exit == 4, named.out
    assert "docker is not on the PATH; install it and start its daemon" in named.out
    assert ready.tries("right") == []
    ran = ready.run("--models", "right")
    assert ran.exit == 0, ran.out
    (tried,) = ready.tries("right")
    assert tried.box in LESSER
    assert tried.box in ran.out, "and the report names it"


def test_where_user_namespaces_are_refused(ready: Project) -> None:
    """By a filter that the run inherits, as in a container."""
    before = filtered()
    args = ("--models", "right", "--modelbench-isolation")
    refused = ready.start(*args, "strict", before=before).wait()
    assert refused.exit == 4, refused.out
    assert "allow user namespaces" in refused.out
    assert ready.tries("right") == []
    ran = ready.start(*args, "auto", before=before).wait()
    assert ran.exit == 0, ran.out
    (tried,) = ready.tries("right")
    assert tried.box in LESSER
