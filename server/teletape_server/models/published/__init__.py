"""Bodies of /published: publications, and the questions to published functions."""
