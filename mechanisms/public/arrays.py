"""Arrays of numpy, named by what they hold."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Yes or no, for each row or cell.
Flags = NDArray[np.bool_]
#: Numbers of values, of the smallest type that holds all of a column.
Codes = NDArray[np.unsignedinteger]
