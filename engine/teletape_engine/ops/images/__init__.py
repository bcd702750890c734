"""Ops for images [..., height, width, channels], one group a file."""
