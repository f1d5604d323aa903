import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _nothing_stays_installed():
    yield
    import ferrite.torch

    ferrite.torch.uninstall()
