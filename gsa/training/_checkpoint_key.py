"""What the state of a callback that saves is found by in checkpoints."""

from functools import cached_property

from lightning.pytorch.callbacks import ModelCheckpoint

__all__ = ["KeyedCheckpoint"]


class KeyedCheckpoint(ModelCheckpoint):
    """Has the key that Lightning's own would have, as in earlier checkpoints; made once, as every hook asks for it."""

    @cached_property
    def state_key(self) -> str:
        return super().state_key.replace(type(self).__qualname__, ModelCheckpoint.__qualname__, 1)
