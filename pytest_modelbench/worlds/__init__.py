"""Worlds: seed repository, work tree, box, harvest."""
