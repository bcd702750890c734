"""What a GPU is measured with, and the command that verifies one: `make gpu`."""
