"""Checks: separate grading, and the verdict that its evidence gives."""
