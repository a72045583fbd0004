"""What is asked of Lightning where it has no public name."""

from types import SimpleNamespace

from lightning.pytorch.callbacks import Callback, LambdaCallback

from gsa.training.adapter import leave_out_idle_hooks


class _Counting(Callback):
    def __init__(self) -> None:
        self.seen = 0

    def on_train_batch_end(self, *anything: object) -> None:
        self.seen += 1


class _CountingMore(_Counting):
    pass


_CountingMore.__module__ = "gsa.training"


class _Later(Callback):
    """Somebody's own, whose class gets a hook when it is set up."""


def test_hooks_of_a_step_that_do_nothing_cannot_be_called_any_more_and_others_can():
    told: list[str] = []
    inherits, own = _CountingMore(), LambdaCallback(on_after_backward=lambda *_: told.append("after"))
    later = _Later()
    leave_out_idle_hooks(SimpleNamespace(callbacks=[inherits, own, later]))
    _Later.on_train_batch_end = lambda *_: told.append("later")
    later.on_train_batch_end()
    inherits.on_train_batch_end()
    own.on_after_backward(None, None)
    assert inherits.seen == 1 and told == ["later", "after"]
    assert inherits.on_after_backward is None and own.on_train_batch_end is None
    assert callable(inherits.on_train_epoch_end) and callable(own.on_save_checkpoint), "these are called unseen"
