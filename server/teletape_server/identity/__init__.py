"""API keys, what they allow and where they are kept; the addresses of requests; and the audit."""
