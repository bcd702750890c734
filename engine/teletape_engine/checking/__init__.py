"""Checks of derivatives: the gradients of tapes and functions against numeric ones."""
