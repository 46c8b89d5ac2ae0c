"""Results of other tools, judged by relayout's verifier."""
