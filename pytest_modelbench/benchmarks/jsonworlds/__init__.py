"""Worlds of JSON: tools act on records, assertions judge the end. Import from the modules."""
