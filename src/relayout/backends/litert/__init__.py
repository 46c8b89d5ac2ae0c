"""LiteRT: files for its interpreter, written without TensorFlow."""
