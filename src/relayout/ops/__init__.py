"""What is known of each operator: facts only, one file per family."""
