"""The functions of scripts/accuracy: exact values by mpmath, and where to look."""

import dataclasses
import fractions
import functools
import math
from collections.abc import Callable

from mpmath import mp, mpf

mp.dps = 75  # 50 digits remain where two terms agree in 25


@dataclasses.dataclass(frozen=True)
class Function:
    """An exact value for each argument, None where there is none; arguments lie mostly in `range`, and near `near`."""

    exact: Callable
    range: tuple = (-20.0, 20.0)
    near: tuple = ()
    operands: int = 1
    ranges: tuple = ()  # of the operands of a function of two
    least: Callable | None = None  # errors count in units of this where it is larger than the result: terms that cancel
    note: str = ""  # what `least` is


def positive(f):
    return lambda x: f(x) if x > 0 else None


def within_one(f):
    return lambda x: f(x) if abs(x) < 1 else None


def log_gamma(x):
    """ln |Gamma(x)|, reflected below 0."""
    if x > 0:
        return mp.loggamma(x)
    if x == mp.floor(x):
        return None
    return mp.log(mp.pi) - mp.log(abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def digamma(x):
    if x > 0:
        return mp.digamma(x)
    if x == mp.floor(x):
        return None
    return mp.digamma(1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x)


@functools.cache
def cotangent_derivative(n):
    """Coefficients of the n-th derivative of cot as a polynomial of cot."""
    p = {1: 1}
    for _ in range(n):
        q: dict[int, int] = {}
        for k, c in p.items():
            for power in (k - 1, k + 1):
                if k:
                    q[power] = q.get(power, 0) - k * c
        p = q
    return p


def polygamma(n, x):
    """(-1)^(n + 1) n! zeta(n + 1, x), reflected below 0."""
    if x > 0:
        if x > mpf(10) ** 40:  # two terms of the asymptotic series
            value = mp.factorial(n - 1) / x**n + mp.factorial(n) / (2 * x ** (n + 1))
        elif x < mpf(10) ** -40:  # the pole, and the value at 1 beside it
            value = mp.factorial(n) * (x ** (-n - 1) + mp.zeta(n + 1))
        else:
            value = mp.factorial(n) * mp.zeta(n + 1, x)
        return value if n % 2 else -value
    if x == mp.floor(x):
        return None
    cot = mp.cospi(x) / mp.sinpi(x)
    total = sum(c * cot**k for k, c in cotangent_derivative(n).items())
    # psi_n(1 - x) - (-1)^n psi_n(x) = (-1)^n pi d^n/dx^n cot(pi x)
    return (-1) ** n * polygamma(n, 1 - x) - mp.pi ** (n + 1) * total


def gelu(x):
    return x * mp.erfc(-x / mp.sqrt(2)) / 2 if abs(x) < 1e4 else (x if x > 0 else mpf(0))


def gelu_tanh(x):
    inner = mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3)
    if abs(inner) > 1e4:
        return x if x > 0 else mpf(0)
    return x / (1 + mp.exp(-2 * inner))


def bounded(f, low, below):
    """f, and `below` of x where the exponential would need too many digits."""
    return lambda x: f(x) if abs(x) < low else below(x)


def erfinv(y):
    """Newton's method on erfc from a start in floats; its first terms near 0."""
    if abs(y) < mpf(10) ** -20:
        return mp.sqrt(mp.pi) / 2 * (y + mp.pi * y**3 / 12)
    size, left = abs(y), 1 - abs(y)
    w = -math.log(float(left * (1 + size)))
    t = 4.33 - w / 2  # Winitzki's approximation
    x = mpf(math.sqrt(math.sqrt(t * t + w / 0.147) - t))
    for _ in range(12):
        step = (mp.erf(x) - size if size < 0.5 else left - mp.erfc(x)) * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
        x -= step / (1 + x * step)  # Halley's
        if abs(step) < abs(x) * mpf(10) ** -25:  # tripled by the next one
            break
    return x if y > 0 else -x


def softplus(x):
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def tanhshrink(x):
    if abs(x) < mpf(10) ** -12:
        return x**3 / 3 - 2 * x**5 / 15
    return x - mp.tanh(x)


def selu(x):
    scale, alpha = mpf("1.0507009873554804934193349852946"), mpf("1.6732632423543772848170429916717")
    return scale * (x if x > 0 else alpha * mp.expm1(x))


def sinc(x):
    return mp.sinpi(x) / (mp.pi * x) if x else mpf(1)


def power(a, b):
    if a == 0:
        return None
    if a < 0:
        if b != mp.floor(b):
            return None
        value = mp.exp(b * mp.log(-a))
        return -value if int(b) % 2 else value
    return mp.exp(b * mp.log(a))


def quotient_left(a, b, round_down):
    """a - b trunc(a / b) or a - b floor(a / b), exactly."""
    if b == 0:
        return None
    p, q = fractions.Fraction(float(a)), fractions.Fraction(float(b))
    n = p / q
    whole = math.floor(n) if round_down or n > 0 else math.ceil(n)
    rest = p - q * whole
    return mpf(rest.numerator) / rest.denominator


def log_add(a, b, base=None):
    large, small = max(a, b), min(a, b)
    if base:
        return large + mp.log1p(base ** (small - large)) / mp.log(base) if large - small < 1e5 else large
    return large + mp.log1p(mp.exp(small - large)) if large - small < 1e5 else large


def huge(f, most, beyond):
    return lambda x: f(x) if abs(x) <= most else beyond(x)


def reflected(n, x):
    return abs(polygamma(n, 1 - x)) if x < 0 else mpf(0)


def of_two(a, b, base=math.e):
    """The larger operand, and what the rounding of the difference d to the smaller one weighs, d base^-d."""
    gap = abs(a - b)
    return max(abs(max(a, b)), gap * mpf(base) ** -gap if gap < 2e3 else 0)


ZERO = mpf(0)
END = 1e5  # beyond it exponentials of a number are 0 or infinite in both formats
BIG = mpf(2) ** 5000


def exponential(f):
    return lambda x: f(x) if abs(x) < END else (BIG if x > 0 else ZERO)


LGAMMA_ZEROS = (-2.4570247382208006, -2.7476826467274127, -3.143580888349980, -3.955294284858598, -4.039361839740537,
                -4.991544640560048, -5.0082181683225315)
DIGAMMA_ZEROS = (1.4616321449683623, -0.5040830082644554, -1.5734984731623904, -2.6107208684441447, -3.6352933664369010)
TURNS = tuple(k * math.pi / 2 for k in (1, 2, 3, 4, 5, 100, 1e4, 1e6))
BELOW = (-1.0, -2.0, -3.0, -7.0, -20.0, -0.5, -1.5, -2.5, -7.5, -20.5)

FUNCTIONS: dict[str, Function] = {
    "sqrt": Function(lambda x: mp.sqrt(x) if x >= 0 else None, (0.0, 100.0)),
    "rsqrt": Function(positive(lambda x: 1 / mp.sqrt(x)), (0.0, 100.0)),
    "reciprocal": Function(lambda x: 1 / x if x else None),
    "exp": Function(exponential(mp.exp), (-110.0, 100.0), (-745.0, -708.0, -103.9, -87.3, 88.7, 709.7)),
    "exp2": Function(exponential(lambda x: mp.power(2, x)), (-150.0, 130.0), (-1074.0, -1022.0, -126.0, 127.99, 1023.9)),
    "exp10": Function(exponential(lambda x: mp.power(10, x)), (-45.0, 39.0), (-323.0, -307.6, -37.9, 38.5, 308.2)),
    "expm1": Function(huge(mp.expm1, END, lambda x: BIG if x > 0 else mpf(-1)), (-20.0, 89.0), (0.6, -0.6, 88.7, 709.7)),
    "log": Function(positive(mp.log), (0.0, 10.0), (1.0, 0.5, 2.0)),
    "log2": Function(positive(lambda x: mp.log(x) / mp.ln2), (0.0, 10.0), (1.0, 0.5, 2.0)),
    "log10": Function(positive(lambda x: mp.log(x) / mp.ln10), (0.0, 10.0), (1.0, 10.0, 100.0)),
    "log1p": Function(lambda x: mp.log1p(x) if x > -1 else None, (-1.0, 10.0), (-1.0, -0.5, 1.0)),
    "logit": Function(lambda x: mp.log(x) - mp.log1p(-x) if 0 < x < 1 else None, (0.0, 1.0), (0.5, 1.0),
                      least=lambda x: mp.ln2, note="ln 2: logarithms cancel at 1/2"),
    "pow": Function(power, operands=2, ranges=((0.0, 20.0), (-30.0, 30.0))),
    "sin": Function(mp.sin, (-100.0, 100.0), TURNS),
    "cos": Function(mp.cos, (-100.0, 100.0), TURNS),
    "tan": Function(mp.tan, (-100.0, 100.0), TURNS),
    "asin": Function(lambda x: mp.asin(x) if abs(x) <= 1 else None, (-1.0, 1.0), (0.5, 1.0, -1.0)),
    "acos": Function(lambda x: mp.acos(x) if abs(x) <= 1 else None, (-1.0, 1.0), (0.5, 1.0, -1.0)),
    "atan": Function(mp.atan, (-10.0, 10.0), (1.0, -1.0)),
    "atan2": Function(lambda y, x: mp.atan2(y, x) if x or y else None, operands=2, ranges=((-10.0, 10.0), (-10.0, 10.0))),
    "sinc": Function(sinc, (-30.0, 30.0), (1.0, 2.0, 3.0, 10.0, 0.5)),
    "sinh": Function(huge(mp.sinh, END, lambda x: mp.sign(x) * BIG), (-90.0, 90.0), (1.0, 89.4, 710.4)),
    "cosh": Function(huge(mp.cosh, END, lambda x: BIG), (-90.0, 90.0), (89.4, 710.4)),
    "tanh": Function(huge(mp.tanh, END, mp.sign), (-10.0, 10.0), (9.1,)),
    "asinh": Function(mp.asinh, (-10.0, 10.0), (1e-3,)),
    "acosh": Function(lambda x: mp.acosh(x) if x >= 1 else None, (1.0, 10.0), (1.0,)),
    "atanh": Function(within_one(mp.atanh), (-1.0, 1.0), (0.5, 1.0, 1 / 3)),
    "hypot": Function(lambda a, b: mp.hypot(a, b), operands=2, ranges=((-10.0, 10.0), (-10.0, 10.0))),
    "fmod": Function(lambda a, b: quotient_left(a, b, False), operands=2, ranges=((-100.0, 100.0), (-5.0, 5.0))),
    "remainder": Function(lambda a, b: quotient_left(a, b, True), operands=2, ranges=((-100.0, 100.0), (-5.0, 5.0))),
    "sigmoid": Function(huge(lambda x: 1 / (1 + mp.exp(-x)), END, lambda x: mpf(1) if x > 0 else ZERO), (-100.0, 40.0),
                        (4.0, -88.37, -87.3)),
    "log_sigmoid": Function(huge(lambda x: -softplus(-x), END, lambda x: ZERO if x > 0 else x), (-20.0, 110.0)),
    "softplus": Function(huge(softplus, END, lambda x: x if x > 0 else ZERO), (-110.0, 20.0)),
    "softsign": Function(lambda x: x / (1 + abs(x))),
    "silu": Function(huge(lambda x: x / (1 + mp.exp(-x)), END, lambda x: x if x > 0 else ZERO), (-100.0, 20.0),
                     (-88.37, -88.6)),
    "gelu": Function(gelu, (-40.0, 10.0), (-14.4, -13.0, -27.0, -36.0, -37.5, -38.4)),
    "gelu_tanh": Function(gelu_tanh, (-40.0, 10.0), (-5.0, -10.0, -20.0)),
    "mish": Function(huge(lambda x: x * mp.tanh(softplus(x)), END, lambda x: x if x > 0 else ZERO), (-110.0, 20.0)),
    "elu": Function(huge(lambda x: x if x > 0 else mp.expm1(x), END, lambda x: x if x > 0 else mpf(-1)), (-20.0, 5.0)),
    "celu": Function(huge(lambda x: x if x > 0 else mp.expm1(2 * x) / 2, END, lambda x: x if x > 0 else mpf(-0.5)),
                     (-20.0, 5.0)),
    "selu": Function(huge(selu, END, lambda x: selu(x) if x > 0 else selu(mpf(-1000))), (-20.0, 5.0)),
    "tanhshrink": Function(huge(tanhshrink, END, lambda x: x - mp.sign(x)), (-10.0, 10.0), (0.1, 0.01),
                           least=abs, note="|x|: two terms cancel at 0"),
    "erf": Function(huge(mp.erf, END, mp.sign), (-6.0, 6.0), (0.8, -0.8)),
    "erfc": Function(huge(mp.erfc, END, lambda x: ZERO if x > 0 else mpf(2)), (-6.0, 28.0), (0.5, 9.19, 10.0, 26.5)),
    "erfinv": Function(within_one(erfinv), (-1.0, 1.0), (1.0, -1.0, 0.5)),
    "lgamma": Function(log_gamma, (-30.0, 30.0), (1.0, 2.0, *LGAMMA_ZEROS, *BELOW),
                       least=lambda x: mpf(x < 0), note="1 below 0, where it has zeros"),
    "digamma": Function(digamma, (-30.0, 30.0), (*DIGAMMA_ZEROS, *BELOW), least=lambda x: mpf(x < 0),
                        note="1 below 0, where it has zeros"),
    "polygamma(1)": Function(lambda x: polygamma(1, x), (-30.0, 30.0), BELOW),
    "polygamma(2)": Function(lambda x: polygamma(2, x), (-30.0, 30.0), BELOW, least=lambda x: reflected(2, x),
                             note="its value at 1 - x below 0, where it has zeros"),
    "polygamma(5)": Function(lambda x: polygamma(5, x), (-30.0, 30.0), BELOW),
    "polygamma(20)": Function(lambda x: polygamma(20, x), (-30.0, 30.0), BELOW, least=lambda x: reflected(20, x),
                             note="its value at 1 - x below 0, where it has zeros"),
    "logaddexp": Function(log_add, operands=2, ranges=((-20.0, 20.0), (-20.0, 20.0)),
                          least=of_two, note="the larger operand, or d e^-d of their difference d"),
    "logaddexp2": Function(lambda a, b: log_add(a, b, mpf(2)), operands=2, ranges=((-20.0, 20.0), (-20.0, 20.0)),
                           least=lambda a, b: of_two(a, b, 2), note="the larger operand, or d 2^-d of their difference d"),
    "xlogy": Function(lambda x, y: x * mp.log(y) if y > 0 else None, operands=2, ranges=((-10.0, 10.0), (0.0, 10.0))),
}
