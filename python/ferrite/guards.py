"""Context managers for the calling thread, and the library's log in Python's logging."""

from typing import Any

import contextlib
import logging
import threading

from . import _ferrite


class _Guard(contextlib.ContextDecorator):
    """A guard that may be entered several times; the inner one ends first."""

    _kind: Any = None

    # The guards of each thread, of all kinds: [context, guard, whether it is still in use]. A guard ends on the thread
    # that began it, the inner one first; one that is left earlier ends when those within it do.
    _of_thread = threading.local()

    def _options(self):
        return ()

    def __enter__(self):
        guard = self._kind()
        guard.begin(*self._options())
        stack = vars(self._of_thread).setdefault("stack", [])
        stack.append([self, guard, True])
        return self

    def __exit__(self, *error):
        stack = vars(self._of_thread).get("stack", [])
        entry = next((e for e in reversed(stack) if e[0] is self and e[2]), None)
        if entry is None:
            raise RuntimeError(f"{type(self).__name__}: left on a thread that did not enter it")
        entry[2] = False
        while stack and not stack[-1][2]:
            stack.pop()[1].end()
        return False


class no_grad(_Guard):
    """Inside, nothing on this thread is recorded for gradients: results are constants. Also a decorator.

    with ferrite.no_grad():
        target = teacher(x)
    """

    _kind = _ferrite._NoGrad


class FlushDenormals(_Guard):
    """Makes numbers too small for a full mantissa count as zero on this thread, as operands and as results.

    Computing with such denormals takes some processors a hundred times as long: a filter or a recurrent state that dies
    away. Off unless asked for, since it changes results. NumPy's results on this thread change too.
    """

    _kind = _ferrite._FlushDenormals


class detect_anomaly(_Guard):
    """Checks the results of every operation that runs on this thread, in the forward and the backward pass.

    The first one that holds a NaN, or an infinity where no operand holds one, raises AnomalyError, which names the
    layer, the operation, the element and the shapes. ``infinities=False`` lets infinities pass. Several times slower
    than
    running without.
    """

    _kind = _ferrite._DetectAnomaly

    def __init__(self, infinities=True):
        super().__init__()
        self.infinities = infinities

    def _options(self):
        return (self.infinities,)


_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def log_to(logger="ferrite", level="info"):
    """Sends the library's log to a logger of Python's ``logging``: what was loaded, transposed or converted, and which
    form a layer took and why.

    ``logger`` is a name or a Logger; None turns the log off. ``level`` is the lowest level that is sent: "debug",
    "info", "warning" or "error". Lines arrive on the main thread, shortly after the call that wrote them.
    """
    if logger is None:
        _ferrite._set_log(None)
        return
    names = ("debug", "info", "warning", "error")
    if level not in names:
        raise _ferrite.ValueError(f'log_to: unknown level "{level}"; known are {", ".join(names)}')
    if isinstance(logger, str):
        logger = logging.getLogger(logger)
    _ferrite._set_log(lambda line_level, line: logger.log(_LEVELS[line_level], "%s", line), names.index(level))
