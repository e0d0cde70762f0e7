"""The sum of an array's numbers in the order in which NumPy adds them up.

Sums of doubles depend on their order in the last bits, and a kernel that takes the place of an
expression in NumPy should not change what is played. NumPy adds up in pairs (Higham 1993,
doi:10.1137/0914050): fewer than ``LANES`` numbers one after another; up to ``MAX_BLOCK`` numbers in
``LANES`` sums side by side, which are then added in pairs; more of them in two halves.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

LANES = 8
MAX_BLOCK = 128  # numbers
MAX_HALVINGS = 64


@compiled()
def _sum_of_block(numbers: Array, first: int, end: int) -> float:
    """Return the sum of at most ``MAX_BLOCK`` numbers."""
    total = 0.0
    index = first
    if end - first >= LANES:
        s0 = numbers[first]
        s1 = numbers[first + 1]
        s2 = numbers[first + 2]
        s3 = numbers[first + 3]
        s4 = numbers[first + 4]
        s5 = numbers[first + 5]
        s6 = numbers[first + 6]
        s7 = numbers[first + 7]
        index = first + LANES
        while index + LANES <= end:
            s0 += numbers[index]
            s1 += numbers[index + 1]
            s2 += numbers[index + 2]
            s3 += numbers[index + 3]
            s4 += numbers[index + 4]
            s5 += numbers[index + 5]
            s6 += numbers[index + 6]
            s7 += numbers[index + 7]
            index += LANES
        total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    while index < end:
        total += numbers[index]
        index += 1
    return total


@compiled()
def pairwise_sum(numbers: Array) -> float:
    """Return the sum of numbers (m,), the same bits as ``np.add.reduce`` of a contiguous array."""
    end = numbers.shape[0]
    if end <= MAX_BLOCK:
        return _sum_of_block(numbers, 0, end)
    # The parts that are halved, the largest first: where each ends, and the sum of its first half
    # once that is known. A recursive kernel cannot be kept in Numba's cache.
    end_of_part = np.empty(MAX_HALVINGS, np.int64)
    sum_of_first_half = np.empty(MAX_HALVINGS)
    is_in_second_half = np.empty(MAX_HALVINGS, np.bool_)
    depth = 0
    first = 0
    while True:
        while end - first > MAX_BLOCK:
            half = (end - first) // 2
            end_of_part[depth] = end
            is_in_second_half[depth] = False
            depth += 1
            end = first + half - half % LANES
        total = _sum_of_block(numbers, first, end)
        while depth > 0 and is_in_second_half[depth - 1]:
            depth -= 1
            total = sum_of_first_half[depth] + total
        if depth == 0:
            return total
        sum_of_first_half[depth - 1] = total
        is_in_second_half[depth - 1] = True
        first = end
        end = end_of_part[depth - 1]
