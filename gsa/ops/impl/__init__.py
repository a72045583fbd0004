"""Implementations of the attention op; they never import one another."""
