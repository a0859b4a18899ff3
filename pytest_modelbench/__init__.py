"""Turn benchmarks of models and agents into a pytest suite."""
