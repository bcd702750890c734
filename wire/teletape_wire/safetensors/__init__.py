"""Several named tensors in one body or file: the safetensors format."""
