"""The endpoints, one file a resource. Each declares its parameters and bodies, and calls `http.dispatch`."""
