"""Candidates: what is measured, and the agent that it works through. Import from the modules."""
