"""What happens to every request and answer of the framework, whatever the route; the outermost module comes last."""
