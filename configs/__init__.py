"""Hydra configs, installed as gsa.configs."""
