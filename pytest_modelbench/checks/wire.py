"""The messages between the trusted process and the boxed worker: encoding, decoding, limits.

A message is a 4-byte big-endian length and one value. A value is one tag byte and its content, so
that a reader meets a length before it meets the thing, and can refuse it:

    N T F                     None, True, False
    I length bytes            int, two's complement, big-endian
    D 8 bytes, C 16 bytes     float, complex
    S length bytes            str as UTF-8, lone surrogates kept
    B length bytes            bytes
    L U E Z count values      list, tuple, set, frozenset
    M count key value …       dict, in order
    X name value              a value of a subclass: its type's name, and it as its base type
    H number name             a handle: a thing that stays in the worker, and its type's name

The other end of this encoding stands in ``worker.py``: the two sides share no code, for that one
runs beside the candidate's. Nothing that arrives is more than data: no class is looked up by name,
nothing is called, and whatever breaks the format or a limit is ``Malformed``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

MAX_MESSAGE = 8 * 2**20
"""Bytes of one message."""
MAX_DEPTH = 100
"""How deep values may be nested."""
MAX_NODES = 1_000_000
"""Values in one message; bounds the memory that a message becomes."""
MAX_NAME = 200
"""Characters of a type's name."""

_COUNT = struct.Struct(">I")
_HANDLE = struct.Struct(">Q")
_FLOAT = struct.Struct(">d")
_COMPLEX = struct.Struct(">dd")


Items = TypeVar("Items", set[object], frozenset[object])


class Malformed(Exception):
    """What arrived is not a message, or breaks a limit."""


class Unsendable(Exception):
    """A value has no encoding: it is no plain value and no handle."""


class Oversized(Exception):
    """A value to be sent breaks a limit, or holds itself."""


def encode(value: object, handle_number: Callable[[object], int | None]) -> bytes:
    """Return the encoding of a value.

    ``handle_number`` gives the number of what is a handle and None for all else. Raises
    ``Unsendable`` for what cannot cross and ``Oversized`` for too deep, too large or cyclic.
    """
    out = bytearray()
    _encode(value, out, MAX_DEPTH, handle_number)
    return bytes(out)


def decode(
    data: bytes,
    make_handle: Callable[[int, str], object],
    note_type: Callable[[object, str], None] = lambda value, name: None,
) -> object:
    """Return the one value that ``data`` encodes.

    ``note_type`` is told each value that crossed as its base type, with its real type's name.
    Raises ``Malformed`` for anything that is not exactly one value within the limits.
    """
    return _Reader(data, make_handle, note_type).only()


def frame(payload: bytes) -> bytes:
    """Return a message: the length, then the value. Raises ``Oversized``."""
    if len(payload) > MAX_MESSAGE:
        raise Oversized(f"a message of {len(payload)} bytes; at most {MAX_MESSAGE} cross")
    return _COUNT.pack(len(payload)) + payload


def frame_length(head: bytes) -> int:
    """Return the length that the 4 first bytes of a message announce. Raises ``Malformed``."""
    length: int = _COUNT.unpack(head)[0]
    if length > MAX_MESSAGE:
        raise Malformed(f"a message of {length} bytes; at most {MAX_MESSAGE} cross")
    return length


def _encode(
    value: object, out: bytearray, depth: int, handle_number: Callable[[object], int | None]
) -> None:
    if depth < 0:
        raise Oversized(f"nested deeper than {MAX_DEPTH}, or holds itself")
    if len(out) > MAX_MESSAGE:
        raise Oversized(f"larger than {MAX_MESSAGE} bytes")
    kind = type(value)
    if value is None:
        out += b"N"
    elif value is True:
        out += b"T"
    elif value is False:
        out += b"F"
    elif (number := handle_number(value)) is not None:
        out += b"H" + _HANDLE.pack(number) + _COUNT.pack(0)
    elif isinstance(value, int):
        raw = int(value).to_bytes(int(value).bit_length() // 8 + 1, "big", signed=True)
        out += b"I" + _COUNT.pack(len(raw)) + raw
    elif isinstance(value, float):
        out += b"D" + _FLOAT.pack(value)
    elif isinstance(value, complex):
        out += b"C" + _COMPLEX.pack(value.real, value.imag)
    elif isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        out += b"S" + _COUNT.pack(len(raw)) + raw
    elif isinstance(value, bytes):
        out += b"B" + _COUNT.pack(len(value)) + value
    elif isinstance(value, dict):
        out += b"M" + _COUNT.pack(len(value))
        for key, content in value.items():
            _encode(key, out, depth - 1, handle_number)
            _encode(content, out, depth - 1, handle_number)
    elif isinstance(value, list | tuple | set | frozenset):
        tag = {list: b"L", tuple: b"U", set: b"E", frozenset: b"Z"}
        base = next(base for base in tag if isinstance(value, base))
        out += tag[base] + _COUNT.pack(len(value))
        for item in value:
            _encode(item, out, depth - 1, handle_number)
    else:
        raise Unsendable(
            f"{kind.__name__} cannot cross into the box: only None, bool, int, float, complex, "
            "str, bytes, list, tuple, dict, set, frozenset and handles can (no callbacks)"
        )


class _Reader:
    """Read one value; every length is checked against what is left before anything is made."""

    def __init__(
        self,
        data: bytes,
        make_handle: Callable[[int, str], object],
        note_type: Callable[[object, str], None],
    ) -> None:
        self._data = data
        self._at = 0
        self._nodes = 0
        self._make_handle = make_handle
        self._note_type = note_type

    def only(self) -> object:
        value = self._value(MAX_DEPTH)
        if self._at != len(self._data):
            raise Malformed(f"{len(self._data) - self._at} bytes after the value")
        return value

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise Malformed("ends within a value")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def _count(self) -> int:
        count: int = _COUNT.unpack(self._take(4))[0]
        if count > len(self._data) - self._at:
            raise Malformed(f"announces {count}, and {len(self._data) - self._at} bytes are left")
        return count

    def _text(self) -> str:
        try:
            return self._take(self._count()).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise Malformed("text that is not UTF-8") from None

    def _name(self) -> str:
        name = self._text()
        if len(name) > MAX_NAME:
            raise Malformed(f"a type's name of {len(name)} characters")
        return name

    def _value(self, depth: int, *, keyed: bool = False, subclass: bool = False) -> object:
        """Read a value; ``keyed``: it must have a hash; ``subclass``: it must be no X and no H."""
        if depth < 0:
            raise Malformed(f"nested deeper than {MAX_DEPTH}")
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Malformed(f"more than {MAX_NODES} values")
        tag = self._take(1)
        if tag == b"I":
            return int.from_bytes(self._take(self._count()), "big", signed=True)
        if tag == b"S":
            return self._text()
        if tag == b"D":
            return float(_FLOAT.unpack(self._take(8))[0])
        if tag in _CONSTANTS and not subclass:
            return _CONSTANTS[tag]
        if tag == b"B":
            return self._take(self._count())
        if tag == b"C":
            return complex(*_COMPLEX.unpack(self._take(16)))
        if tag == b"U":
            return tuple(self._values(depth, keyed))
        if tag == b"Z":
            return self._distinct(frozenset(items := self._values(depth, True)), items)
        if tag == b"X" and not subclass:
            name = self._name()
            value = self._value(depth, keyed=keyed, subclass=True)
            self._note_type(value, name)
            return value
        if keyed:
            raise Malformed("a key or a set's item without a hash")
        if tag == b"L":
            return self._values(depth, False)
        if tag == b"E":
            return self._distinct(set(items := self._values(depth, True)), items)
        if tag == b"M":
            return self._mapping(depth)
        if tag == b"H" and not subclass:
            return self._make_handle(_HANDLE.unpack(self._take(8))[0], self._name())
        raise Malformed(f"unknown tag {tag!r}")

    def _values(self, depth: int, keyed: bool) -> list[object]:
        return [self._value(depth - 1, keyed=keyed) for _ in range(self._count())]

    def _mapping(self, depth: int) -> dict[object, object]:
        result: dict[object, object] = {}
        count = self._count()
        for _ in range(count):
            key = self._value(depth - 1, keyed=True)
            result[key] = self._value(depth - 1)
        if len(result) != count:
            raise Malformed("a dict with one key twice")
        return result

    @staticmethod
    def _distinct(result: Items, items: list[object]) -> Items:
        if len(result) != len(items):
            raise Malformed("a set with one item twice")
        return result


_CONSTANTS: dict[bytes, object] = {b"N": None, b"T": True, b"F": False}
