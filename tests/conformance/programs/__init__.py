"""The conformance programs, one file a subject: functions of (tf, np) that use public TensorFlow API alone."""
