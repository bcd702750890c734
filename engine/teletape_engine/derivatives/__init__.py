"""Derivatives of what a tape recorded: gradients, Jacobians, Hessians, and their numeric approximation."""
