"""One command over many models: a process for each, and a record, a table and a page of all."""
