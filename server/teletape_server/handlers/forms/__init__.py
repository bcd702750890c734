"""Requests that come again with other numbers: their form is known, and they are run without being read as a whole."""
