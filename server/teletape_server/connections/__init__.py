"""The connections of a server: their limits, and frames, which are received and answered without the framework."""
