"""From a function to instructions: its ops run on arrays of which only the layout is known."""
