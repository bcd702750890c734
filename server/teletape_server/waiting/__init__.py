"""Why a request waits: who is ahead, when it will start, and what each key has of the server meanwhile."""
