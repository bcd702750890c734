"""What every route shares: negotiation, bodies, dispatch to a session's process, events, the OpenAPI document."""
