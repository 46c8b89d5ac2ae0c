"""What operators mean, a file for each family."""
