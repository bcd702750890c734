"""Prices: what a batch would need and answer, from specs alone. Nothing is computed, and the session stays as it is."""
