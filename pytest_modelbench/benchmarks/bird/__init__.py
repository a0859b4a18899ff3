"""BIRD: questions to a database, answered in SQL. Import from the modules."""
