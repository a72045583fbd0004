"""The version, where the lightest parts can read it, whether the package is installed or not."""

__all__ = ["VERSION"]

VERSION = "0.5.0"
