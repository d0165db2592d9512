"""A batch for the losses of PyTorch and JAX, and what the two call by other names, for tests that are the same."""

import contextlib
import importlib
import os

import numpy as np
import pytest

import plrank_fast as plr

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

# a batch of queries
OFFSETS = np.array([0, 4, 4, 9, 10, 16])  # an empty query and one of a single document among them
LENGTHS = np.diff(OFFSETS)
N_QUERIES, N_DOCS = LENGTHS.size, int(OFFSETS[-1])
RNG = np.random.default_rng(5)
SCORES = RNG.normal(size=N_DOCS).astype(np.float32).astype(np.float64)
LABELS = RNG.integers(0, 4, size=N_DOCS).astype(float)
LABELS[OFFSETS[4] :] = 0  # the last query has nothing relevant
WEIGHTS, UPSTREAM = plr.dcg_weights(3), np.arange(1.0, N_QUERIES + 1)
QUERY = np.repeat(np.arange(N_QUERIES), LENGTHS)
DCG = {"gain": "linear", "metric": "dcg"}  # of labels that are gains, as the library's functions have it
EXACT = {"cutoff": 3, "method": "exact"} | DCG

# JAX runs threads, of which a fork elsewhere in the test session knows nothing
IGNORED_WARNINGS = [
    pytest.mark.filterwarnings("ignore:.*fork.*"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
]


def padded(values, filling, length=7):
    """Rows of the ragged values, (n_queries, length), and where they stand; every second one at the end of its row."""
    rows, mask = np.full((N_QUERIES, length), filling), np.zeros((N_QUERIES, length), dtype=bool)
    for query, n_docs in enumerate(LENGTHS):
        mask[query, length - n_docs if query % 2 else 0 :][:n_docs] = True
    rows[mask] = values
    return rows, mask


class Torch:
    """Draws by PyTorch's generator or a seed; numbers in float64."""

    dtype, near, source = np.float64, 1e-12, "generator"

    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        self.adapter = importlib.import_module("plrank_fast.torch")
        self.func = self.torch.func

    def array(self, values, dtype=None):
        return self.torch.as_tensor(values, dtype=dtype and getattr(self.torch, dtype))

    def value_and_vjp(self, function, scores, upstream):
        """Value, and the gradient of its products with ``upstream``, by ``backward``."""
        leaf = self.array(scores).clone().requires_grad_()
        value = function(leaf)
        value.backward(self.array(upstream).to(value.dtype))
        return value.detach(), leaf.grad

    def value_and_jacobian(self, function):
        """A function of (rows, seed), and its derivative by the rows, in one vector."""
        jacobian = self.torch.autograd.functional.jacobian
        return lambda rows, seed: np.append(function(rows, seed), jacobian(lambda rows: function(rows, seed), rows))

    def policy(self, scores, cutoff=None):
        return self.adapter.PlackettLuce(self.array(scores), cutoff, validate_args=False)

    def words(self, seed):
        """The words from which a draw makes its key after ``seed``."""
        self.torch.manual_seed(seed)
        return self.torch.randint(2**63 - 1, (2,)).tolist()

    def sample(self, policy, shape=(), seed=0):
        self.torch.manual_seed(seed)
        return policy.sample(shape)

    def estimate(self, policy, *other, n_samples, seed=0):
        """The entropy, or the divergence from the other policy."""
        self.torch.manual_seed(seed)
        return policy.kl(*other, n_samples) if other else policy.entropy(n_samples)

    def mode(self, policy):
        return policy.mode


class Jax:
    """Draws by keys; numbers in float32."""

    dtype, near, source = np.float32, 1e-5, "key"

    def __init__(self):
        self.func = self.jax = pytest.importorskip("jax", reason="JAX is not installed")
        self.adapter = importlib.import_module("plrank_fast.jax")

    def array(self, values, dtype=None):
        return self.jax.numpy.asarray(values, dtype=dtype)

    @contextlib.contextmanager
    def by_callback(self):
        """Calls as on a device that XLA's target does not serve."""
        known, self.adapter.KNOWN_TO_XLA = self.adapter.KNOWN_TO_XLA, False
        self.jax.clear_caches()
        try:
            yield
        finally:
            self.adapter.KNOWN_TO_XLA = known
            self.jax.clear_caches()

    def value_and_vjp(self, function, scores, upstream):
        value, pull = self.jax.vjp(function, self.array(scores))
        return value, pull(self.array(upstream, value.dtype))[0]

    def value_and_jacobian(self, function):
        return self.jax.jit(
            lambda rows, seed: self.jax.numpy.append(function(rows, seed), self.jax.jacrev(function)(rows, seed))
        )

    def policy(self, scores, cutoff=None):
        return self.adapter.PlackettLuce(self.array(scores), cutoff)

    def words(self, seed):
        return np.asarray(self.jax.random.bits(self.jax.random.key(seed), (4,))).tolist()

    def sample(self, policy, shape=(), seed=0):
        draw = self.jax.jit(self.adapter.PlackettLuce.sample, static_argnums=2)
        return draw(policy, self.jax.random.key(seed), shape)

    def estimate(self, policy, *other, n_samples, seed=0):
        return policy.kl(*other, seed, n_samples) if other else policy.entropy(seed, n_samples)

    def mode(self, policy):
        return policy.mode()
