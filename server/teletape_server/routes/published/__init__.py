"""Routes of published functions."""
