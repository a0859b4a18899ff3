"""What the ``modelbench`` command does, a module each."""
