"""The worker in the box: import the candidate's modules and do what the trusted process asks.

This file is whole in itself. Its text is handed to a bare interpreter in the box, beside code that
may be hostile, so it imports nothing of this project and is trusted with nothing: it knows no
expected value, and the trusted side checks every byte of its answers. What it does promise is to
serve an honest candidate well, also one that prints, changes folder or patches builtins.

The pack's environment, where there is one, is its argument. Its first message, ``0``, says that it
is ready; then each request is ``(number, verb, arguments…)`` and gets one answer:
``(number, "ok", value)``, ``(number, "raised", base, type, text, arguments, places, exception)`` or
``(number, "refused", why)`` for a value that breaks a limit of the wire (see ``wire.py``).
"""

from __future__ import annotations

import importlib
import os
import struct
import sys

TYPE_CHECKING = False  # the module ``typing`` is dear to import, and the worker starts often
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any  # Any: a thing of the candidate's, of which nothing is known

MAX_MESSAGE = 8 * 2**20
MAX_DEPTH = 100
MAX_NODES = 1_000_000
MAX_NAME = 200
MAX_TEXT = 10_000
MAP_BYTES = 2**20

_COUNT = struct.Struct(">I")
_HANDLE = struct.Struct(">Q")
_FLOAT = struct.Struct(">d")
_COMPLEX = struct.Struct(">dd")

# Taken before the candidate's code runs: it may replace any of these names in ``builtins``.
_type, _len, _str, _list, _tuple = type, len, str, list, tuple
_int, _float, _complex, _bytes, _dict, _set, _frozenset = (
    int, float, complex, bytes, dict, set, frozenset
)  # fmt: skip
_iter, _next, _range, _id, _getattr, _setattr = iter, next, range, id, getattr, setattr
_BaseException, _Exception, _StopIteration = BaseException, Exception, StopIteration
_mro_of = type.__dict__["__mro__"].__get__
_name_of = type.__dict__["__name__"].__get__
_BUILTIN_ERRORS = {
    id(value): name
    for name, value in vars(sys.modules["builtins"]).items()
    if isinstance(value, type) and issubclass(value, BaseException) and value.__name__ == name
}


class _Refused(Exception):
    """A value breaks a limit of the wire."""


class _Encoder:
    """Encode one answer; what is not plain goes into the worker's table and crosses as a handle."""

    def __init__(self, number_of: Callable[[object], int]) -> None:
        self.out = bytearray()
        self.nodes = 0
        self.number_of = number_of

    def value(self, value: object, depth: int = MAX_DEPTH) -> None:
        if depth < 0:
            raise _Refused(f"nested deeper than {MAX_DEPTH}, or holds itself")
        self.nodes += 1
        if self.nodes > MAX_NODES or _len(self.out) > MAX_MESSAGE:
            raise _Refused(f"larger than {MAX_MESSAGE} bytes or {MAX_NODES} values")
        kind = _type(value)
        write = _WRITERS.get(kind)
        if write is not None:
            write(self, value, depth)
            return
        for base in _mro_of(kind):
            write = _WRITERS.get(base)
            if write is not None:
                start = _len(self.out)
                self.out += b"X"
                self.text(_name_of(kind)[:MAX_NAME])
                write(self, _PLAIN[base](value), depth)
                if self.out[start + 5 + _COUNT.unpack_from(self.out, start + 1)[0]] == 72:
                    # Its content has no plain form, so the whole is a handle ("H").
                    del self.out[start:]
                    self.handle(value)
                return
        self.handle(value)

    def handle(self, value: object) -> None:
        self.out += b"H" + _HANDLE.pack(self.number_of(value))
        self.text(_name_of(_type(value))[:MAX_NAME])

    def text(self, text: str) -> None:
        self.raw(text.encode("utf-8", "surrogatepass"))

    def raw(self, raw: bytes) -> None:
        if _len(raw) > MAX_MESSAGE:
            raise _Refused(f"larger than {MAX_MESSAGE} bytes")
        self.out += _COUNT.pack(_len(raw))
        self.out += raw

    def none(self, value: None, depth: int) -> None:
        self.out += b"N"

    def boolean(self, value: bool, depth: int) -> None:
        self.out += b"T" if value else b"F"

    def integer(self, value: int, depth: int) -> None:
        self.out += b"I"
        self.raw(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))

    def real(self, value: float, depth: int) -> None:
        self.out += b"D" + _FLOAT.pack(value)

    def imaginary(self, value: complex, depth: int) -> None:
        self.out += b"C" + _COMPLEX.pack(value.real, value.imag)

    def string(self, value: str, depth: int) -> None:
        self.out += b"S"
        self.text(value)

    def octets(self, value: bytes, depth: int) -> None:
        self.out += b"B"
        self.raw(value)

    def sequence(self, value: list[object] | tuple[object, ...], depth: int) -> None:
        self.out += (b"L" if _type(value) is _list else b"U") + _COUNT.pack(_len(value))
        for item in value:
            self.value(item, depth - 1)

    def distinct(self, value: set[object] | frozenset[object], depth: int) -> None:
        for item in value:
            if not _has_plain_hash(item, depth):
                self.handle(value)
                return
        self.out += (b"E" if _type(value) is _set else b"Z") + _COUNT.pack(_len(value))
        for item in value:
            self.value(item, depth - 1)

    def mapping(self, value: dict[object, object], depth: int) -> None:
        for key in value:
            if not _has_plain_hash(key, depth):
                self.handle(value)
                return
        self.out += b"M" + _COUNT.pack(_len(value))
        for key, content in value.items():
            self.value(key, depth - 1)
            self.value(content, depth - 1)


_WRITERS: dict[type, Callable[..., None]] = {
    type(None): _Encoder.none,
    bool: _Encoder.boolean,
    int: _Encoder.integer,
    float: _Encoder.real,
    complex: _Encoder.imaginary,
    str: _Encoder.string,
    bytes: _Encoder.octets,
    list: _Encoder.sequence,
    tuple: _Encoder.sequence,
    dict: _Encoder.mapping,
    set: _Encoder.distinct,
    frozenset: _Encoder.distinct,
}
_REAL, _IMAG = complex.__dict__["real"].__get__, complex.__dict__["imag"].__get__
_DICT_ITEMS, _SET_ITER, _FROZENSET_ITER = dict.items, set.__iter__, frozenset.__iter__
# Read a subclass by the base type's own methods: what it overrides is not asked.
_ALL = slice(None)
_PLAIN: dict[type, Callable[..., object]] = {
    int: int.__int__,
    float: float.__float__,
    complex: lambda value: _complex(_REAL(value), _IMAG(value)),
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, _ALL),
    list: lambda value: list.__getitem__(value, _ALL),
    tuple: lambda value: tuple.__getitem__(value, _ALL),
    dict: lambda value: _dict(_list(_DICT_ITEMS(value))),
    set: lambda value: _set(_SET_ITER(value)),
    frozenset: lambda value: _frozenset(_FROZENSET_ITER(value)),
}
_SCALARS = {type(None), bool, int, float, complex, str, bytes}


def _has_plain_hash(value: object, depth: int) -> bool:
    """Tell whether a key or a set's item is plain, so that the other side can hash it."""
    if depth < 0:
        return False
    for base in _mro_of(_type(value)):
        if base in _SCALARS:
            return True
        if base is _tuple or base is _frozenset:
            items: Any = base
            return all(_has_plain_hash(item, depth - 1) for item in items.__iter__(value))
    return False


class _Decoder:
    """Decode one request; the trusted side made it, so there is little to check."""

    def __init__(self, data: bytes, things: dict[int, object]) -> None:
        self.data = data
        self.at = 0
        self.things = things

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        self.at += count
        return piece

    def count(self) -> int:
        count: int = _COUNT.unpack(self.take(4))[0]
        return count

    def value(self) -> Any:
        tag = self.take(1)
        if tag == b"N":
            return None
        if tag == b"T":
            return True
        if tag == b"F":
            return False
        if tag == b"I":
            return _int.from_bytes(self.take(self.count()), "big", signed=True)
        if tag == b"D":
            return _FLOAT.unpack(self.take(8))[0]
        if tag == b"C":
            return _complex(*_COMPLEX.unpack(self.take(16)))
        if tag == b"S":
            return self.take(self.count()).decode("utf-8", "surrogatepass")
        if tag == b"B":
            return self.take(self.count())
        if tag == b"H":
            number = _HANDLE.unpack(self.take(8))[0]
            self.count()
            return self.things[number]
        if tag == b"M":
            return {self.value(): self.value() for _ in _range(self.count())}
        items = [self.value() for _ in _range(self.count())]
        return {b"L": _list, b"U": _tuple, b"E": _set, b"Z": _frozenset}[tag](items)


class _Worker:
    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.writer = writer
        self.things: dict[int, object] = {}
        self.numbers: dict[int, int] = {}

    def serve(self) -> None:
        verbs = {name[3:]: _getattr(self, name) for name in dir(_Worker) if name.startswith("do_")}
        while True:
            number, verb, *arguments = _Decoder(self.receive(), self.things).value()
            answer: tuple[object, ...]
            try:
                answer = (number, "ok", verbs[verb](*arguments))
            except _BaseException as error:
                answer = self.raised(number, error)
            self.send(self.encoded(number, answer))

    def encoded(self, number: int, answer: tuple[object, ...]) -> bytearray:
        encoder = _Encoder(self.number_of)
        try:
            encoder.value(answer)
            if _len(encoder.out) <= MAX_MESSAGE:
                return encoder.out
            why = f"larger than {MAX_MESSAGE} bytes"
        except _Refused as refusal:
            why = _str(refusal)
        except _BaseException:
            why = "it cannot be read"
        encoder = _Encoder(self.number_of)
        encoder.value((number, "refused", why))
        return encoder.out

    def raised(self, number: int, error: BaseException) -> tuple[object, ...]:
        """Describe an exception: the first builtin type of its line, its name, text and place."""
        kind = _type(error)
        base = "Exception"
        for ancestor in _mro_of(kind):
            if _id(ancestor) in _BUILTIN_ERRORS:
                base = _BUILTIN_ERRORS[_id(ancestor)]
                break
        try:
            text = _str(error)[:MAX_TEXT]
            text = text if _type(text) is _str else ""
        except _BaseException:
            text = "(its text cannot be read)"
        arguments = None
        try:
            given = error.args
            encoder = _Encoder(self.number_of)
            encoder.value(given)
            if _type(given) is _tuple and _len(encoder.out) <= MAX_TEXT:
                arguments = given
        except _BaseException:
            pass
        places = []
        try:
            trace = error.__traceback__
            while trace is not None:
                code = trace.tb_frame.f_code
                if not code.co_filename.startswith("<"):
                    places.append(f"{code.co_filename[-200:]}:{trace.tb_lineno}")
                trace = trace.tb_next
        except _BaseException:
            pass
        name = _name_of(kind)[:MAX_NAME]
        return (number, "raised", base, name, text, arguments, places[-5:], error)

    def number_of(self, thing: object) -> int:
        number = self.numbers.get(_id(thing))
        if number is None:
            number = _len(self.numbers) + 1
            self.numbers[_id(thing)] = number
            self.things[number] = thing  # kept, so that the id stays its own
        return number

    def do_load(self, name: str) -> object:
        return importlib.import_module(name)

    def do_get(self, thing: object, name: str) -> object:
        return _getattr(thing, name)

    def do_set(self, thing: object, name: str, value: object) -> None:
        _setattr(thing, name, value)

    def do_call(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        keywords: dict[str, object],
    ) -> object:
        return function(*arguments, **keywords)

    def do_item(self, thing: Any, key: object) -> object:
        return thing[key]

    def do_setitem(self, thing: Any, key: object, value: object) -> None:
        thing[key] = value

    def do_delitem(self, thing: Any, key: object) -> None:
        del thing[key]

    def do_iter(self, thing: Any) -> object:
        return _Held(_iter(thing))

    def do_next(self, iterator: Any, most: int) -> tuple[list[object], bool]:
        """Return up to ``most`` items, and whether that was the end."""
        if _type(iterator) is not _Held:
            iterator = _Held(iterator)
        if iterator.error is not None:
            error, iterator.error = iterator.error, None
            raise error
        items: list[object] = []
        for _ in _range(most):
            try:
                items.append(_next(iterator.thing))
            except _StopIteration:
                return (items, True)
            except _BaseException as error:
                if not items:
                    raise
                iterator.error = error  # its turn is after the items that came before it
                break
        return (items, False)

    def do_map(
        self, function: Callable[..., object], inputs: list[tuple[object, ...]]
    ) -> list[object]:
        """Return the first results, as many as one message holds well; at least one."""
        results: list[object] = []
        size = 0
        for arguments in inputs:
            results.append(function(*arguments))
            encoder = _Encoder(self.number_of)
            encoder.value(results[-1])
            size += _len(encoder.out)
            if size > MAP_BYTES:
                break
        return results

    def do_matches(self, error: object, kind: object) -> bool:
        return kind in _mro_of(_type(error))

    def receive(self) -> bytes:
        return self.read(_COUNT.unpack(self.read(4))[0])

    def read(self, count: int) -> bytes:
        pieces: list[bytes] = []
        while count:
            piece = os_read(self.reader, count)
            if not piece:
                os_exit(0)
            pieces.append(piece)
            count -= _len(piece)
        return b"".join(pieces)

    def send(self, payload: bytearray) -> None:
        data = _COUNT.pack(_len(payload)) + payload
        while data:
            data = data[os_write(self.writer, data) :]


class _Held:
    """An iterator under a type that is never plain."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self.error: BaseException | None = None


os_read, os_write, os_exit = os.read, os.write, os._exit


def main() -> None:
    """Take the pipes away from where the candidate's prints go, set the path, and serve."""
    reader, writer = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    worker = _Worker(reader, writer)
    environment = sys.argv[1:]
    sys.dont_write_bytecode = True
    sys.argv = [""]
    # What python does in this folder: the folder first, then the standard library, then packages.
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 (pathlib is dear to import)
    if environment:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        sys.path.append(f"{environment[0]}/lib/{version}/site-packages")
    hello = _Encoder(worker.number_of)
    hello.value(0)
    worker.send(hello.out)
    worker.serve()


if __name__ == "__main__":
    main()
