"""The entry point: options, and nothing else until a run has packs to try."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from pytest_modelbench import fixtures, usertests
from pytest_modelbench.collection import (
    MANIFEST,
    MARK,
    SOLUTIONS,
    PackDir,
    is_pack_test,
    pack_above,
    parametrize,
    passed_over_key,
    plan_key,
)

MODELS_INI = "modelbench_models"
CASES_INI = "modelbench_cases"


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("name at least one candidate")
    return names


def _positive(text: str) -> int:
    return _whole(text, least=1)


def _dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of dollars") from None
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return amount


def _natural(text: str) -> int:
    return _whole(text, least=0)


def _whole(text: str, *, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is too small: it must be {least} or more")
    return number


def _level(text: str) -> str:
    if text == "auto":  # the default, for which nothing is imported
        return text
    from pytest_modelbench.errors import UsageProblem
    from pytest_modelbench.worlds.names import known

    try:
        return known(text)
    except UsageProblem as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _report(text: str) -> str:
    if not text.endswith((".md", ".json")):
        raise argparse.ArgumentTypeError(f"{text}: the name must end in .md or .json")
    return text


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; all but ``--models`` begin with ``--modelbench-``."""
    group = parser.getgroup("modelbench", "benchmarks of models and agents")
    group.addoption(
        "--models",
        type=_names,
        action="extend",
        default=[],
        metavar="NAME[,NAME...]",
        help="candidates to try: names of modelbench.toml, LiteLLM model names, reference, seed",
    )
    group.addoption(
        "--modelbench-repeats",
        type=_positive,
        default=None,
        metavar="N",
        help="attempts of each candidate at each case (default: 1)",
    )
    group.addoption(
        "--modelbench-results",
        default=None,
        metavar="DIR",
        help="where results are kept (default: results below the root folder)",
    )
    group.addoption(
        "--modelbench-note",
        default="",
        metavar="TEXT",
        help="a note that stands with this run's results, such as how a model was served",
    )
    group.addoption(
        "--modelbench-fresh",
        action="store_true",
        help="run every selected cell again; what is stored is superseded, not deleted",
    )
    group.addoption(
        "--modelbench-rerun-stale",
        action="store_true",
        help="run cells again whose check changed and whose evidence is gone",
    )
    group.addoption(
        "--modelbench-plan",
        action="store_true",
        help="list what would run, be graded again or be replayed, and why; run nothing",
    )
    group.addoption(
        "--modelbench-fault-retries",
        type=_natural,
        default=1,
        metavar="N",
        help="how often a faulted cell is tried again at the end of the queue (default: 1)",
    )
    group.addoption(
        "--modelbench-budget",
        type=_dollars,
        default=None,
        metavar="USD",
        help="begin no more cells when this run has cost so much; the rest is not run, exit 1",
    )
    group.addoption(
        "--modelbench-budget-tokens",
        type=_positive,
        default=None,
        metavar="N",
        help="begin no more cells when this run has used so many tokens",
    )
    group.addoption(
        "--modelbench-isolation",
        type=_level,
        default="auto",
        metavar="LEVEL",
        help="auto, strict (refuse to run below a box), or the name of a level",
    )
    group.addoption(
        "--modelbench-fail-unsolved",
        action="store_true",
        help="report a verdict that is not a pass as a failure",
    )
    _add_cases(group)
    _add_report(group)
    parser.addini(MODELS_INI, "candidates that a run without --models tries", type="args")
    parser.addini(CASES_INI, "folders that hold packs (default: cases)", type="args")


def _add_cases(group: pytest.OptionGroup) -> None:
    """Declare which cases of the packs make up the grid."""
    group.addoption(
        "--modelbench-split",
        choices=["dev", "eval"],
        default=None,
        help="a fixed third of all cases (dev) to tune on, or the others (eval) to measure on",
    )
    group.addoption(
        "--modelbench-sample",
        type=_positive,
        default=None,
        metavar="N",
        help="try N cases of each pack; a larger sample of the same seed contains the smaller one",
    )
    group.addoption(
        "--modelbench-sample-seed",
        type=_natural,
        default=None,
        metavar="S",
        help="which sample it is (default: 0)",
    )
    group.addoption(
        "--modelbench-sample-per",
        default=None,
        metavar="TAG",
        help="draw N cases of each value of a tag (TAG:VALUE or TAG=VALUE)",
    )
    group.addoption(
        "--modelbench-exclude-seen",
        action="store_true",
        help="leave out cases that stored runs have tried, and those of their groups",
    )


def _add_report(group: pytest.OptionGroup) -> None:
    """Declare what is made of the results, and what they are held to."""
    group.addoption(
        "--modelbench-report",
        type=_report,
        action="append",
        default=[],
        metavar="FILE",
        help="write the report to FILE.md or FILE.json as well",
    )
    group.addoption(
        "--modelbench-baseline",
        default="",
        metavar="NAME",
        help="compare each candidate with this one, instead of all pairs",
    )
    group.addoption(
        "--modelbench-interval",
        choices=["wilson", "jeffreys"],
        default="wilson",
        help="the interval of a pass rate at one repeat (default: wilson)",
    )
    group.addoption(
        "--modelbench-midp",
        action="store_true",
        help="decide pairs by the mid-p at one repeat: more power, no guarantee of the level",
    )
    group.addoption(
        "--modelbench-gate",
        action="append",
        default=[],
        metavar="RULE",
        help="hold the run to a rule, such as floor:NAME:0.6, not-worse-by:5:NAME:baseline=OTHER, "
        "or one named in pyproject.toml; exit 10 fail, 11 inconclusive, 12 incomplete",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the fixtures; they cost nothing until a test asks for one."""
    pluginmanager.register(fixtures, "modelbench-fixtures")


@pytest.hookimpl(tryfirst=True)  # before xdist turns -n into workers
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep a plan in one process: it is made, selected from and printed without workers."""
    if config.getoption("modelbench_plan") and hasattr(config.option, "numprocesses"):
        config.option.numprocesses = None
        config.option.dist = "no"
        config.option.tx = []


# Last, so that the cache and xdist's session are there.
@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take part only where packs are to be tried; a worker does as its controller says."""
    config.addinivalue_line(
        "markers", "modelbench(pack, cases): try these cases of a pack; set on every pack's items"
    )
    workerinput = getattr(config, "workerinput", None)
    if workerinput is not None:
        if "modelbench" in workerinput:
            from pytest_modelbench.worker import join

            join(config, workerinput["modelbench"])
    elif _concerned(config):
        from pytest_modelbench.controller import take_charge

        take_charge(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep pytest out of the reference solutions: their tests and conftest.py are work to grade."""
    if collection_path.name == SOLUTIONS and collection_path.parent == root_of(config):
        return True
    return None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a pack's folder as a pack, so that pytest never enters its seeds and checks."""
    if (path / MANIFEST).is_file():
        if plan_key not in parent.config.stash:
            parent.config.stash.setdefault(passed_over_key, []).append(path.name)
        return PackDir.from_parent(parent, path=path)
    return None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Say why nothing was collected where packs are all that there is."""
    packs = [] if config.getoption("lf", False) else config.stash.get(passed_over_key, [])
    if packs and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        terminalreporter.write_line(
            f"modelbench: packs and no candidate to try them: {', '.join(packs)}; "
            "name one with --models, and other tests by their path"
        )


# First, so that the id of a user's item begins with its cell.
@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the shipped suite its cells, and users' own tests those that they are marked with."""
    if plan_key not in metafunc.config.stash:
        return
    if is_pack_test(metafunc):
        parametrize(metafunc)
    elif metafunc.definition.get_closest_marker(MARK) is not None:
        usertests.parametrize(metafunc)


def root_of(config: pytest.Config) -> Path:
    """Return the project's folder: where modelbench.toml, packs and results are.

    Without an ini file pytest takes the folder that its arguments share, a pack's perhaps; the
    project is then where it was started, or the nearest folder above with a modelbench.toml.
    """
    if config.inipath is not None:
        return config.rootpath
    from pytest_modelbench.settings import project_root

    return project_root(config.invocation_params.dir)


def _concerned(config: pytest.Config) -> bool:
    """Tell cheaply whether this run has to do with packs."""
    if config.getoption("models") or config.getini(MODELS_INI):
        return True
    if any(pack_above(_path(config, arg)) is not None for arg in config.args):
        return True
    if not (config.getoption("lf", False) or config.getoption("modelbench_plan")):
        return False
    folders = config.getini(CASES_INI) or ["cases"]
    return any((root_of(config) / folder).is_dir() for folder in folders)


def _path(config: pytest.Config, arg: str) -> Path:
    return config.invocation_params.dir / arg.partition("::")[0]
