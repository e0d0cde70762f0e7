"""The paper's tables and published results, re-measured: ``python -m paper NAME``.

Nothing that is installed imports this package. Its figures need matplotlib, which the extra
``paper`` brings.
"""
