"""Plans of loops: iterations that the C library repeats, without Python between them."""
