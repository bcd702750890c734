"""The routes: those of the endpoints, made of their records, and functions for what the front answers itself."""
