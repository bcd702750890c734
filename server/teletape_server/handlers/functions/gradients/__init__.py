"""Gradients of functions over examples, in parts, and over several requests."""
