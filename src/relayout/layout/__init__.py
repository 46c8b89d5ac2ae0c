"""Values without ONNX: permutations, named layouts, and how an operator is restated."""
