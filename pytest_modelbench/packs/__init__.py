"""What is measured with: packs, their cases and the references that prove them."""
