"""What changed in the definition of each standard operator from one opset version to the next."""
