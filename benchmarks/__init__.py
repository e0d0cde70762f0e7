"""Works of this project timed side by side with peers that do the same: ``python -m benchmarks``.

``works.works`` and ``scale.works`` list functions that each prepare a duel (``duels.Duel``);
``duels.time_duels`` times them, and ``__main__`` shows and writes the rows. Peers come with the
extra ``peers``; one that is missing is skipped.
"""
