"""Where statements come from: headings of docs/coverage.md."""

__all__ = ["BIASES", "GROUPS", "INITIALIZATION", "PERMUTATIONS", "WORDS"]

PERMUTATIONS = "Permutation Equivariance (essay of a student of Liyao Xiang, on transformers forward and backward)"
WORDS = "Visualizing equivariances in transformer neural networks"
INITIALIZATION = (
    "Numerical Stability and Initialization (permutation symmetry of neural networks, after Zhang et al., "
    "Dive into Deep Learning)"
)
BIASES = "An essay in Chinese on permutation invariance of attention, and on its biases"
GROUPS = "Group equivariant stand-alone self-attention for vision (Romero & Cordonnier)"
