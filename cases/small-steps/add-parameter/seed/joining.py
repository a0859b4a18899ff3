def join_names(names):
    """Return the names as one text."""
    return ", ".join(names)
