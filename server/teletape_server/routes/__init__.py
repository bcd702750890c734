"""The endpoints, a file for each resource. Each declares its parameters and bodies, and calls `http.dispatch`."""
