"""No position at all."""

from gsa.encodings._encoding import Encoding

__all__ = ["ConstantEncoding"]


class ConstantEncoding(Encoding):
    """ρ = 0: the same for all relative positions (any constant cancels in the softmax).

    Global attention then commutes with every permutation of the pixels; with a window, with those that map each
    neighbourhood to a neighbourhood.
    """

    name = "constant"
