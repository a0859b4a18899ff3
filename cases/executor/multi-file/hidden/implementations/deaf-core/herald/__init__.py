"""Announcements."""
