"""One run on many processors or machines: its agents are shared out, the game is not.

The **conductor** plays the game with those who cannot be shared out (``division``); the seats of
all others are empty there, and their cohorts stand-ins that nobody can look into (``remote``). What
agents hear goes on record (``record``). A **share** of them, told the record from the first line
on, does to the last bit what its agents do in the whole game. Shares are asked one question at a
time: after every block of rounds, which they play while the conductor plays the next, for the rows
of the logs; where a market answers to agents, or the adversary is told what they do, in every round
for what theirs come to, which adds up (``market.numerics.exact_sum``). In the end the whole market
takes over what became of all agents.

A worker builds the whole market, cuts its share out and keeps it between tasks (``tasks``); a
**crew** hands tasks to workers (``crew``). If a worker dies, the next one goes on from the share's
checkpoint, if it sees the run's folder, or from the first line. A conductor that dies leaves there
the record, the rows that were put together and its checkpoint, from which ``--resume`` goes on. No
share's checkpoint is ahead of that.
"""
