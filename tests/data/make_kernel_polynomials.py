#!/usr/bin/env python3
"""Fits the polynomials of tensor/kernel/packet_*.h and prints their coefficients: Chebyshev's points, least squares
weighted by the errors again and again (Lawson), so that the largest relative error is least; those of doubles are
interpolated at Chebyshev's points. Needs mpmath and numpy.

    python3 tests/data/make_kernel_polynomials.py
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 40
root = mp.sqrt


def monomials(c, low, high):
    """The coefficients of z^k of a sum of Chebyshev's polynomials over [low, high]."""
    chebyshev = [[mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]]
    while len(chebyshev) < len(c):
        following = [mp.mpf(0)] + [2 * v for v in chebyshev[-1]]
        for k, v in enumerate(chebyshev[-2]):
            following[k] -= v
        chebyshev.append(following)
    scale, shift = 2 / (high - low), -(low + high) / (high - low)
    of_u = [sum(mp.mpf(float(c[k])) * t[j] for k, t in enumerate(chebyshev[:len(c)]) if j < len(t)) for j in range(len(c))]
    out, power = [mp.mpf(0)] * len(c), [mp.mpf(1)]
    for factor in of_u:
        for k, v in enumerate(power):
            out[k] += factor * v
        power = [(shift * power[k] if k < len(power) else 0) + (scale * power[k - 1] if k else 0)
                 for k in range(len(power) + 1)]
    return out


def fit(name, g, low, high, degree, share=lambda z: 1, steps=60, count=None):
    """Prints c[0] + c[1] z + ... near g on [low, high]; `share` is what the polynomial counts of the whole function."""
    count = count or 30 * (degree + 1)
    u = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    z = [mp.mpf(0.5 * (low + high) + 0.5 * (high - low) * v) for v in u]
    y, weight = np.array([float(g(v)) for v in z]), np.array([float(share(v)) for v in z])
    basis, lawson = np.polynomial.chebyshev.chebvander(u, degree), np.ones(count) / count
    for _ in range(steps):
        s = np.sqrt(lawson) * weight
        c = np.linalg.lstsq(basis * s[:, None], y * s, rcond=None)[0]
        error = np.abs((basis @ c - y) * weight)
        lawson = lawson * (error + 1e-300)
        lawson /= lawson.sum()
    numbers = ", ".join(f"{np.float32(float(v)):.9g}F" for v in monomials(c, mp.mpf(low), mp.mpf(high)))
    print(f"{name}, off by {error.max():.1e} at most: {numbers}")


def odd(name, f, slope, most, degree):
    """f(x) = slope x (1 + z P(z)) or x + x z P(z), z = x^2 up to `most`."""
    ratio = lambda z: f(root(z)) / (root(z) * slope)
    fit(name, lambda z: (ratio(z) - 1) / z, 1e-9, most, degree, lambda z: z / ratio(z))


def interpolated(name, g, low, high, degree, scale=1):
    """Prints the coefficients of doubles, all digits of the fit being needed."""
    n = degree + 1
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (k + 0.5) / n) for k in range(n)]
    c = mp.lu_solve(mp.matrix([[p**k for k in range(n)] for p in points]), mp.matrix([g(p) for p in points]))
    print(f"{name}: " + ", ".join(f"{float(v * scale):.17g}" for v in c))


ln2, near_zero = mp.log(2), mp.mpf(10)**-9
half_ln2, quarter_turn = float(ln2 / 2 * 1.001), float((mp.pi / 4 * 1.008)**2)
cubic = lambda r: (mp.expm1(r) - r - r * r / 2) / r**3 if abs(r) > near_zero else mp.mpf(1) / 6
for degree in (3, 4):  # of ExpSeries, and of ExpParts
    fit("exp", cubic, -half_ln2, half_ln2, degree, lambda r: r**3 / mp.expm1(r))
fit("2^r", lambda r: (mp.expm1(r * ln2) - r * ln2) / r**2 if abs(r) > near_zero else ln2**2 / 2, -0.5, 0.5, 4,
    lambda r: r**2 / mp.expm1(r * ln2))
sine, tangent = (lambda z: mp.sin(root(z)) / root(z)), (lambda z: mp.tan(root(z)) / root(z))
fit("sin", lambda z: (sine(z) - 1) / z, 1e-9, quarter_turn, 3, lambda z: z)
fit("cos", lambda z: (mp.cos(root(z)) - 1) / z, 1e-9, quarter_turn, 4, lambda z: z)
fit("tan", lambda z: (tangent(z) - 1) / z, 1e-9, quarter_turn, 6, lambda z: z / tangent(z))
steepest = ((root(2) - 1) / (root(2) + 1))**2 * 1.001  # s^2, s = f / (2 + f)
ratio_of_logs = lambda z: (2 * mp.atanh(root(z)) / root(z) - 2) / z
interpolated("log of doubles", ratio_of_logs, mp.mpf(0), steepest, 6)
interpolated("log2 of pow, after 2 / ln(2)", ratio_of_logs, mp.mpf(0), steepest, 3, 1 / ln2)
odd("asin", mp.asin, 1, 0.25, 5)
odd("atan", mp.atan, 1, 1.0, 8)
odd("sinh", mp.sinh, 1, 1.0, 3)
odd("sin(pi x) / pi", lambda x: mp.sin(mp.pi * x), mp.pi, 0.25, 4)
odd("atanh", mp.atanh, 1, 0.25, 6)
pair = lambda z: 2 * mp.atanh(root(z)) / root(z)
fit("2 artanh of softplus", lambda z: (pair(z) - 2) / z, 1e-9, 1 / 9.0, 4, lambda z: z / pair(z))
fit("log", lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3 if abs(f) > 1e-6 else mp.mpf(1) / 3,
    float(root(0.5) - 1), float(root(2) - 1), 8, lambda f: abs(f**3 / mp.log(1 + f)))


def scaled_tail(t):
    """Phi(-a) e^(a^2 / 2) / t, t = 1 / (1 + 0.4 a)."""
    a = (1 / t - 1) / 0.4
    return mp.erfc(a / root(2)) * mp.exp(a * a / 2) / 2 / t


fit("normal tail", scaled_tail, 1 / (1 + 14.5 * 0.4), 1.0, 10, lambda t: 1 / scaled_tail(t), 200)


def erfinv_ratio(w):
    """erfinv(y) / y where w = -ln(1 - y^2)."""
    y = root(1 - mp.exp(-w))
    return mp.erfinv(y) / y


near, far = lambda v: erfinv_ratio(v + 2.5), lambda v: erfinv_ratio((v + 3)**2)
fit("erfinv near", near, -2.5 + 1e-12, 2.5, 9, lambda v: 1 / near(v), count=150)
fit("erfinv far", far, float(root(5) - 3), 1.05, 9, lambda v: 1 / far(v), count=150)


def doubles(name, g, low, high, terms):
    """Prints the coefficients of g on [low, high] in doubles, from Chebyshev's expansion."""
    c, error = mp.chebyfit(g, [low, high], terms, error=True)
    numbers = ", ".join(f"{float(v):.17g}" for v in reversed(c))
    print(f"{name}, off by {float(error):.1e} at most: {numbers}")


zero = mp.findroot(mp.digamma, 1.4616)
print(f"digamma's zero: {float(zero):.17g} + {float(zero - float(zero)):.17g}")
doubles("digamma / (x - its zero) of x - 1.5", lambda v: mp.digamma(v + 1.5) / (v + 1.5 - zero), -0.5, 0.5, 23)


def rational(name, g, low, high, above, below):
    """Prints P / Q, Q with 1 before its highest power, that is g at Chebyshev's points of [low, high]."""
    n = above + below + 1
    points = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (k + mp.mpf(0.5)) / n) for k in range(n)]
    rows = [[z**j for j in range(above + 1)] + [-g(z) * z**j for j in range(below)] for z in points]
    c = mp.lu_solve(mp.matrix(rows), mp.matrix([g(z) * z**below for z in points]))
    numbers = [f"{float(v):.17g}" for v in c]
    print(f"{name}: {', '.join(numbers[:above + 1])} over {', '.join(numbers[above + 1:])}, 1")


mp.mp.dps = 80
half, least, turn = ln2 / 2 * mp.mpf("1.0001"), mp.mpf(10)**-20, (mp.pi / 4 * mp.mpf("1.0001"))**2
doubles("exp of doubles after r^2 / 2", lambda r: cubic(r) if abs(r) > 1e-12 else mp.mpf(1) / 6 + r / 24, -half, half, 10)
doubles("2^r of doubles after r ln(2)",
        lambda r: (mp.expm1(r * ln2) - r * ln2) / r**2 if abs(r) > 1e-12 else ln2**2 / 2 + r * ln2**3 / 6,
        mp.mpf("-0.50001"), mp.mpf("0.50001"), 11)
rational("tanh of doubles", lambda z: (mp.tanh(root(z)) / root(z) - 1) / z, least, mp.mpf("0.4"), 2, 3)
doubles("2 artanh of softplus of doubles", lambda z: (pair(z) - 2) / z, least, mp.mpf(1) / 9 * mp.mpf("1.0001"), 10)
doubles("sin of doubles", lambda z: (sine(z) - 1) / z, least, turn, 6)
doubles("cos of doubles", lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, least, turn, 6)
rational("tan of doubles", lambda z: (tangent(z) - 1) / z, least, turn, 3, 3)


def in_parts(name, v, digits):
    """Prints v as a sum of doubles, each rounded down to so many binary digits, the last one rounded."""
    parts = []
    for n in digits:
        unit = mp.mpf(2)**(n - 1 - mp.floor(mp.log(v, 2)))
        parts.append(mp.floor(v * unit) / unit)
        v -= parts[-1]
    print(f"{name}: " + " + ".join(f"{float(p):.17g}" for p in parts + [v]))


mp.mp.dps = 400
in_parts("pi / 2", mp.pi / 2, (53, 53))
in_parts("pi / 2 by parts of 33 digits", mp.pi / 2, (33, 33, 33))
in_parts("log10(2)", mp.log(2) / mp.log(10), (40,))
print("2 / pi in words of 32 bits:")
print(", ".join(f"0x{int(mp.floor(2 / mp.pi * mp.mpf(2)**(32 * k))) & 0xffffffff:08x}" for k in range(1, 39)))
most = ((root(2) - 1) / (root(2) + 1))**2 * mp.mpf("1.0001")
log2_ratio = lambda z: (2 * mp.atanh(root(z)) / root(z) - 2 - 2 * z / 3) / z**2 / ln2
mp.mp.dps = 120
doubles("log2 of pow of doubles after 2 / ln(2) (1 + z / 3)", log2_ratio, mp.mpf(10)**-20, most, 8)
for part in (1, 3):
    value = 2 / mp.log(2) / part
    print(f"2 / ln(2) / {part}: {float(value):.17g} + {float(value - float(value)):.17g}")
