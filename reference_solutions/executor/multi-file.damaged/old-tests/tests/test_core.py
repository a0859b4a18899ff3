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
