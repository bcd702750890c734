"""What the SDK knows of the program that uses it: its lines, its notebook cells, and what it sees of an exception."""
