"""The books of a small company, kept by tools and a policy. Import from the modules."""
