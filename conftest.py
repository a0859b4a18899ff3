"""Give the tests pytest's own harness for testing plugins."""

pytest_plugins = ["pytester"]
