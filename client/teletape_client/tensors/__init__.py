"""Tensors in requests and answers: arguments of callers, bodies, answers, and the safetensors format."""
