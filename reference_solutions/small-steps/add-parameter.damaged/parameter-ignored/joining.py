def join_names(names, separator=", "):
    """Return the names as one text."""
    return ", ".join(names)
