"""relayout beside other tools: what is left of Transposes, and how long models take."""
