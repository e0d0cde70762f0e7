"""Sums of several actions in one vector: the product of all expected and true losses.

The kernel takes weights with their last axes swapped, (K, n, A), and adds in index order for each
action: no reassociation and no fused product, so that neither the order in memory nor the number of
actions changes a bit. Compilers do not find these vectors by themselves, so they are spelled out
for LLVM, which cuts them to the registers of the machine.
"""

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

NUMBER, LANE = ir.DoubleType(), ir.IntType(32)
_cgutils: Any = cgutils


class _View:
    """An array, or None, in code that is being made: read and written ``width`` numbers at a time.

    None stands for -0.0 everywhere, which changes no sum, not even the sign of a zero.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any, *, width: int) -> None:
        self.context, self.builder, self.kind, self.width = context, builder, kind, width
        self.vector = ir.VectorType(NUMBER, width)
        self.unset = ir.Constant(self.vector, ir.Undefined)
        if isinstance(kind, types.Array):
            self.array = context.make_array(kind)(context, builder, value)

    def spot(self, *place: Any) -> Any:
        """Return where a number lies."""
        parts = self.context, self.builder, self.kind, self.array
        return _cgutils.get_item_pointer(*parts, place, wraparound=False)

    def lanes(self, *place: Any) -> Any:
        """Read numbers that follow each other along the last axis."""
        if not isinstance(self.kind, types.Array):
            return ir.Constant(self.vector, [-0.0] * self.width)
        if self.kind.layout == "C":
            return self._loaded(place)
        *front, last = place
        found = self.unset  # and 64 bits each
        for lane in range(self.width):
            spot = self.spot(*front, self.builder.add(last, last.type(lane)))
            found = self.builder.insert_element(found, self.builder.load(spot), LANE(lane))
        return found

    def _loaded(self, place: tuple[Any, ...]) -> Any:
        narrow = self.kind.dtype == types.float32
        held = ir.VectorType(ir.FloatType(), self.width) if narrow else self.vector
        spot = self.builder.bitcast(self.spot(*place), held.as_pointer())
        found = self.builder.load(spot, align=4 if narrow else 8)
        return self.builder.fpext(found, self.vector) if narrow else found

    def repeated(self, i: Any) -> Any:
        """Read one number into all lanes."""
        first = self.builder.insert_element(self.unset, self.builder.load(self.spot(i)), LANE(0))
        every = ir.Constant(ir.VectorType(LANE, self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, self.unset, every)

    def write(self, numbers: Any, *place: Any) -> None:
        """Write numbers that follow each other."""
        self.builder.store(numbers, self._vector_at(place), align=8)

    def _vector_at(self, place: Any) -> Any:
        return self.builder.bitcast(self.spot(*place), self.vector.as_pointer())


def _summer(width: int) -> Any:
    """Make ``write_some(table, sums, k, a)``: as ``write_sums``, of ``width`` actions from a on."""

    def write_some(_context: Any, table: Any, sums: Any, k: Any, a: Any) -> tuple[Any, Any]:
        def emit(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            def view(kind: Any, value: Any) -> _View:
                return _View(context, builder, kind, value, width=width)

            row, column = values[2:]
            weights = view(table, values[0])
            count = _cgutils.unpack_tuple(builder, weights.array.shape, 3)[1]
            parts = [
                [
                    view(*pair)
                    for pair in zip(kind, _cgutils.unpack_tuple(builder, value), strict=True)
                ]
                for kind, value in zip(sums, _cgutils.unpack_tuple(builder, values[1]), strict=True)
            ]
            totals = [
                _cgutils.alloca_once_value(builder, before.lanes(row, column))
                for _, before, _, _ in parts
            ]
            with _cgutils.for_range(builder, count) as loop:
                read = weights.lanes(row, loop.index, column)
                for total, (_, _, point, _) in zip(totals, parts, strict=True):
                    product = builder.fmul(read, point.repeated(loop.index))
                    builder.store(builder.fadd(builder.load(total), product), total)
            for total, (out, _, _, after) in zip(totals, parts, strict=True):
                whole = builder.fadd(builder.load(total), after.lanes(row, column))
                out.write(whole, row, column)
            return context.get_dummy_value()

        return types.void(table, sums, k, a), emit

    return intrinsic(write_some)


_many, _sixteen, _eight, _four, _one = (_summer(width) for width in (32, 16, 8, 4, 1))


@compiled(inline="always")
def write_sums(table: Array, sums: tuple[Any, ...], k: int) -> None:
    """Write one sum, or several, of all actions of loss k in one pass over its weights.

    For each ``(out, before, point, after)`` of ``sums``, from left to right in the order of i,

        out[k, a] = before[k, a] + sum_i table[k, i, a] point[i] + after[k, a].

    Parameters
    ----------
    table : array (K, n, A)
        Weights with their last axes swapped; fastest where that makes it contiguous.
    sums : tuple of tuples
        ``out`` (K, A), contiguous; ``point`` (n,); ``before`` and ``after`` (K, A) or None.
    """
    actions = table.shape[2]
    a = 0
    while a + 32 <= actions:
        _many(table, sums, k, a)
        a += 32
    if a + 16 <= actions:
        _sixteen(table, sums, k, a)
        a += 16
    if a + 8 <= actions:
        _eight(table, sums, k, a)
        a += 8
    if a + 4 <= actions:
        _four(table, sums, k, a)
        a += 4
    while a < actions:
        _one(table, sums, k, a)
        a += 1
