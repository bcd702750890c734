"""What is recorded while ops run: tapes, variables, contexts, provenance; and the recorders that run the ops."""
