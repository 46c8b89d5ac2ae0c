"""The shapes of a model, by its open lengths."""
