"""Pictures; matplotlib is imported when one is drawn."""

from gsa.viz._angles import draw_angles
from gsa.viz._attention import draw_attention
from gsa.viz._compared_layers import draw_compared_layers
from gsa.viz._confusion import draw_confusion
from gsa.viz._encodings import draw_encodings
from gsa.viz._errors import draw_errors
from gsa.viz._heads import draw_heads
from gsa.viz._layers import draw_layers
from gsa.viz._learning import draw_learning
from gsa.viz._mistakes import draw_mistakes
from gsa.viz._orbit import draw_orbit
from gsa.viz._runs import draw_runs

__all__ = [
    "draw_angles",
    "draw_attention",
    "draw_compared_layers",
    "draw_confusion",
    "draw_encodings",
    "draw_errors",
    "draw_heads",
    "draw_layers",
    "draw_learning",
    "draw_mistakes",
    "draw_orbit",
    "draw_runs",
]
