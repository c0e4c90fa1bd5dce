"""What documents say of types."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from decal_cli.documents import spelled_out

T = TypeVar("T", bound=np.generic)


def test_a_type_is_what_stands_behind_its_name_as_numpy_names_arrays_from_2_5_on() -> None:
    of_array = np.ndarray[Any, np.dtype[np.float64]]
    named = TypeAliasType("named", np.ndarray[Any, np.dtype[T]], type_params=(T,))
    assert spelled_out(named[np.float64]) == of_array == spelled_out(of_array)
    assert spelled_out(NDArray[np.float64]).__origin__ is np.ndarray
    assert spelled_out(int) is int and spelled_out(tuple[int, ...]) == tuple[int, ...]
