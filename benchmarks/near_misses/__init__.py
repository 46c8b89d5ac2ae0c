"""Random models and what is changed in them, to try proofs on."""
