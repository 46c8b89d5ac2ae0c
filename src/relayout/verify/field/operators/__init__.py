"""What each operator computes over the field, written from the standard, one file a family"""
