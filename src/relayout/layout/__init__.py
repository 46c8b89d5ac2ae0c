"""Values without ONNX: permutations, shuffles, named layouts, and how an operator is restated."""
