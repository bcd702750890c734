"""Windows that slide over images: convolutions, pooling, patches, morphology."""
