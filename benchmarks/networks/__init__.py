"""Families of networks on a device: relayout beside eager torch, Inductor and ONNX Runtime."""
