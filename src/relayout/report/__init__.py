"""Records of what was found and done, and their forms for people and machines."""
