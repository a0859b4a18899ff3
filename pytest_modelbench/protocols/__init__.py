"""Protocols: what each kind of task brings. Import from the modules."""
