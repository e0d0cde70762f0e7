"""Many agents of one kind as stacked arrays: those who respond, those who learn, and scripts.

``responding`` has the agents who respond to the forecast, ``learning`` the learners,
``scripted_agents`` the agents that a user writes, and ``traders`` those of the order book.
``parts`` cuts a cohort up for several workers.
"""
