"""Repeated batches: recognised by their structure, and run as plans, as functions are."""
