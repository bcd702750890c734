"""The JSON bodies of REST requests and answers."""
