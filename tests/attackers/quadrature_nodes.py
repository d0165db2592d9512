"""The number of nodes by the error bound of docs/numerics.md, in NumPy."""

from __future__ import annotations

import itertools

import numpy as np

from plrank_fast._core.gradients import exact as _exact

TINY = np.finfo(float).tiny
BINS = 2  # per nat
GAP = 7.0  # nats between neighbouring scores, at which the kernel divides a list
ARRIVED = np.exp(5.25)  # w t of an item that has certainly arrived
LARGEST_INVERSE = 1 / TINY  # of z
STEEPNESS, LEAST_B2, LARGEST_ETA, TURNED, UNPROVED = 2.0, 2.0, 1.25, 0.9, 1.01
SPREAD = np.array([24.0, 3.0, 1.0]) / 28.0


class Panel:
    """A list without gaps between its scores, as items at the bins of the histogram, and the plan of its integrals."""

    def __init__(self, scores, relevance, rank_weights, rtol, *, hessian=False):
        self.points, self.hessian, self.rtol = 16, hessian, 0.99 * rtol
        self.scores = scores - scores.max()
        self.S = np.exp(self.scores).sum()
        self.describe(relevance, rank_weights[: scores.size])
        floor = 0.9e-3 * self.largest_gain
        self.guaranteed = self.rtol * np.array([self.most_gains, floor, floor])[: 2 + hessian]
        self.place_items(np.floor(BINS * self.scores) / BINS)
        self._follow_arrivals()
        unit = self.unit * np.array([1, self.norm, self.norm])[: 2 + hessian]
        self.nats = max(1.0, -np.log((self.allowed / unit).min()))
        self.use_map(np.sqrt(STEEPNESS * self.steepest + LEAST_B2))

    def describe(self, relevance, given):
        """Set the rank weights and the relevance that are integrated, and what bounds gains and errors."""
        largest_rho, theta = np.abs(relevance).max(), given - (given[-1] if given.size == relevance.size else 0.0)
        shared = max(relevance.min(), 0.0) + min(relevance.max(), 0.0)
        shared += (relevance - shared).mean() if (relevance == shared).mean() <= 1 / 8 else 0.0
        self.theta, self.mean_theta, self.relevance = np.trim_zeros(theta, "b"), abs(theta.mean()), relevance - shared
        self.delta = self.moves = np.abs(np.diff(self.theta, append=0.0))
        self.most_gains, self.largest_gain = np.abs(given).sum() * largest_rho, np.abs(given).max() * largest_rho
        self.R, self.unit = self.delta.sum() * np.array([np.ptp(relevance), np.abs(self.relevance).max()])

    def place_items(self, at):
        """Split items between these scores and the bins above, so that the sum of the weights is kept."""
        share = np.expm1(self.scores - at) / np.expm1(1 / BINS)
        self.count, self.rho = np.append(1 - share, share), np.append(self.relevance, self.relevance)
        self.w = np.exp(np.append(at, at + 1 / BINS))

    def use_map(self, b):
        """Map time with this b, and take the ellipse of the formula for eta."""
        self.b, largest = b, LARGEST_ETA
        self.v_end = np.arcsinh(np.sqrt(self.S * self.end) / b)
        self.eta = largest / np.sqrt(1 + self.v_end**2 / 4 * (1 + largest**2 * b**2 / self.nats))
        turned = SPREAD[0] * self.v_end / 2  # Im v over sinh(eta) at the top of the ellipse
        self.eta = min(self.eta, np.arcsinh(TURNED * np.pi / 4 / turned))

    def _loss(self, t, step, inverse_z):
        """ln of the bound of the loss after t <= time of a step, its slope, and Newton's 1 / z, as in tail_bound.h."""
        time = np.exp(step / BINS)
        w, count = self.w[self.w * time < ARRIVED], self.count[self.w * time < ARRIVED]
        x, latest = w * t, w * time
        p, q, ranks = -np.expm1(-x), np.exp(-x), self.theta.size - self.count.sum() + count.sum()
        while True:
            factor = q + p / inverse_z
            arrived, spread = (np.stack([p / factor, p * q / factor**2]) @ count) / inverse_z
            off = arrived - (ranks - 0.5)
            if off <= 0 or off**2 <= spread or inverse_z >= LARGEST_INVERSE:
                break
            step = off / spread * arrived / (ranks - 0.5) if spread and ranks > 0.5 else np.inf
            inverse_z = min(inverse_z * (1 + step), LARGEST_INVERSE)
        rate, log_inverse = count @ (latest * (1 + 0.5 * latest * self.hessian) * q / factor), np.log(inverse_z)
        still_open = min(self.theta.size, inverse_z / (np.e * max(log_inverse, TINY))) if log_inverse < 1 else 1
        log_loss = count @ np.log(factor) + (ranks - 1) * log_inverse + np.log(rate + still_open)
        return log_loss, (1 - 1 / inverse_z) * (count @ (x * q / factor)), inverse_z

    def _allow(self, share):
        """Set the allowed errors for these shares of items in the slope; return the loss that is allowed."""
        mean = (self.count * self.rho) @ share / (self.count @ share)
        self.expected_norm = self.mean_theta * np.sqrt(self.count @ (share * (self.rho - mean)) ** 2)
        expected = self.rtol * self.expected_norm * np.array([0, 1, 0.5])
        allowed = np.maximum(self.guaranteed, expected[: self.guaranteed.size])
        self.allowed = 0.9 * allowed
        return min(0.1 * (allowed / np.array([1, 1, 2])[: allowed.size]).min() / self.R, 0.1)

    def _follow_arrivals(self):
        """Find the steepest arrivals, and the time after which little enough is lost."""
        placed, inverse_z, before, cut, filled = self.theta.size - 1, 1.0, (0.0, 0.0), 0.0, None
        self.steepest = self.norm = 0.0
        for step in itertools.count(np.floor((np.log((placed + 1) / self.S) - 1) * BINS)):
            x = self.w * np.exp(step / BINS)
            p, q = -np.expm1(-x), np.exp(-x)
            share, loss, late = x * q, (0.0, 0.0), 0.0
            arrived, slope, variance = self.count @ p, self.count @ share, self.count @ (p * q)
            ahead = arrived - placed
            if ahead <= 0.9 or not self.norm:
                self.norm, filled = max(self.norm, min(1.0, np.sqrt(self.count @ share**2))), share
            else:
                cut = cut or self._allow(filled)
                if ahead**2 > -np.log(cut) * variance or slope < cut:
                    start = inverse_z
                    *loss, inverse_z = self._loss(np.exp(step / BINS), step, start)
                if loss[0] < np.log(cut) or step >= BINS * 6 - BINS * self.scores.min() + 1:
                    break
                before, late = loss, ahead**2 / (-2 * np.log(cut) * arrived)
            self.steepest = max(self.steepest, slope**2 / variance * (1 - late))
        self.end, goal = np.exp(step / BINS), np.log(cut) - 1
        if loss[0] < np.log(cut):
            after = max((before[0] - goal) / (before[0] - loss[0]), 1 - (goal - loss[0]) * BINS / loss[1])
            end = np.exp((step - 1 + after) / BINS)
            if after < 1 and self._loss(end, step, start)[0] < np.log(cut):
                self.end = end

    def nodes(self):
        """The number of nodes, not rounded, by the bound on the ellipse, or on a smaller one that needs fewer."""
        return self.nodes_on(self.best_eta())

    def best_eta(self):
        """The ellipse that is taken."""
        eta, wanted = self.eta, self.nodes_on(self.eta)
        while 2 * eta * wanted > 3 * self.nats and (fewer := self.nodes_on(0.8 * eta)) < wanted:
            eta, wanted = 0.8 * eta, fewer
        return eta

    def nodes_on(self, eta):
        """The number of nodes by the bound on one ellipse."""
        return UNPROVED * ((self.log_errors(eta) - np.log(self.allowed)) / (2 * eta)).max()

    def log_errors(self, eta):
        """ln of the bounds of the errors of value, gradient and Hessian diagonal times e^(2 n eta)."""
        points, spread = self.points * np.ceil(0.2 / eta), np.zeros(6)
        spread[1::2] = SPREAD
        spread = np.polynomial.Polynomial(spread)
        angle = (np.arange(points)[:, np.newaxis] + 0.5) * np.pi / points
        x, scale = np.cosh(eta + 1j * angle), self.b**2 / self.S
        v = self.v_end / 2 * (1 + spread(x))
        t, dt = scale * np.sinh(v) ** 2, scale * np.sinh(2 * v) * self.v_end / 2 * spread.deriv()(x)
        dt *= np.sinh(eta + 1j * angle)
        wt, rho = self.w * t, np.abs(self.rho)
        q = np.exp(-np.maximum(wt.real, -350) - 1j * wt.imag)
        both = np.abs(q) + np.abs(1 - q)
        u, h = np.abs(1 - q) / both, self.w * np.abs(q) / both

        def total(x):
            return (x @ self.count)[:, np.newaxis]

        mean, variance, relevant = total(u), total(u * (1 - u)) + TINY, total(rho * h)
        k = np.arange(1, self.theta.size + 1)
        below, above = mean - 1 - k, k - 1 - mean  # without i and j
        d = np.maximum(np.maximum(below, above), 0)
        s = np.where(below > 0, np.minimum(variance + d / 3, mean), variance + d / 3)
        next_one = np.exp(-(d**2) / (2 * s)) * largest_chance(variance * np.exp(-d / s))
        k_is_next = (next_one @ self.moves)[:, np.newaxis]
        k_is_open = (np.minimum(np.cumsum(next_one, axis=1), 1) @ self.delta)[:, np.newaxis]
        norms = [relevant * np.minimum(k_is_open, np.abs(self.theta).sum() * largest_chance(variance))]
        factors = 1, np.abs(1 - wt), np.abs((1 - wt) ** 2 - wt)
        for others, own in list(itertools.pairwise(factors))[: 1 + self.hessian]:
            pairs = np.sqrt(total((others * h) ** 2)) * np.abs(t) * relevant * k_is_next
            norms.append(np.sqrt(total((own * rho * h) ** 2)) * k_is_open + pairs)
        logs = total(np.log(both)) + np.log(np.concatenate(norms, axis=1) * np.abs(dt) + TINY)
        return logs.max(axis=0) + np.log(np.exp(logs - logs.max(axis=0)).mean(axis=0)) + np.log(2 * np.pi) - eta


class PrecisionPanel(Panel):
    """Average precision: relevance is 0 or 1, and of the rank weights only their number counts."""

    def describe(self, relevance, given):
        """Set the bounds of rank weights and of weights of pairs, with the number of relevant items that count."""
        n_ranks, n_relevant = given.size, relevance.sum()
        k, last = np.arange(1, n_ranks + 2), 1 / relevance.size if n_ranks == relevance.size else 0.0
        theta = np.where(k <= n_ranks, 1 / k - last, 0.0) / n_relevant
        counted, (theta, later), k = theta * np.minimum(k, n_relevant), (theta[:-1], theta[1:]), k[:-1]
        one, many = theta - later, (theta - later) * np.minimum(k, n_relevant)
        ranks = slice(n_ranks - (last > 0))
        self.theta, self.delta = counted[:-1][ranks], np.abs(np.diff(counted))[ranks]
        self.moves = np.maximum(many, np.maximum(np.abs(later - one), np.abs(later - many)))[ranks]
        self.mean_theta, self.relevance = (theta * (1 + 2 * (k - 1) * n_relevant / relevance.size)).mean(), relevance
        self.most_gains, self.largest_gain = min(n_ranks, n_relevant) / n_relevant, 1 / n_relevant
        self.R = self.unit = theta[k <= n_relevant].sum()


def largest_chance(variance):
    """A bound of e^-V I_0(V), the variance of two items left out."""
    V = np.maximum(variance - 0.5, 0)
    return 1 / np.sqrt(np.maximum(1 + 2 * V, 2 * np.pi * V - 2.2))


def effort(scores, relevance, rank_weights, *, rtol=1e-3, hessian=False, average_precision=False):
    """The kernel's numbers of attempts, and of nodes in all of them."""
    problem = [np.ascontiguousarray(x, float) for x in (scores, relevance, rank_weights)]
    outputs = np.zeros((2, problem[0].size))
    diagonal = outputs[1] if hessian else None
    return _exact.solve_unchecked(*problem, rtol, False, outputs[0], diagonal, average_precision)[1:]
