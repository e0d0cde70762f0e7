"""All pairs of many things in few groups."""

from collections.abc import Callable, Sequence

Pair = tuple[str, str]


def covering(
    names: Sequence[str], pairs: Sequence[Pair], fits: Callable[..., bool], most: int
) -> list[tuple[str, ...]]:
    """Return groups of names that fit together, at most so many, in which every pair occurs."""
    left, made = list(pairs), []
    while left:
        group: tuple[str, ...] = left[0]
        while len(group) < most:
            new = {n: sum({n, *pair} <= {n, *group} and n in pair for pair in left) for n in names}
            more = [n for n in names if new[n] and n not in group and fits(*group, n)]
            if not more:
                break
            group = (*group, max(more, key=new.__getitem__))
        made.append(group)
        left = [pair for pair in left if not {*pair} <= {*group}]
    return made
