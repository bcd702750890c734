"""Activations, losses, convolutions and pooling."""
