"""Durations for people."""
