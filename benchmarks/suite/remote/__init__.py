"""The servers that programs call, except Teletape's own: each is started with a port."""
