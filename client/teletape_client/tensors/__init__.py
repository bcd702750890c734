"""Tensors on their way: what callers pass, bodies of requests, answers, and the safetensors format."""
