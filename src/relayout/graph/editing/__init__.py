"""The only room that changes a graph; files are built and merged in `graph/io`."""
