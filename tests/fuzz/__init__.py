"""Fuzzing: random cases, which may be refused in documented words and must do nothing else. `make fuzz` runs it."""
