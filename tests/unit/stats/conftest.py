"""Settings of the property tests."""

from hypothesis import settings

# The first call of a function imports scipy, which takes longer than any deadline worth having.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
