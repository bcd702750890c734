"""Published functions: what they declare, where they are kept, who computes them, and which calls go together."""
