"""Cases from a table of what happened. Import from the modules."""
