from __future__ import annotations

import math
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_modelbench.checks import wire, worker


def no_handle(value: object) -> int | None:
    return None


def refuse_handle(number: int, name: str) -> object:
    raise wire.Malformed("no handle here")


def to_worker(value: object) -> Any:
    """Send a value the way to the box: encoded here, decoded by the worker's own code."""
    return worker._Decoder(wire.encode(value, no_handle), {}).value()


def from_worker(value: object, note: Any = lambda value, name: None) -> object:
    """Send a value the way from the box: encoded by the worker's own code, decoded here."""
    numbers: dict[int, int] = {}
    encoder = worker._Encoder(lambda thing: numbers.setdefault(id(thing), len(numbers) + 1))
    encoder.value(value)
    return wire.decode(bytes(encoder.out), lambda number, name: f"<{name}>", note)


def same(left: object, right: object) -> bool:
    """Equal in type and value, all the way down; nan is nan and -0.0 is not 0.0."""
    return form(left) == form(right)


def form(value: object) -> str:
    """Write a value so that two texts are equal only for the same value, types and order."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return f"{kind}({[(form(key), form(content)) for key, content in value.items()]})"
    if isinstance(value, list | tuple):
        return f"{kind}({[form(item) for item in value]})"
    if isinstance(value, set | frozenset):
        return f"{kind}({sorted(form(item) for item in value)})"
    return f"{kind}({value!r})"


any_text = st.text(alphabet=st.characters(), max_size=20)  # surrogates among them
hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | any_text
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=8,
)
plain = st.recursive(
    hashable | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(hashable, inner, max_size=5)
        | st.sets(hashable, max_size=5)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_data_arrives_unchanged_in_both_directions(value: object) -> None:
    assert same(from_worker(value), value)
    assert same(to_worker(value), value)


def test_integers_of_any_size_cross() -> None:
    for number in (0, -1, 127, 128, -128, -129, 2**64, -(2**64), 2**40_000):
        assert from_worker(to_worker(number)) == number


def test_odd_floats_cross() -> None:
    values = [math.inf, -math.inf, -0.0, 5e-324]
    assert repr(from_worker(to_worker(values))) == repr(values)
    arrived = from_worker(math.nan)
    assert isinstance(arrived, float)
    assert math.isnan(arrived)


def test_two_lone_surrogates_do_not_become_one_character() -> None:
    text = "\ud83d\ude00"
    assert from_worker(to_worker(text)) == text
    assert len(text) == 2


class Rigged(int):
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 5

    def __index__(self) -> int:
        return 5

    def to_bytes(self, *arguments: Any, **keywords: Any) -> bytes:
        return b"\x05"


def test_a_subclass_crosses_as_its_base_value_with_its_name_beside_it() -> None:
    noted: list[tuple[object, str]] = []
    arrived = from_worker(Rigged(3), lambda value, name: noted.append((value, name)))
    assert type(arrived) is int
    assert arrived == 3
    assert noted == [(3, "Rigged")]


class Chameleon:
    __class__: Any = property(lambda self: int)


def test_an_object_that_claims_to_be_an_integer_is_a_handle() -> None:
    assert from_worker([Chameleon()]) == ["<Chameleon>"]


def test_a_set_or_dict_with_objects_for_keys_is_a_handle() -> None:
    assert from_worker([{object()}, {(1, object()): 2}, frozenset({object()})]) == [
        "<set>",
        "<dict>",
        "<frozenset>",
    ]


@pytest.mark.parametrize("way", [to_worker, from_worker])
def test_cyclic_and_deep_values_are_refused(way: Any) -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    deep: object = 1
    for _ in range(5000):
        deep = (deep,)
    for value in (cyclic, deep):
        with pytest.raises((wire.Oversized, worker._Refused), match="nested deeper"):
            way(value)


@pytest.mark.parametrize("value", [[0] * (wire.MAX_NODES + 1), b"x" * (wire.MAX_MESSAGE + 1)])
def test_the_worker_refuses_what_is_too_large(value: object) -> None:
    with pytest.raises(worker._Refused, match="larger than"):
        from_worker(value)


def test_callbacks_and_objects_cannot_be_sent() -> None:
    for value in (print, object(), [lambda: 1]):
        with pytest.raises(wire.Unsendable, match="cannot cross into the box"):
            wire.encode(value, no_handle)


def test_the_limits_are_the_same_on_both_sides() -> None:
    for name in ("MAX_MESSAGE", "MAX_DEPTH", "MAX_NODES", "MAX_NAME"):
        assert getattr(wire, name) == getattr(worker, name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"?",
        b"NN",
        b"I",
        b"I\xff\xff\xff\xff",
        b"L\x00\x00\x00\x02N",
        b"L\xff\xff\xff\xffN",
        b"S\x00\x00\x00\x01\xff",
        b"D\x00",
        b"E\x00\x00\x00\x01L\x00\x00\x00\x00",
        b"E\x00\x00\x00\x02NN",
        b"M\x00\x00\x00\x02NNNN",
        b"X\x00\x00\x00\x01aN",
        b"X\x00\x00\x00\x01aX\x00\x00\x00\x01bI\x00\x00\x00\x01\x01",
        b"X\x00\x00\x00\xc9" + b"a" * 201 + b"I\x00\x00\x00\x01\x01",
        b"X\x00\x00\x00\x01aH\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00",
        b"U\x00\x00\x00\x01" * 101 + b"N",
        b"U\x00\x00\x00\x01" * 100_000 + b"N",
    ],
)
def test_what_is_not_exactly_one_value_is_malformed(data: bytes) -> None:
    with pytest.raises(wire.Malformed):
        wire.decode(data, refuse_handle)


def test_a_message_longer_than_the_limit_is_refused_at_its_head() -> None:
    with pytest.raises(wire.Malformed, match="at most"):
        wire.frame_length(struct.pack(">I", wire.MAX_MESSAGE + 1))


tags = st.sampled_from([b"N", b"T", b"F", b"I", b"D", b"C", b"S", b"B", b"L", b"U", b"E", b"Z"])
noise = st.lists(
    tags
    | st.sampled_from([b"M", b"X", b"H"])
    | st.integers(0, 3).map(lambda count: struct.pack(">I", count))
    | st.binary(max_size=9),
    max_size=40,
).map(b"".join)


@settings(max_examples=500)
@given(noise)
def test_the_decoder_gives_data_or_says_malformed_whatever_comes(data: bytes) -> None:
    try:
        value = wire.decode(data, lambda number, name: ("handle", number, name))
    except wire.Malformed:
        return
    assert len(repr(value)) < 100 * len(data)


@given(plain, st.data())
def test_a_damaged_message_gives_data_or_says_malformed(value: object, data: st.DataObject) -> None:
    message = bytearray(wire.encode(value, no_handle))
    for _ in range(data.draw(st.integers(1, 3))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    try:
        wire.decode(bytes(message), lambda number, name: None)
    except wire.Malformed:
        return


def test_the_memory_that_a_message_becomes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # Empty sets are the dearest values for their bytes.
    monkeypatch.setattr(wire, "MAX_NODES", 10_000)
    data = b"L" + struct.pack(">I", 100_000) + b"E\x00\x00\x00\x00" * 100_000
    tracemalloc.start()
    try:
        with pytest.raises(wire.Malformed, match="more than 10000 values"):
            wire.decode(data, refuse_handle)
        assert tracemalloc.get_traced_memory()[1] < 300 * 10_000
    finally:
        tracemalloc.stop()
