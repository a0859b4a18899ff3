"""A folder of documents → a cited, linked wiki. Import from the modules."""
