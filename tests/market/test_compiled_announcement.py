"""The first compilation of a process is announced, and what is found in the cache is not."""

import numba

from regretless.market.core.compiled import first_compilation_announced


def test_the_first_of_two_compilations_is_announced() -> None:
    announced: list[str] = []

    @numba.njit
    def double(value: float) -> float:
        return 2.0 * value

    with first_compilation_announced(lambda: announced.append("compiling")):
        double(1.5)
        double(3)  # of another type, so that it is compiled again
    assert announced == ["compiling"]


def test_code_that_is_compiled_already_is_not_announced() -> None:
    announced: list[str] = []

    @numba.njit
    def triple(value: float) -> float:
        return 3.0 * value

    triple(1.5)
    with first_compilation_announced(lambda: announced.append("compiling")):
        triple(2.5)
    assert announced == []
