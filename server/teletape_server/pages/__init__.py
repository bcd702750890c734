"""Pages for browsers: HTML from this server's own files, so that a browser asks no other host for anything."""
