"""Bodies of several named tensors in the safetensors format, and their places in the JSON of a request or an answer."""
