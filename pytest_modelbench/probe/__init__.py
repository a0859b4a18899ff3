"""What a candidate's server can do, found by asking it. Import from the modules."""
