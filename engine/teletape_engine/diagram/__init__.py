"""A tape's graph as facts, as DOT text and as SVG."""
