"""One request of a connection and its response: by the framework, or before it, as a frame or plain request."""
