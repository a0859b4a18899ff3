"""Measurements and their report."""
