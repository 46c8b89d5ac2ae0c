"""What each operator is in torch, one file per family."""
