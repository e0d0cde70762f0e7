"""The game of a round: what to predict so that no event's bias can grow, whatever happens.

Every round the forecaster plays a game against nature. It chooses a distribution over predictions;
nature, who knows it, chooses the outcome. What the forecaster pays is what all events' biases, each
with the weight that its past gives it, grow by in expectation. There is always a distribution that
pays nothing or less, whatever nature does, and a **solver** finds one that pays little. With it
comes a **certificate**: the most that nature could win against that very distribution, computed
from it and not assumed. The bounds of ``forecaster.guarantees`` add up the certificates.

    game      the game, its walk, and what every solver offers
    cube      predictions in the box or the simplex
    image     predictions that are means of weighted outcomes: in conv s(Y)
    support   for a basis, the outcome that pays nature most
    program   the linear programs that mix the points found
"""
