"""A wiki that is edited by tools, with revisions and conflicts. Import from the modules."""
