"""The only code that reads and edits ONNX graphs."""
