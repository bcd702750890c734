"""Products, decompositions and solvers of matrices."""
