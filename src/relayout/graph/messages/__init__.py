"""ONNX messages as they stand in a file, before a graph is made of them."""
