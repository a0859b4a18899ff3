"""The version of the benchmarks' loops, part of the identity of every candidate that meets one."""

from __future__ import annotations

LOOPS_VERSION = "1"
"""Raised when a model is treated otherwise."""
