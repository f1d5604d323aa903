"""Recurrent layers for PyTorch: modules that replace ``torch.nn.GRU``, ``LSTM`` and ``RNN``, and a switch that makes
PyTorch's own run on Ferrite.

    import ferrite.torch
    model = ferrite.torch.GRU(16, 16)      # a torch.nn.GRU: same arguments, parameters and results
    ferrite.torch.install()                # or: every torch.nn.GRU, LSTM and RNN of the process, from now on

Calls that Ferrite does not serve run in PyTorch: see ``why`` and ``counts``. Large calls set Ferrite's number of
threads to PyTorch's (``torch.set_num_threads``).
"""
from ._call import counts, why
from ._install import install, installed, is_installed, uninstall
from ._modules import GRU, LSTM, RNN

__all__ = ["GRU", "LSTM", "RNN", "counts", "install", "installed", "is_installed", "uninstall", "why"]
