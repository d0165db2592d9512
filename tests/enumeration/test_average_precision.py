"""The expected average precision and its gradient, in every regime."""

import numpy as np
import pytest

from plrank_fast import reference


class TestReference:
    def test_two_documents(self):
        """The relevant one is first with probability p = 1/3, and second otherwise: 1/2 + p/2.

        Mutants: ranks in place of scores, which turns the order round; log-probabilities not raised to e.
        """
        value, gradient = reference.expected_average_precision(np.log([1.0, 2.0]), np.array([1.0, 0.0]), 2)
        assert value == pytest.approx(2 / 3)
        np.testing.assert_allclose(gradient, [1 / 9, -1 / 9])
