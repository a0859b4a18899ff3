from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--models", "rigth"], ["no candidate is named 'rigth'", "right", "reference", "seed"]),
        (["--models", "right,right"], ["named twice"]),
        (["--models", ","], ["--models", "name at least one candidate"]),
        (["--models", "right", "--modelbench-repeats", "0"], ["must be 1 or more"]),
        (["--models", "right", "--modelbench-repeats", "many"], ["'many' is no whole number"]),
        (["--models", "right", "--modelbench-fault-retries", "-1"], ["must be 0 or more"]),
        (
            ["--models", "right", "--modelbench-isolation", "vacuum"],
            ["vacuum", "auto", "strict", "bubblewrap"],
        ),
        (  # also where no box is needed: all is replayed
            ["--models", "reference", "cases/tiny/a", "--modelbench-isolation", "vacuum"],
            ["isolation 'vacuum' is not known", "podman"],
        ),
        (["--models", "right", "--modelbench-results", "pytest.ini"], ["pytest.ini"]),
        (["--models", "right", "--modelbench-results", "cases"], ["cases/tiny is a pack"]),
        (["--models", "right", "--modelbench-results", "cases/tiny/r"], ["cases/tiny is a pack"]),
        (["--models", "right", "cases/tiny/z"], ["z"]),
        (["--models", "right", "cases/tiny/pack.toml::test_case[z:right:1]"], ["'z'", "has a"]),
        (["cases/tiny/pack.toml::test_case[a:rigth:1]"], ["no candidate is named 'rigth'"]),
        (
            ["--models", "right", "--modelbench-report", "out/all.json"],
            ["--modelbench-report out/all.json: there is no folder", "/out; name another"],
        ),
        (  # a folder that exists, and takes no file from anybody
            ["--models", "right", "--modelbench-report", "/proc/all.md"],
            ["--modelbench-report /proc/all.md: ", "; name another"],
        ),
        (["--models", "right", "--reruns", "2"], ["--reruns"]),
        (["--models", "right", "-n", "2", "--dist", "loadscope"], ["--dist loadscope", "load"]),
        (["--models", "right", "-n", "2", "--dist", "loadfile"], ["--dist loadfile"]),
        (["--models", "right", "-n", "2", "--dist", "loadgroup"], ["--dist loadgroup"]),
        (["--models", "right", "-n", "2", "--dist", "each"], ["--dist each"]),
    ],
)
def test_bad_value_is_a_usage_error_that_names_the_valid_ones(
    project: Any, args: list[str], told: list[str]
) -> None:
    project.certified("a").scripted("right")
    if "--reruns" in args:  # the option of pytest-rerunfailures, which is not installed here
        project.write(
            "conftest.py",
            "def pytest_addoption(parser):\n    parser.addoption('--reruns', type=int)",
        )
    ran = project.run(*args)
    assert ran.exit == 4, ran.out
    for word in told:
        assert word in ran.out
    assert "Traceback" not in ran.out
    assert "INTERNALERROR" not in ran.out
    assert not project.tries("right")
    assert not ran.junit
