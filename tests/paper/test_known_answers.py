"""Models of the literature: what the table measures, where the answer is exact."""

import pandas as pd
import pytest

from paper import known_answers
from paper.known_answers import Answer
from regretless.scenarios.config.files import catalogue


def measured(answer: Answer) -> float:
    """Return what the table measures of a figure, with the first of its seeds."""
    (row,) = known_answers.measure_answer((answer, answer.seeds[0]))
    return float(row["measured"])


def answer_named(scenario: str, figure: str) -> Answer:
    """Return the first figure of this name."""
    for answer in known_answers.answers():
        if (answer.scenario, answer.figure) == (scenario, figure):
            return answer
    raise AssertionError(figure)


def test_prices_and_bayes_rule_are_those_of_theory() -> None:
    assert measured(answer_named("pricing-algorithms", "Nash price")) == pytest.approx(
        1.473, abs=5e-4
    )
    assert measured(answer_named("pricing-algorithms", "monopoly price")) == pytest.approx(
        1.925, abs=5e-4
    )
    assert measured(answer_named("betting", "distance from Bayes' rule")) < 1e-6


def test_each_figure_is_of_a_bundled_scenario_and_has_a_job_for_each_seed() -> None:
    answers = known_answers.answers()
    assert {answer.scenario for answer in answers} <= set(catalogue())
    assert len(known_answers.jobs()) == sum(len(answer.seeds) for answer in answers)


def test_a_line_has_the_mean_and_the_spread_over_seeds() -> None:
    row = {"model": "a", "figure": "b", "change": "", "known": "2"}
    table = pd.DataFrame([row | {"seed": 0, "measured": 1.0}, row | {"seed": 1, "measured": 3.0}])
    line = known_answers.text(table).splitlines()[1].split()
    assert line[-5:] == ["2.0000", "1.0000", "1.0000", "3.0000", "2"]
