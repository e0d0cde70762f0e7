r"""One step of the adaptive weights' potential, with constants that are nearly the least.

For Phi(R, C) = exp(max(R, 0)^2 / (3 C)), w(R, C) = [Phi(R + 1, C + 1) - Phi(R - 1, C + 1)] / 2,
|g| <= 1 and R <= C,

    (1)   Phi(R + g, C + |g|) <= Phi(R, C) + w(R, C) g + q |g| / (C + 1),    q = .338,
    (2)   w(R, C) <= k Phi(R, C),    k = (e^(1/3) - 1/e) / 2.

Luo and Schapire (2015, Lemma 5) have (1) with 3/2 in place of q; (2) holds with
e^(1/3) / 2 already.

**Proof of (2).** With v = 1 / (3 (C + 1)) and R >= 1, w / Phi = (e^a - e^b) / 2, where
a = (2 R C + C - R^2) / (3 C (C + 1)) grows with R up to R = C, where it is 1/3, and
a - b = 4 R v <= 4/3. So e^a - e^b = e^a (1 - e^(b - a)) <= e^(1/3) (1 - e^(-4/3)). For R < 1,
1 / Phi >= e^(-1/3) and w / Phi <= (e^(1/3) - e^(-1/3)) / 2 < k.

**Proof of (1).** max(x, 0)^2 / y is convex, and so is its exponential along g in [0, 1] and in
[-1, 0]. Hence the left side is at most its chords', and q need only be at least

    K(R, C) = (C + 1) { [Phi(R + 1, C + 1) + Phi(R - 1, C + 1)] / 2 - Phi(R, C) }.

For R < 0 it is at most K(0, C). For R >= 1, with s = R^2 / (3 C), from cosh x <= e^(x^2 / 2) and
e^y - 1 <= y e^y,

    K <= (1 - s) e^(s + (1 - s) v) / 3 <= e^v / 3  for s < 1,   K <= 0  for s >= 1,

which is below q where v <= ln(3 q). What is left are 0 <= R <= 1, and 1 <= R <= sqrt(3 C) with
v >= ln(3 q): in terms of R and v, and E(x) = (e^x - 1) / x, which grows,

    K = (R + 1)^2 E((R + 1)^2 v) / 6 + (R - 1)^2 E((R - 1)^2 v) / 6 - R^2 E(R^2 u) / (3 (1 - 3 v)),

with u = v / (1 - 3 v) and without the second term where R < 1. Every term grows with R and with v,
so that on a rectangle the first ones at its upper corner less the last at its lower one bound K;
halving rectangles until that is below q ends (``tests/forecaster/test_lemma.py`` does it, half a
million of them). The greatest value of K is .33596, near R = .98 and C = 10.2.

The sum of the last terms of (1) over rounds is at most q / ln 2 ln(1 + C), since z <= ln(1 + z) /
ln 2 on [0, 1].
"""

import math

GROWTH = (math.exp(1 / 3) - math.exp(-1)) / 2  # k
REMAINDER = 0.338  # q
LOGARITHM = REMAINDER / math.log(2)
