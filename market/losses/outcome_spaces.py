r"""Outcome spaces other than the unit cube, mapped onto it: boxes and convex polytopes.

The game is played on [0, 1]^d. A box [low, high] is that cube in other units, y = low + (high -
low) u. A convex polytope is mapped onto the cube by its bounding box; its outcomes are then a part
of the cube, and everything that holds for all outcomes of the cube holds for them (the paper
allows any convex, bounded space in this way).
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses.base import Loss


class Box:
    """A box of outcomes in units of its own.

    ValueError if a side has no length or an end is not finite.

    Parameters
    ----------
    low, high : array (d,)
        Opposite corners.

    Examples
    --------
    >>> bikes = Box([0.0], [600.0])
    >>> bikes.to_unit([150.0]), bikes.from_unit([0.25])
    (array([0.25]), array([150.]))
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low = np.atleast_1d(np.asarray(low, np.float64))
        self.high = np.atleast_1d(np.asarray(high, np.float64))
        if self.low.shape != self.high.shape or self.low.ndim != 1:
            raise ValueError("low and high need one number per coordinate")
        if not np.isfinite([self.low, self.high]).all() or (self.high <= self.low).any():
            raise ValueError("low and high must be finite, and every high above its low")

    @property
    def outcomes(self) -> int:
        """Number of coordinates, d."""
        return len(self.low)

    def to_unit(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) in own units into the cube."""
        return np.asarray((np.asarray(y) - self.low) / (self.high - self.low))

    def from_unit(self, u: ArrayLike) -> Array:
        """Map outcomes (..., d) of the cube into own units."""
        return np.asarray(self.low + (self.high - self.low) * np.asarray(u))

    def move_inside(self, u: ArrayLike) -> Array:
        """Move outcomes (..., d) of the cube into the space; here they are in it already."""
        return np.asarray(u, dtype=np.float64)

    def pulled_back(self, loss: Loss) -> Loss:
        """Turn a loss (..., A) in own units into the same loss over the cube.

        Exactly where the affine map can be absorbed (separable powers, functions of a weighted sum
        of y itself, convex losses of one coordinate), and as a ``LipschitzLoss`` for minima of
        ratios and for functions with a Lipschitz constant of their own.

        Examples
        --------
        >>> from regretless.market.losses import Linear
        >>> Box([0.0], [600.0]).pulled_back(Linear([[0.001]])).losses([0.25])  # of 150
        array([0.15])
        """
        if loss.outcomes != self.outcomes:
            raise ValueError(f"a loss over {loss.outcomes} outcomes in {self.outcomes} dimensions")
        return loss.in_unit_cube(self.low, self.high - self.low)


class Polytope(Box):
    """The convex hull of given vertices, mapped by its bounding box.

    ValueError if the vertices span fewer than d dimensions.

    Parameters
    ----------
    vertices : array (V, d)
        In own units.

    Examples
    --------
    >>> triangle = Polytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> triangle.move_inside([1.0, 1.0])  # the nearest point on the way to the middle
    array([0.5, 0.5])
    """

    def __init__(self, vertices: ArrayLike) -> None:
        self.vertices = np.atleast_2d(np.asarray(vertices, dtype=np.float64))
        super().__init__(self.vertices.min(axis=0), self.vertices.max(axis=0))
        corners = self.to_unit(self.vertices)
        facets = np.array([[1.0, -1.0], [-1.0, 0.0]])  # of the interval [0, 1]
        if self.outcomes > 1:
            from scipy.spatial import ConvexHull, QhullError  # noqa: PLC0415 - slow, rarely needed

            try:
                facets = ConvexHull(corners).equations
            except QhullError as error:
                raise ValueError("the vertices must span all dimensions; add a vertex") from error
        # The polytope is the set of u with normals @ u <= levels.
        self._normals = facets[:, :-1]
        self._levels = -facets[:, -1]
        self._centre = corners.mean(axis=0)

    def move_inside(self, u: ArrayLike) -> Array:
        """Draw outcomes (..., d) outside to the border, straight towards the vertices' mean."""
        from_centre = np.asarray(u, dtype=np.float64) - self._centre
        distance_to_facets = self._levels - self._normals @ self._centre
        stretch = np.maximum((from_centre @ self._normals.T / distance_to_facets).max(-1), 1.0)
        return np.asarray(np.clip(self._centre + from_centre / stretch[..., None], 0.0, 1.0))
