"""Files: reading, checking, merging what was edited into the message, writing."""
