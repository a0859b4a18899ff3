"""From what is stored to a report: counts, a scorecard, and its forms as text and data."""
