"""Groups of operators that run as one kernel each."""
