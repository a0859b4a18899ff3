"""Benchmarks: what each brings of its own — cases, world, rules. Import from the modules."""
