#!/usr/bin/env python3
"""Writes optimizers.safetensors: runs of PyTorch's optimisers and schedules that the tests repeat.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_optimizer_fixtures.py [FOLDER]

Parameters w [4, 3], b [5] and k [2, 3, 2] start at init/NAME; the gradient of step t is g/NAME[t] + NAME / 10, so that a
wrong update shows in all that follow. A run is named by its optimiser and options, "NAdam lr=0.01 maximize=1", or by a
schedule and its, and the test makes its own from that name: run/NAME/PARAMETER are the parameters after 20 steps in f64,
run32/... in f32, rates/NAME [groups, 51] the learning rates before and after each of 50 steps, momenta/NAME likewise; metrics are those of
plateaus.
torch_optimizers.pt and .safetensors are runs that PyTorch saves in the middle.
Lion is not PyTorch's: its run is the paper's formula (arXiv 2302.06675, algorithm 2) in NumPy.
"""
import io
import itertools
import pathlib
import sys

import numpy
import scipy.optimize
import torch
from safetensors.torch import save_file

STEPS = 20
SHAPES = {"w": (4, 3), "b": (5,), "k": (2, 3, 2)}
DECAY = [{}, {"weight_decay": 0.1}]


def crossed(*axes):
    for choice in itertools.product(*axes):
        yield {key: value for part in choice for key, value in part.items()}


def runs():
    ascent = [{}, {"maximize": True}]
    yield from (("SGD", {"lr": 0.05} | o) for o in crossed(
        [{}, {"momentum": 0.9}, {"momentum": 0.8, "dampening": 0.3}, {"momentum": 0.7, "nesterov": True}], DECAY, ascent))
    for kind in ("Adam", "AdamW"):
        yield from ((kind, {"lr": 0.02} | o) for o in crossed(
            [{}, {"betas": (0.8, 0.95), "eps": 1e-3}], [{}, {"amsgrad": True}], DECAY, ascent))
    yield from (("NAdam", {"lr": 0.02} | o) for o in crossed(
        [{}, {"betas": (0.8, 0.95), "momentum_decay": 0.05}],
        [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}], ascent))
    yield from (("RAdam", {"lr": 0.02} | o) for o in crossed(
        [{}, {"betas": (0.8, 0.95), "eps": 1e-3}],
        [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}], ascent))
    yield from (("Adamax", {"lr": 0.02} | o) for o in crossed([{}, {"betas": (0.7, 0.9), "eps": 0.1}], DECAY, ascent))
    yield from (("RMSprop", {"lr": 0.01} | o) for o in crossed(
        [{}, {"alpha": 0.8, "eps": 1e-3}], [{}, {"momentum": 0.9}], [{}, {"centered": True}], DECAY, ascent))
    yield from (("Adagrad", {"lr": 0.05} | o) for o in crossed(
        [{}, {"lr_decay": 0.1, "initial_accumulator_value": 0.5}, {"eps": 0.1}], DECAY, ascent))
    yield from (("Adadelta", {"lr": 1.0} | o) for o in crossed([{}, {"rho": 0.7, "eps": 1e-3}], DECAY, ascent))
    yield from (("Adafactor", {"lr": 0.05} | o) for o in crossed(
        [{}, {"beta2_decay": -0.5, "eps": (1e-3, 1e-2)}, {"d": 2.0}], DECAY, ascent))
    yield from (("Lion", {"lr": 0.01} | o) for o in crossed([{}, {"betas": (0.7, 0.8)}], DECAY, ascent))


def schedules():
    """Names, in words of PyTorch's schedulers, and how to make them; two groups of rates 0.3 and 0.05."""
    lr = torch.optim.lr_scheduler
    simple = [("StepLR", [{"step_size": 7, "gamma": 0.5}]),
              ("MultiStepLR", [{"milestones": (5, 12, 12, 30), "gamma": 0.3}]),
              ("ConstantLR", [{}, {"factor": 0.25, "total_iters": 9}]),
              ("LinearLR", [{}, {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 20}]),
              ("ExponentialLR", [{"gamma": 0.93}]),
              ("PolynomialLR", [{}, {"total_iters": 30, "power": 2.0}]),
              ("CosineAnnealingLR", [{"T_max": 17, "eta_min": 0.01}]),
              ("CosineAnnealingWarmRestarts", [{"T_0": 8}, {"T_0": 4, "T_mult": 2, "eta_min": 0.01}, {"T_0": 3, "T_mult": 3}]),
              ("OneCycleLR", [{"max_lr": (0.5, 0.2), "total_steps": 50},
                              {"max_lr": 0.5, "total_steps": 61, "pct_start": 0.4, "anneal_strategy": "linear"},
                              {"max_lr": 0.5, "total_steps": 50, "three_phase": True, "div_factor": 10.0},
                              {"max_lr": 0.5, "total_steps": 50, "cycle_momentum": False, "final_div_factor": 100.0},
                              {"max_lr": 0.5, "total_steps": 55, "base_momentum": 0.5, "max_momentum": 0.9}]),
              ("CyclicLR", [{"base_lr": (0.1, 0.02), "max_lr": (0.4, 0.3), "step_size_up": 6},
                            {"base_lr": 0.1, "max_lr": 0.4, "step_size_up": 5, "step_size_down": 8, "mode": "triangular2"},
                            {"base_lr": 0.1, "max_lr": 0.4, "step_size_up": 7, "mode": "exp_range", "gamma": 0.97},
                            {"base_lr": 0.1, "max_lr": 0.4, "step_size_up": 7, "cycle_momentum": False},
                            {"base_lr": 0.1, "max_lr": 0.4, "step_size_up": 7, "base_momentum": 0.6, "max_momentum": 0.95}]),
              ("ReduceLROnPlateau", [{"patience": 3}, {"patience": 2, "factor": 0.5, "cooldown": 2, "min_lr": 0.02},
                                     {"patience": 1, "mode": "max", "threshold": 0.05, "threshold_mode": "abs"},
                                     {"patience": 4, "mode": "max", "factor": 0.7, "eps": 0.02}])]
    for kind, choices in simple:
        for options in choices:
            spelled = {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
            yield named(kind, options), lambda o, kind=kind, spelled=spelled: getattr(lr, kind)(o, **spelled)
    yield "LambdaLR", lambda o: lr.LambdaLR(o, lambda step: 1 / (1 + step))
    yield "MultiplicativeLR", lambda o: lr.MultiplicativeLR(o, lambda step: 0.9 + 0.1 / (1 + step))
    yield "SequentialLR", lambda o: lr.SequentialLR(
        o, [lr.LinearLR(o, 0.1, total_iters=8), lr.ExponentialLR(o, 0.9), lr.ConstantLR(o, 0.2, 5)], [8, 30])
    yield "ChainedScheduler", lambda o: lr.ChainedScheduler(
        [lr.LinearLR(o, 0.2, total_iters=10), lr.ExponentialLR(o, 0.95), lr.StepLR(o, 20, 0.5)])


def scheduled(make, optimiser_class, metrics):
    options = {"momentum": 0.9} if optimiser_class is torch.optim.SGD else {}
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (0.3, 0.05)]
    optimiser = optimiser_class(groups, **options)
    schedule = make(optimiser)
    rates, momenta = [], []
    for step in range(51):
        rates.append([g["lr"] for g in optimiser.param_groups])
        momenta.append([g["momentum"] if "momentum" in g else g["betas"][0] for g in optimiser.param_groups])
        if step == 50:
            break
        optimiser.step()
        if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
            schedule.step(metrics[step].item())
        else:
            schedule.step()
    return torch.tensor(rates).T, torch.tensor(momenta).T


GROUPS = {  # options of two groups, of weight [4, 3], bias [4] and v [5], m [2, 3]
    "SGD": ("lr=0.05 momentum=0.9", "lr=0.02 momentum=0.8 dampening=0.3 weight_decay=0.1"),
    "Adam": ("lr=0.02", "lr=0.01 amsgrad=1 weight_decay=0.1 betas=0.8,0.95"),
    "AdamW": ("lr=0.02", "lr=0.01 weight_decay=0.1 betas=0.8,0.95"),
    "NAdam": ("lr=0.02", "lr=0.01 momentum_decay=0.05 weight_decay=0.1"),
    "RAdam": ("lr=0.02 betas=0.9,0.8", "lr=0.01 weight_decay=0.1 decoupled_weight_decay=1"),
    "Adamax": ("lr=0.02", "lr=0.01 betas=0.7,0.9 maximize=1"),
    "RMSprop": ("lr=0.02 momentum=0.9 centered=1", "lr=0.01 alpha=0.9"),
    "Adagrad": ("lr=0.05", "lr=0.02 lr_decay=0.1 eps=0.1"),
    "Adadelta": ("lr=1.0", "lr=0.5 rho=0.7 weight_decay=0.1"),
    "Adafactor": ("lr=0.05", "lr=0.02 beta2_decay=-0.5 eps=0.001,0.01 d=2.0"),
}
EXCHANGED = {"weight": (4, 3), "bias": (4,), "v": (5,), "m": (2, 3)}
FLAGS = {"amsgrad", "maximize", "nesterov", "centered", "decoupled_weight_decay"}


def options_of(text):
    out = {}
    for word in text.split():
        key, value = word.split("=")
        numbers = tuple(float(v) for v in value.split(","))
        out[key] = numbers if len(numbers) > 1 else bool(numbers[0]) if key in FLAGS else numbers[0]
    return out


def in_groups(kind, parameters):
    """PyTorch's optimiser of two groups; parameters by name."""
    of = [["weight", "bias"], ["v", "m"]]
    return getattr(torch.optim, kind)(
        [{"params": [parameters[n] for n in names]} | options_of(text) for names, text in zip(of, GROUPS[kind])])


def steps_of(optimiser, parameters, gradients, steps):
    for step in steps:
        for name, p in parameters.items():
            p.grad = gradients[name][step] + p.detach() / 10
        optimiser.step()


def exchanged(folder):
    """torch_optimizers.pt: {class: state_dict after 10 steps}, and beside it what there was before, then and after 20."""
    torch.manual_seed(6)
    tensors = {f"init/{name}": torch.randn(shape).float().double() for name, shape in EXCHANGED.items()}
    tensors |= {f"g/{name}": torch.randn(STEPS, *shape).float().double() for name, shape in EXCHANGED.items()}
    gradients = {name: tensors[f"g/{name}"] for name in EXCHANGED}
    states = {}
    for kind in GROUPS:
        parameters = {name: torch.nn.Parameter(tensors[f"init/{name}"].clone()) for name in EXCHANGED}
        optimiser = in_groups(kind, parameters)
        steps_of(optimiser, parameters, gradients, range(10))
        tensors |= {f"mid/{kind}/{name}": p.detach().clone() for name, p in parameters.items()}
        buffer = io.BytesIO()
        torch.save(optimiser.state_dict(), buffer)
        buffer.seek(0)
        states[kind] = torch.load(buffer)
        steps_of(optimiser, parameters, gradients, range(10, STEPS))
        tensors |= {f"end/{kind}/{name}": p.detach().clone() for name, p in parameters.items()}
    torch.save(states, folder / "torch_optimizers.pt")
    options = {f"{kind}.{k}": text for kind, texts in GROUPS.items() for k, text in enumerate(texts)}
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "torch_optimizers.safetensors", options)


LBFGS = {"plain": {"lr": 0.2, "max_iter": 10}, "wolfe": {"max_iter": 10, "line_search_fn": "strong_wolfe"},
         "short": {"max_iter": 12, "history_size": 2, "line_search_fn": "strong_wolfe"},
         "few": {"max_iter": 20, "max_eval": 9, "line_search_fn": "strong_wolfe"}}


def rosenbrock(x):
    return (10 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def second_order(folder):
    """second_order.safetensors: lbfgs/NAME/x [4, 4] and loss [4] are parameters after and losses before each of 4 steps of
    torch.optim.LBFGS on rosenbrock; lm/NAME/x and cost what scipy.optimize.least_squares(method="lm") finds for the
    decay a exp(-b t) + c, for rosenbrock's residuals and for a net of 2 inputs, 3 tanh units and an output."""
    tensors = {"lbfgs/start": torch.tensor([-1.2, 1.0, -0.5, 0.8])}
    for name, options in LBFGS.items():
        parts = [torch.nn.Parameter(t.clone()) for t in tensors["lbfgs/start"].split(2)]
        optimiser = torch.optim.LBFGS(parts, **options)

        def closure():
            optimiser.zero_grad()
            loss = rosenbrock(torch.cat(parts))
            loss.backward()
            return loss

        xs, losses = [], []
        for _ in range(4):
            losses.append(optimiser.step(closure).item())
            xs.append(torch.cat(parts).detach().clone())
        tensors[f"lbfgs/{name}/x"], tensors[f"lbfgs/{name}/loss"] = torch.stack(xs), torch.tensor(losses)
    rng = numpy.random.default_rng(7)
    t = numpy.linspace(0, 4, 25)
    decay = 2.5 * numpy.exp(-1.3 * t) + 0.5 + 0.05 * rng.standard_normal(25)
    inputs = rng.uniform(-2, 2, (40, 2))

    def net(p, x):
        return numpy.tanh(x @ p[:6].reshape(2, 3) + p[6:9]) @ p[9:12] + p[12]

    truth = numpy.array([1.0, -0.7, 0.4, 0.6, 0.9, -1.1, 0.2, -0.3, 0.1, 1.5, -1.2, 0.8, 0.3])
    outputs = net(truth, inputs) + 0.02 * rng.standard_normal(40)
    problems = {"decay": (lambda p: p[0] * numpy.exp(-p[1] * t) + p[2] - decay, [1.0, 1.0, 0.0]),
                "rosenbrock": (lambda p: numpy.array([10 * (p[1] - p[0] ** 2), 1 - p[0]]), [-1.2, 1.0]),
                "net": (lambda p: net(p, inputs) - outputs, truth + 0.2 * rng.standard_normal(13))}
    for name, (residuals, start) in problems.items():
        found = scipy.optimize.least_squares(residuals, start, method="lm", xtol=1e-14, ftol=1e-14, gtol=1e-14)
        tensors |= {f"lm/{name}/start": torch.tensor(start), f"lm/{name}/x": torch.tensor(found.x),
                    f"lm/{name}/cost": torch.tensor(found.cost)}
    tensors |= {"lm/decay/t": torch.tensor(t), "lm/decay/y": torch.tensor(decay), "lm/net/inputs": torch.tensor(inputs),
                "lm/net/outputs": torch.tensor(outputs)}
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "second_order.safetensors")


class Lion:
    """The paper's algorithm 2 on NumPy arrays."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        self.parameters, self.lr, self.betas, self.decay, self.maximize = list(parameters), lr, betas, weight_decay, maximize
        self.momenta = [numpy.zeros(tuple(p.shape)) for p in self.parameters]

    def step(self):
        for p, m in zip(self.parameters, self.momenta):
            theta, g = p.detach().numpy().copy(), p.grad.numpy() * (-1 if self.maximize else 1)
            c = self.betas[0] * m + (1 - self.betas[0]) * g
            theta -= self.lr * (numpy.sign(c) + self.decay * theta)
            m *= self.betas[1]
            m += (1 - self.betas[1]) * g
            p.data.copy_(torch.from_numpy(theta))


def words(value):
    if isinstance(value, tuple):
        return ",".join(words(v) for v in value)
    return str(int(value)) if isinstance(value, bool) else value if isinstance(value, str) else repr(value)


def named(kind, options):
    return " ".join([kind] + [f"{key}={words(value)}" for key, value in options.items()])


def train(kind, options, first, gradients, dtype):
    torch.set_default_dtype(dtype)  # that of the counts and products that optimisers keep
    parameters = {name: torch.nn.Parameter(t.to(dtype).clone()) for name, t in first.items()}
    optimiser = (Lion if kind == "Lion" else getattr(torch.optim, kind))(parameters.values(), **options)
    for step in range(STEPS):
        for name, p in parameters.items():
            p.grad = gradients[name][step].to(dtype) + p.detach() / 10
        optimiser.step()
    torch.set_default_dtype(torch.float64)
    return {name: p.detach() for name, p in parameters.items()}


def main():
    torch.set_default_dtype(torch.float64)
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.manual_seed(5)
    first = {name: torch.randn(shape).float().double() for name, shape in SHAPES.items()}
    gradients = {name: torch.randn(STEPS, *shape).float().double() for name, shape in SHAPES.items()}
    tensors = {f"init/{name}": t for name, t in first.items()} | {f"g/{name}": t for name, t in gradients.items()}
    for kind, options in runs():
        for name, t in train(kind, options, first, gradients, torch.float64).items():
            tensors[f"run/{named(kind, options)}/{name}"] = t
        if "weight_decay" in options and not options.get("maximize") and kind != "Lion":
            for name, t in train(kind, options, first, gradients, torch.float32).items():
                tensors[f"run32/{named(kind, options)}/{name}"] = t
    metrics = torch.cat([torch.linspace(2, 1, 12), torch.rand(38) * 0.5 + 0.8])
    tensors["metrics"] = metrics
    for name, make in schedules():
        tensors[f"rates/{name}"], tensors[f"momenta/{name}"] = scheduled(make, torch.optim.SGD, metrics)
        if name.startswith(("OneCycle", "Cyclic")):
            tensors[f"momenta/Adam {name}"] = scheduled(make, torch.optim.Adam, metrics)[1]
    save_file({name: t.clone().contiguous() for name, t in tensors.items()}, folder / "optimizers.safetensors",
              {"torch": torch.__version__})
    exchanged(folder)
    second_order(folder)


if __name__ == "__main__":
    main()
