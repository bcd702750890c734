"""Plans on a GPU: generated kernels for elementwise chains, and CUDA graphs."""
