"""What bench/compare/attention.py compares with: `torch` (scaled_dot_product_attention) or `jax` (scans over numbers).
Answers lines "job A B C seconds" with microseconds."""
import sys

from peer import microseconds


def torch_job(job, heads, steps, width):
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    q, k, v, dy = (2 * torch.rand(1, heads, steps, width) - 1 for _ in range(4))
    causal = job.startswith("causal")

    def forward():
        with torch.no_grad():
            return scaled_dot_product_attention(q, k, v, is_causal=causal)
    if not job.endswith("_grad"):
        return forward
    operands = [t.requires_grad_() for t in (q, k, v)]
    return lambda: torch.autograd.grad(scaled_dot_product_attention(q, k, v, is_causal=causal), operands, dy)


def jax_job(_, carries, *__):
    import jax
    import jax.numpy as jnp
    xs, w = jnp.full(100, 0.3), jnp.float32(0.1)

    def last(w):
        def step(c, x):
            return tuple(jnp.sin(c[i] * w + x) * c[(i + 1) % carries] for i in range(carries)), None
        return jax.lax.scan(step, (jnp.float32(0.5),) * carries, xs)[0][0]
    gradient = jax.jit(jax.grad(last))
    return lambda: gradient(w).block_until_ready()


make, module = (torch_job, "torch") if sys.argv[1] == "torch" else (jax_job, "jax")
print(f"{module} {__import__(module).__version__}", flush=True)
kept, call = None, None
for line in sys.stdin:
    job, *size, seconds = line.split()
    key = (job, *map(int, size))
    if key != kept:
        kept, call = key, make(*key)
    print(microseconds(call, float(seconds)), flush=True)
