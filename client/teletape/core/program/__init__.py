"""Facts about the program that uses the SDK: its lines, notebook cells and types, and the errors that it sees."""
