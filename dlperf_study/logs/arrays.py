"""Columns of numbers, by what they hold: real numbers, whole ones, or which rows are meant."""

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
