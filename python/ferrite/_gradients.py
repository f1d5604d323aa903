"""Gradients of Python functions."""

import functools

from ._ferrite import _value_and_grad


def value_and_grad(f, parameters=None):
    """Returns the function that computes f(*inputs), one element, and its gradients: (value, gradients).

    Without `parameters` the gradients are those of the inputs: one tensor for one input, else a tuple. With a list of
    parameters, such as `net.parameters()`, they are a list, in its order, with None for a parameter that f does
    not read.
    """

    @functools.wraps(f)
    def both(*inputs):
        if parameters is not None:
            value, _, gradients = _value_and_grad(lambda: f(*inputs), [], list(parameters))
            return value, gradients
        value, gradients, _ = _value_and_grad(f, list(inputs), [])
        return value, gradients[0] if len(inputs) == 1 else tuple(gradients)

    return both


def grad(f, parameters=None):
    """Returns the function that computes the gradients of f(*inputs), which has one element. See `value_and_grad`."""
    both = value_and_grad(f, parameters)

    @functools.wraps(f)
    def gradients(*inputs):
        return both(*inputs)[1]

    return gradients
