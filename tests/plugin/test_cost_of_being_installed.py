from __future__ import annotations

import json
from typing import Any

import pytest

HEAVY = ("litellm", "pydantic", "scipy", "numpy", "httpx", "aiohttp", "filelock")

# Every process of the run, workers too, says at its end which heavy modules it has imported.
WATCH = f"""
import atexit, json, os, sys

def tell():
    found = sorted(set(sys.modules) & set({HEAVY!r}))
    with open(os.path.join(os.environ["WATCHED"], str(os.getpid())), "w") as file:
        json.dump([found, "pytest_modelbench.plugin" in sys.modules], file)

atexit.register(tell)
"""


@pytest.mark.parametrize(
    "args", [("--help",), ("--version",), ("test_x.py",), ("-n", "2", "test_x.py"), ("--co",)]
)
def test_project_without_packs_imports_nothing_heavy(project: Any, args: tuple[str, ...]) -> None:
    project.write("site/sitecustomize.py", WATCH)
    (project.path / "watched").mkdir()
    project.write("test_x.py", "def test_x():\n    pass\n")
    # Third-party plugins that happen to be installed here would be measured otherwise.
    environ = {
        "PYTHONPATH": str(project.path / "site"),
        "WATCHED": str(project.path / "watched"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    ran = project.run("-p", "pytest_modelbench.plugin", "-p", "xdist", *args, environ=environ)
    assert ran.exit == 0, ran.out
    told = [json.loads(path.read_text()) for path in (project.path / "watched").iterdir()]
    assert len(told) == (3 if "-n" in args else 1)
    assert [found for found, _ in told] == [[]] * len(told)
    # pytest answers a bare --version before it loads any plugin.
    assert all(has_plugin for _, has_plugin in told) or args == ("--version",)


def test_own_fixtures_and_parameters_of_our_names_are_unaffected(project: Any) -> None:
    project.write(
        "test_x.py",
        "import pytest\n\n"
        "@pytest.fixture\ndef case():\n    return 'mine'\n\n"
        "@pytest.fixture(params=[1, 2])\ndef world(request):\n    return request.param\n\n"
        "@pytest.mark.parametrize('attempt', ['p'])\n"
        "@pytest.mark.parametrize('candidate', [[]])\n"
        "def test_x(case, world, attempt, candidate):\n"
        "    assert (case, attempt, candidate) == ('mine', 'p', []) and world in (1, 2)\n\n"
        "def pytest_generate_tests(metafunc):\n"
        "    if metafunc.function.__name__ == 'test_y':\n"
        "        metafunc.parametrize('attempt', [7])\n\n"
        "def test_y(attempt):\n    assert attempt == 7\n",
    )
    project.certified("a").scripted("right")
    for args in (("test_x.py",), ("--models", "right", "-n", "2", "test_x.py", "cases")):
        ran = project.run(*args)
        assert ran.exit == 0, ran.out
        assert ran.outcomes() == {"passed": 3 if len(args) == 1 else 4}


def test_conftest_that_replaces_our_fixtures_does_not_change_the_shipped_suite(
    project: Any,
) -> None:
    project.write(
        "conftest.py",
        "import pytest\n\n"
        + "".join(
            f"@pytest.fixture\ndef {name}():\n    return 'mine'\n\n"
            for name in ("case", "candidate", "attempt", "world")
        ),
    )
    project.certified("a", "b").scripted("half", wrong=["b"])
    ran = project.run("--models", "half")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 1, "unsolved": 1}
    assert list(project.verdicts("half").values()) == [[True], [False]]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("modelbench_cell", "modelbench_cell was replaced"),
        ("modelbench_attempt", "modelbench_attempt was replaced"),
    ],
)
def test_replaced_fixture_of_the_shipped_suite_is_never_a_pass(
    project: Any, name: str, told: str
) -> None:
    project.write(
        "conftest.py",
        "import pytest\n\n"
        "class Pass:\n    def verify(self): pass\n\n"
        f"@pytest.fixture\ndef {name}():\n    return Pass()\n",
    )
    project.certified("a").scripted("wrong", wrong=["a"])
    ran = project.run("--models", "wrong")
    assert ran.exit in (1, 2)
    assert told in ran.out
    assert "passed" not in ran.outcomes()
