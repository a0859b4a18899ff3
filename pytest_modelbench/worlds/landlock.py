"""The Landlock level: for machines on which nobody may make user namespaces.

The kernel holds the command to a list of folders, takes the network and signals to others from it,
and closes the memory and the environment of other processes. It is the portable level beside that:
paths are the host's, the sweep of survivors is the reaper's, and the repository's configuration is
not pinned. No package is needed. Decisions and limits: ``docs/design/box.md``.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_modelbench.worlds import seccomp
from pytest_modelbench.worlds.box import BoxSpec
from pytest_modelbench.worlds.layout import hidden_folders, program_folders
from pytest_modelbench.worlds.portable import PortableBox

OLDEST = 6
"""The first version that keeps signals and abstract sockets within (Linux 6.12)."""

_CREATE_RULESET = 444
_VERSION = 1

# Bits of linux/landlock.h, in the order of the versions that brought them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_ALL = (1 << 16) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_TCP = 0b11
_CONNECT_TCP = 0b10
_SCOPES = 0b11

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICES = ("null", "zero", "full", "random", "urandom")
_OF_ETC = (
    *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("passwd", "group", "nsswitch.conf", "hosts"),
)
_OF_PROC = ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")


def version() -> int:
    """Return the version of Landlock that this kernel has; 0 for none, or switched off."""
    if sys.platform != "linux":
        return 0
    found = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    return max(0, int(found))


class LandlockBox(PortableBox):
    """Run commands as our own user, held to their own files, without network."""

    level = "landlock"

    def _confinement(self, spec: BoxSpec, places: Mapping[str, str]) -> str:
        """Return what the command is held to, as the reaper takes it."""
        rules = dict(_system())
        writable = {mount.target for mount in spec.mounts if mount.writable}
        mounted = {mount.target for mount in spec.mounts}
        for target, source in places.items():
            rights = _ALL if target in writable or target not in mounted else _READ
            rules[source] = rules.get(source, 0) | rights
        sockets = seccomp.Sockets.NONE if spec.connect is None else seccomp.Sockets.CONNECT
        return json.dumps(
            {
                "files": _ALL,
                "network": _TCP,
                "scopes": _SCOPES,
                "rules": [
                    [path, rights if Path(path).is_dir() else rights & _OF_FILES]
                    for path, rights in rules.items()
                ],
                "ports": [] if spec.connect is None else [[spec.connect, _CONNECT_TCP]],
                # Landlock knows nothing of UDP, nor of sockets by path (a container daemon's).
                "filter": seccomp.program(sockets).hex(),
            }
        )


@functools.cache
def _system() -> Mapping[str, int]:
    """Return the rights that every command has, by path."""
    rules: dict[str, int] = {}
    programs = program_folders()
    hidden = hidden_folders(programs)
    for folder in programs:
        _allow(folder, hidden, rules)
    for name in _OF_ETC:
        rules[f"/etc/{name}"] = _READ
    for name in _DEVICES:
        rules[f"/dev/{name}"] = _READ_FILE | _WRITE_FILE
    for name in _OF_PROC:
        rules[f"/proc/{name}"] = _READ_FILE
    return {path: rights for path, rights in rules.items() if Path(path).exists()}


def _allow(folder: str, hidden: list[str], rules: dict[str, int]) -> None:
    """Allow a folder to be read, or where something in it is hidden, its other entries.

    A right goes down to all that is below a folder. So the names in a folder with something hidden
    can be listed, which Python needs, down to those of what is hidden, and nothing there be read.
    """
    if folder in hidden:
        return
    if not any(other.startswith(f"{folder}/") for other in hidden):
        rules[folder] = _READ
        return
    rules[folder] = _READ_DIR
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _allow(entry.path, hidden, rules)
            else:
                rules[entry.path] = _READ
