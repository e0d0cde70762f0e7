"""Works of this project timed side by side with peers that do the same: ``python -m benchmarks``.

A work is a function of ``works.works`` that yields its duel; ``clock`` times one, ``results``
shows and writes the rows. Peers come with the extra ``peers``; one that is missing is skipped.
"""
