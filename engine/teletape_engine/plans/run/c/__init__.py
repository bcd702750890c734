"""The walk in C: the library that `rows.c` becomes, its records, and which rows do an instruction."""
