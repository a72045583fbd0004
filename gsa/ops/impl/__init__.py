"""Implementations of the attention op, a room each; they never import one another."""
