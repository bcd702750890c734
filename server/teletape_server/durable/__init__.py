"""Sessions on a disk: logs of what their requests did, and bases from which they begin; nothing here runs a request."""
