"""Sessions as plain data, from which equal ones begin; and what a command has changed that was stopped."""
