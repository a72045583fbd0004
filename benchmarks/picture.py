"""Draw the README's picture: a digit turned by quarter turns, a lifted feature in every pose, the logits.

python benchmarks/picture.py            # random weights, seed 1; writes benchmarks/results/orbit.png
"""

import torch
from _machine import RESULTS

import gsa
from gsa.data import turned_digits
from gsa.viz import draw_orbit

torch.manual_seed(1)
images, labels = turned_digits()
digit = images[(labels == 4).nonzero()[0, 0]]
networks = {name: gsa.create_model(name) for name in ("digits_r4_sa", "digits_z2_sa")}
for network in networks.values():
    network(images[:200])  # running statistics of the norms
    network.eval()
figure = draw_orbit(
    digit,
    networks["digits_r4_sa"].lifting,
    {"logits, R4": networks["digits_r4_sa"], "logits, Z2": networks["digits_z2_sa"]},
    gsa.group("R4"),
    channel=2,
)
RESULTS.mkdir(exist_ok=True)
figure.savefig(RESULTS / "orbit.png", dpi=90)
print(RESULTS / "orbit.png")
