"""What an attempt raises, and what it makes a record of."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from pytest_modelbench import attempt as module
from pytest_modelbench.attempt import Task, attempt
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import Candidate, Cell, Identity, Outcome
from pytest_modelbench.store.evidence import Evidence


class Late:
    """An attribute during whose making something happens."""

    def __init__(self, what: type[BaseException]) -> None:
        self.what = what

    def __set_name__(self, owner: type, name: str) -> None:
        raise self.what


@pytest.mark.parametrize("what", [KeyboardInterrupt, KeyError])
def test_an_interrupt_while_a_class_is_made_is_no_fault(
    case: Case,
    services: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: type[BaseException],
) -> None:
    """Python 3.11 makes a RuntimeError of whatever comes there."""

    def making(name: str) -> NoReturn:
        type("Made", (), {"attribute": Late(what)})
        raise AssertionError

    monkeypatch.setattr(module, "protocol_named", making)
    candidate = Candidate(name="reference", agent="reference")
    identity = Identity(task="t", check="c", candidate="m")
    task = Task(Cell("small", "calc", "reference", 1), case, candidate, identity, "run1")
    if what is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            attempt(task, services, Evidence(tmp_path / "results"))
        return
    record = attempt(task, services, Evidence(tmp_path / "results"))
    assert record.outcome is Outcome.FAULT
    assert record.fault is not None
    assert record.fault.kind in ("unexpected-RuntimeError", "unexpected-KeyError")
