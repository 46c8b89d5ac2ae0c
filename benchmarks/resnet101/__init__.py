"""Four convolutional networks on PyTorch, from the ONNX file: relayout beside the other ways."""
