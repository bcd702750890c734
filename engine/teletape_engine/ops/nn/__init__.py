"""Activations, losses, normalisation, attention."""
