import pytest


@pytest.fixture
def configured(configure):
    """configured("key=value", …, target=…) → the configuration of a run on data of one's own."""

    def of(*overrides, target="tests.data.test_own_data.Stripes", folder="run"):
        return configure(
            "data=own", f"data._target_={target}", "model=digits_z2_sa", "recipe=digits",
            "logger=none", "trainer.accelerator=cpu", "callbacks=quiet", "report=false", "trainer.max_epochs=2",
            *overrides, folder=folder,
        )  # fmt: skip

    return of
