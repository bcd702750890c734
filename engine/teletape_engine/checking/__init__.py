"""Checks of derivatives: a tape's gradients against numeric ones, and the laws that every op must obey."""
