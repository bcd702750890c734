"""Sends recorded commands to a server: batches, the thread that sends them, a second client for large tensors."""
