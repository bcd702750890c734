"""Programs written for TensorFlow, with the results that the real one gave: docs/conformance.md."""
