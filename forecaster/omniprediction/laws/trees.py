"""Many regression trees in one set of arrays: in which leaf a row falls, and what stands there.

Trees are fitted by scikit-learn and copied, so that a model file holds numbers and a loaded model
needs no scikit-learn. A row goes left where a feature, in 32 bits, is at most the threshold.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled

Leaves = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees with their nodes in one row of numbers.

    Parameters
    ----------
    feature, left, right : int array (nodes,)
        What a node asks for, and the nodes below it; a leaf is below itself.
    threshold, value : array (nodes,)
        ``value`` is what a tree forecasts at a leaf, 0 where it is not asked.
    roots : int array (trees,)

    Raises
    ------
    ValueError
        If a walk could leave the arrays or never end, as in a file that somebody forged.
    """

    feature: Indices
    threshold: Array
    left: Indices
    right: Indices
    value: Array
    roots: Indices

    def __post_init__(self) -> None:
        nodes = np.arange(len(self.feature))
        leaf, sides = self.left == nodes, (self.left, self.right)
        inside = all((side >= nodes).all() and (side < len(nodes)).all() for side in sides)
        ends = bool(((self.right == nodes) == leaf).all())
        sizes = {len(self.threshold), len(self.value), len(self.left), len(self.right)}
        roots = bool(((self.roots >= 0) & (self.roots < len(nodes))).all())
        if not (inside and ends and roots and sizes == {len(nodes)} and self.feature.min() >= 0):
            raise ValueError("these numbers are no trees")

    @classmethod
    def of(cls, estimators: Iterable[Any], *, rate: float = 0.0) -> Self:
        """Copy fitted trees of scikit-learn; a leaf's value is ``rate`` times the tree's own."""
        parts: list[list[Any]] = [[], [], [], [], []]
        roots, first = [], 0
        for estimator in estimators:
            tree = estimator.tree_
            leaf, nodes = tree.children_left < 0, np.arange(tree.node_count)
            own = (
                np.where(leaf, 0, tree.feature),
                tree.threshold,
                np.where(leaf, nodes, tree.children_left) + first,
                np.where(leaf, nodes, tree.children_right) + first,
                rate * tree.value[:, 0, 0],
            )
            for part, column in zip(parts, own, strict=True):
                part.append(column)
            roots.append(first)
            first += tree.node_count
        whole = [np.concatenate(part) for part in parts]
        ints = [np.ascontiguousarray(whole[i], dtype=np.intp) for i in (0, 2, 3)]
        reals = [np.ascontiguousarray(whole[i], dtype=np.float64) for i in (1, 4)]
        return cls(ints[0], reals[0], ints[1], ints[2], reals[1], np.array(roots, dtype=np.intp))

    def leaves(self, features: Array) -> Leaves:
        """Return the leaf of every row (m, f) in every tree: (m, trees)."""
        found = np.empty((len(features), len(self.roots)), dtype=np.int32)
        table = np.ascontiguousarray(features, dtype=np.float32)
        if self.feature.max() >= table.shape[1]:
            raise ValueError("these trees ask for a feature that is not there")
        _descend(table, self.feature, self.threshold, self.left, self.right, self.roots, found)
        return found

    def sums(self, features: Array) -> Array:
        """Return the sum of all trees' values for every row: (m,)."""
        return np.asarray(self.value[self.leaves(features)].sum(1))


@compiled
def _descend(  # noqa: PLR0913 - arrays of one kernel
    table: Any, feature: Any, threshold: Any, left: Any, right: Any, roots: Any, found: Any
) -> None:
    for tree in range(len(roots)):
        for row in range(len(table)):
            node = roots[tree]
            while left[node] != node:
                low = table[row, feature[node]] <= threshold[node]
                node = left[node] if low else right[node]
            found[row, tree] = node
