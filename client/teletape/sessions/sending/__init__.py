"""The way of what was recorded to a server: batches, the thread that sends them, a second client for large tensors."""
