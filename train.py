"""Train a network:  python train.py [key=value …];  --help lists the keys, -m sweeps over several values."""

from gsa.cli import train

if __name__ == "__main__":
    train()
