"""The JSON bodies of REST requests and answers, a file for each resource, and what they share."""
