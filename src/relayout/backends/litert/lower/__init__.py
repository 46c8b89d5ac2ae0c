"""From operators of ONNX to builtins of LiteRT: one file a family."""
