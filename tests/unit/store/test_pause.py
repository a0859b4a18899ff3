from __future__ import annotations

import gc

import pytest

from pytest_modelbench.store.pause import collector_paused


def test_the_collector_is_off_within_and_on_again_whatever_happens() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_kept_is_never_walked() -> None:
    gc.collect()
    frozen = gc.get_freeze_count()
    try:
        with collector_paused(keep=True):
            kept = [[number] for number in range(5000)]
        assert gc.get_freeze_count() >= frozen + len(kept)
        assert len(gc.get_objects()) < len(kept)
    finally:
        gc.unfreeze()
