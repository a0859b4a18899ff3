"""The small apps that BFCL's conversations act on, one module each. Import from the modules."""
