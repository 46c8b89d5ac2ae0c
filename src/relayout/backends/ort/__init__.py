"""ONNX Runtime, which runs the optimised file."""
