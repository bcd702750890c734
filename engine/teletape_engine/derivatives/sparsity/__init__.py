"""Sparse derivatives: their structure read off the tape, lines that may share a product, and the products."""
