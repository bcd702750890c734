"""The operator's commands: look at sessions and end them, back up and restore what outlives the server."""
