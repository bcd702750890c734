"""The OpenAPI document: its models, examples and links; what a change of it breaks for clients."""
