"""The version of the agent loop, part of every looping candidate's identity."""

AGENT_VERSION = "1"
"""Raise it when what a model is shown, or how it is treated, changes: stored verdicts are old then.

A test holds a hash of the prompts and the tools' texts against it.
"""
