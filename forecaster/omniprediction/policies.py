"""Benchmark policies over tables: rules that suggest an action for every row at once.

    Threshold      one action below a value of one feature, another from there on
    LinearScore    the interval in which a linear score of the features falls
    Tree           a decision tree

All three are data (numbers, no code), so a model file can hold them. They have the ``predict`` of
scikit-learn's classifiers. Choosing a policy looks at outcomes: choose on rows that the
omnipredictor is not fitted to, or the rows are no independent sample given the policies and no
bound holds.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices

LEAF = -1


@dataclass(frozen=True)
class Threshold:
    """One action where a feature is below a threshold, another at or above it.

    Parameters
    ----------
    column : int
        The feature, from 0.
    below, above : int
        Actions.
    """

    column: int
    at: float
    below: int
    above: int

    def predict(self, X: ArrayLike) -> Indices:
        """Suggest an action for each row of a table (m, f): (m,)."""
        values = np.asarray(X, dtype=np.float64)[:, self.column]
        return np.where(values >= self.at, self.above, self.below).astype(np.intp)


@dataclass(frozen=True, eq=False)
class LinearScore:
    """The action of the interval in which ``X @ weights`` falls.

    Parameters
    ----------
    weights : array (f,)
    edges : array (k,)
        Ascending.
    actions : int array (k + 1,)
        Action i where the score is at least edge i - 1 and below edge i.

    Raises
    ------
    ValueError
        If the edges do not ascend or the numbers of edges and actions do not fit.
    """

    weights: Array
    edges: Array
    actions: Indices

    def __post_init__(self) -> None:
        if len(self.actions) != len(self.edges) + 1:
            raise ValueError(f"{len(self.edges)} edges need {len(self.edges) + 1} actions")
        if (np.diff(self.edges) < 0).any():
            raise ValueError("edges must ascend")

    def predict(self, X: ArrayLike) -> Indices:
        """Suggest an action for each row of a table (m, f): (m,)."""
        score = np.asarray(X, dtype=np.float64) @ np.asarray(self.weights, dtype=np.float64)
        place = np.searchsorted(self.edges, score, side="right")
        return np.asarray(self.actions, dtype=np.intp)[place]


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree; node 0 is the root.

    Parameters
    ----------
    feature : int array (nodes,)
        The feature that a node asks for, ``LEAF`` at a leaf.
    threshold : array (nodes,)
        A row goes left where the feature is at most this, in 32 bits as scikit-learn has it.
    left, right : int array (nodes,)
        Nodes.
    action : int array (nodes,)
        Suggested at a leaf.
    """

    feature: Indices
    threshold: Array
    left: Indices
    right: Indices
    action: Indices

    @classmethod
    def of(cls, classifier: Any) -> Self:
        """Copy a fitted ``sklearn.tree.DecisionTreeClassifier`` whose classes are actions."""
        tree = classifier.tree_
        action = np.asarray(classifier.classes_, dtype=np.intp)[tree.value[:, 0].argmax(1)]
        leaf = tree.children_left == tree.children_right
        return cls(
            np.where(leaf, LEAF, tree.feature).astype(np.intp),
            np.asarray(tree.threshold, dtype=np.float64),
            np.asarray(tree.children_left, dtype=np.intp),
            np.asarray(tree.children_right, dtype=np.intp),
            action,
        )

    def predict(self, X: ArrayLike) -> Indices:
        """Suggest an action for each row of a table (m, f): (m,)."""
        table = np.asarray(X).astype(np.float32)
        node = np.zeros(len(table), dtype=np.intp)
        rows = np.arange(len(table))
        while (asking := self.feature[node] != LEAF).any():
            here = node[asking]
            value = table[rows[asking], self.feature[here]]
            node[asking] = np.where(
                value <= self.threshold[here], self.left[here], self.right[here]
            )
        return np.asarray(self.action[node])


KINDS: dict[str, type[Threshold | LinearScore | Tree]] = {
    "threshold": Threshold,
    "linear-score": LinearScore,
    "tree": Tree,
}


def best_tree(X: ArrayLike, losses: Array, *, depth: int = 2, seed: int = 0) -> Tree:
    """Fit a decision tree to the best actions of a sample, each row weighed by what is at stake.

    Parameters
    ----------
    X : array (m, f)
    losses : array (m, A)
    seed : int
        For ties between splits.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    """
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - an optional extra

    classifier = DecisionTreeClassifier(max_depth=depth, random_state=seed)
    stakes = losses.mean(1) - losses.min(1)
    weights = stakes if stakes.sum() > 0 else None
    return Tree.of(
        classifier.fit(np.asarray(X, dtype=np.float64), losses.argmin(1), sample_weight=weights)
    )
