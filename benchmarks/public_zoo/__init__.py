"""Recipes for a folder of models that anyone can rebuild: files in packages, and exports."""
