"""Who does many tasks: this process, or the workers of a Dask cluster, here or elsewhere.

``choice`` says who does them. An ``Executor`` (``base``) does them in this process, one after
another; a ``Cluster`` (``cluster``) hands them to workers. What happens in a worker is in
``worker``, and how long one has shown no life in ``heartbeats``.
"""
