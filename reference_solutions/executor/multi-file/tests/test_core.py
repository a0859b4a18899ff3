import pytest

from herald.core import announce, announce_all


def test_announce():
    assert announce("Ada") == "Please welcome Ada."


def test_greeting():
    assert announce(" Ada ", greeting="Hail") == "Hail Ada."


def test_blank_name():
    with pytest.raises(ValueError):
        announce("  ")


def test_announce_all():
    assert announce_all(["Ada", "Grace"]) == ["Please welcome Ada.", "Please welcome Grace."]


def test_shout():
    assert announce("Ada", shout=True) == "PLEASE WELCOME ADA!"
    assert announce("Ada", greeting="Hail", shout=True) == "HAIL ADA!"


def test_announce_all_shouts():
    lines = announce_all(["Ada", "Grace"], shout=True)
    assert lines == ["PLEASE WELCOME ADA!", "PLEASE WELCOME GRACE!"]
