"""API keys and tokens, what they allow and where keys are kept; the addresses of requests; and the audit."""
