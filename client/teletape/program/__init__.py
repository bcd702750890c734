"""What the SDK knows of the program that uses it: its lines, its notebook cells, its types, what it sees of errors."""
