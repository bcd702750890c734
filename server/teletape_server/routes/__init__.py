"""Thin endpoints, one file a resource. What they share is `admission`."""
