"""How values have spread: figures against those of numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tailrace.operate.spread import Spread


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_all_values(seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(0, 3, 5000)
    spread = Spread()
    for value in values:
        spread.add(float(value))
    assert (spread.count, spread.least, spread.greatest) == (5000, values.min(), values.max())
    assert spread.average == pytest.approx(values.mean())
    for share in (0.0, 0.5, 0.95, 0.99, 1.0):
        assert spread.quantile(share) == pytest.approx(np.quantile(values, share, method="inverted_cdf"), rel=0.011)


def test_nothing_and_zeros_have_figures() -> None:
    spread = Spread()
    assert (spread.average, spread.quantile(0.5), spread.least) == (0, 0, 0)
    for value in (0.0, 0.0, 5.0):
        spread.add(value)
    assert (spread.least, spread.quantile(0.5)) == pytest.approx((0, 0), abs=1e-5)
    before = spread.copy()
    spread.add(9.0)
    assert (before.count, before.greatest, before.quantile(1)) == pytest.approx((3, 5, 5), rel=0.01)
