"""The peers of bench/compare/linear.py: `torch` (torch.nn.GRU, minGRU-pytorch, mambapy) or `jax`
(jax.lax.associative_scan). Answers lines "job size seconds" with microseconds."""
import sys

from peer import microseconds

B, D, H = 64, 10, 100
SELECTIVE = (8, 32, 16)  # rows, channels, states


def torch_jobs():
    import torch
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    from mambapy.pscan import pscan
    from minGRU_pytorch.minGRU import minGRU

    def training(module, output, compiled=False):
        def of(T):
            x, adam = 2 * torch.rand(B, T, D) - 1, torch.optim.Adam(module.parameters(), fused=True)
            loss = lambda v: output(module(v)).square().mean()  # noqa: E731
            if compiled:
                loss = torch.compile(loss)

            def step():
                adam.zero_grad()
                loss(x).backward()
                adam.step()
            return step
        return of

    def selective(gradient):
        def of(T):
            b, d, n = SELECTIVE
            x, delta = 2 * torch.rand(b, T, d) - 1, 0.001 + 0.099 * torch.rand(b, T, d)
            A, of_b, of_c, skip = -1 - 15 * torch.rand(d, n), torch.rand(b, T, n), torch.rand(b, T, n), torch.rand(d)
            operands = [x, delta, A, of_b, of_c, skip]

            def y():  # MambaBlock.selective_scan
                h = pscan(torch.exp(delta.unsqueeze(-1) * A), delta.unsqueeze(-1) * of_b.unsqueeze(2) * x.unsqueeze(-1))
                return (h @ of_c.unsqueeze(-1)).squeeze(3) + skip * x

            def forward():
                with torch.no_grad():
                    y()
            for t in operands:
                t.requires_grad_(gradient)
            return (lambda: torch.autograd.grad(y().sum(), operands)) if gradient else forward
        return of

    gru = torch.nn.GRU(D, H, batch_first=True)
    min_gru = lambda: minGRU(D, expansion_factor=H / D, proj_out=False)  # noqa: E731
    return f"torch {torch.__version__}", {
        "train_min_gru": training(min_gru(), lambda y: y),
        "train_min_gru_compiled": training(min_gru(), lambda y: y, compiled=True),
        "train_gru": training(gru, lambda y: y[0]),
        "selective": selective(False), "selective_grad": selective(True)}


def jax_jobs():
    import jax
    import jax.numpy as jnp
    key = jax.random.PRNGKey(1)

    def recurrence(a, b):
        return jax.lax.associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (a, b), axis=1)[1]

    def train_min_gru(T):
        x, w = jax.random.uniform(key, (B, T, D), minval=-1.0), jax.random.uniform(key, (D, 2 * H), minval=-0.3, maxval=0.3)

        def loss(w):
            c, z = jnp.split(x @ w, 2, -1)
            h = recurrence(jax.nn.sigmoid(-z), jax.nn.sigmoid(z) * jnp.where(c >= 0, c + 0.5, jax.nn.sigmoid(c)))
            return jnp.mean(h * h)

        @jax.jit
        def step(w, m, v, t):
            g = jax.grad(loss)(w)
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            return w - 1e-3 * m / (1 - 0.9**t) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v
        return lambda: jax.block_until_ready(step(w, w * 0, w * 0, 1.0))

    def selective(gradient):
        def of(T):
            b, d, n = SELECTIVE
            draw = lambda *shape: jax.random.uniform(key, shape)  # noqa: E731
            operands = [draw(b, T, d), 0.1 * draw(b, T, d), -16 * draw(d, n), draw(b, T, n), draw(b, T, n), draw(d)]

            def y(x, delta, A, of_b, of_c, skip):
                h = recurrence(jnp.exp(delta[..., None] * A), delta[..., None] * of_b[:, :, None] * x[..., None])
                return jnp.einsum("btdn,btn->btd", h, of_c) + skip * x
            f = jax.jit(jax.grad(lambda *o: y(*o).sum(), argnums=range(6)) if gradient else y)
            return lambda: jax.block_until_ready(f(*operands))
        return of
    return f"jax {jax.__version__}", {"train_min_gru": train_min_gru, "selective": selective(False), "selective_grad": selective(True)}


version, jobs = (torch_jobs if sys.argv[1] == "torch" else jax_jobs)()
print(version, flush=True)
for line in sys.stdin:
    job, n, seconds = line.split()
    print(microseconds(jobs[job](int(n)), float(seconds)) if job in jobs else "none", flush=True)
