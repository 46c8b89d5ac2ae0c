"""How long models take in a runtime, run in turns and compared pair by pair."""
