"""Who asks: API keys and what they allow, where they are kept, where requests come from, and what was noted of it."""
