"""The filter of system calls: a small program for the kernel, made here, without a package.

What it refuses, programs do not need; it is where holes of the kernel were most often found. A
refused call fails with EPERM, so that a program can say so. Layout: ``seccomp(2)``, ``filter.h``.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping
from enum import StrEnum

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH of the machines whose numbers are known here."""

_X32 = 0x40000000
_NEW_USER = 0x10000000

# Numbers from asm/unistd_64.h and asm-generic/unistd.h.
_REFUSED: Mapping[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
}
_SOCKET = (41, 198)
_LISTEN = (50, 201)
_FLAGS_AT: Mapping[tuple[int, int], int] = {(44, 206): 3, (46, 211): 2, (307, 269): 3}
"""sendto, sendmsg, sendmmsg: which argument holds the flags."""

_CLONE = (56, 220)
_CLONE3 = 435

_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_INET, _INET6, _STREAM, _OF_TYPE, _TCP = 2, 10, 1, 0xF, 6
_FAST_OPEN = 0x20000000
_ALLOW = 0x7FFF0000
_ERROR = 0x00050000


class Sockets(StrEnum):
    """Which sockets a program may make; pairs always."""

    ALL = "all"
    NONE = "none"
    CONNECT = "connect"
    """Those that connect by TCP, which rules of Landlock can hold to a port."""


def supported() -> bool:
    """Tell whether the numbers of this machine's system calls are known."""
    return platform.machine() in _ARCHITECTURES


def program(sockets: Sockets = Sockets.ALL) -> bytes:
    """Return the filter for this machine.

    KeyError for a machine that is not ``supported``.
    """
    machine = platform.machine()
    column = list(_ARCHITECTURES).index(machine) if machine in _ARCHITECTURES else None
    if column is None:
        raise KeyError(machine)
    refuse = _step(_RETURN, _ERROR | errno.EPERM)
    steps = [
        # Another architecture has other numbers, and would be a way around all that follows.
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, _ARCHITECTURES[machine], yes=1),
        refuse,
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32, no=1),
        refuse,
        _step(_EQUAL, _CLONE3, no=1),
        # Its flags lie in memory, out of a filter's sight; libraries fall back to clone.
        _step(_RETURN, _ERROR | errno.ENOSYS),
        _step(_EQUAL, _CLONE[column], no=4),
        _step(_LOAD, _FIRST_ARGUMENT_AT),
        _step(_HAS_BITS, _NEW_USER, no=1),
        refuse,
        _step(_RETURN, _ALLOW),
    ]
    refused = [numbers[column] for numbers in _REFUSED.values()]
    if sockets is Sockets.NONE:
        refused.append(_SOCKET[column])
    if sockets is Sockets.CONNECT:
        refused.append(_LISTEN[column])
        steps += _when(_SOCKET[column], _only_tcp(refuse))
        for numbers, argument in _FLAGS_AT.items():
            steps += _when(numbers[column], _no_fast_open(argument, refuse))
    for number in refused:
        steps += [_step(_EQUAL, number, no=1), refuse]
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _when(number: int, block: list[bytes]) -> list[bytes]:
    """Return the steps for one system call; the block returns on each of its ways."""
    return [_step(_EQUAL, number, no=len(block)), *block]


def _only_tcp(refuse: bytes) -> list[bytes]:
    """Return the steps that let a socket be made for TCP alone: not UDP, not a path, not MPTCP."""
    return [
        _step(_LOAD, _argument_at(0)),
        _step(_EQUAL, _INET, yes=2),
        _step(_EQUAL, _INET6, yes=1),
        refuse,
        _step(_LOAD, _argument_at(1)),
        _step(_AND, _OF_TYPE),
        _step(_EQUAL, _STREAM, yes=1),
        refuse,
        _step(_LOAD, _argument_at(2)),
        _step(_EQUAL, 0, yes=2),
        _step(_EQUAL, _TCP, yes=1),
        refuse,
        _step(_RETURN, _ALLOW),
    ]


def _no_fast_open(flags: int, refuse: bytes) -> list[bytes]:
    """Return the steps that refuse to connect by sending, which kernels forgot to ask rules of."""
    return [
        _step(_LOAD, _argument_at(flags)),
        _step(_HAS_BITS, _FAST_OPEN, no=1),
        refuse,
        _step(_RETURN, _ALLOW),
    ]


def _argument_at(which: int) -> int:
    return _FIRST_ARGUMENT_AT + 8 * which


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
