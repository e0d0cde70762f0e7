"""Every named scenario runs, its description holds, and every built-in name is in one of them.

The longer ones are played in part.
"""

from pathlib import Path

import numpy as np
import pytest
import worlds
from worlds import built_in

from regretless.forecaster.models import PANEL
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.markets.aggregate import FEEDBACKS
from regretless.scenarios import load
from regretless.scenarios.config.files import catalogue
from regretless.scenarios.listing import REGISTRIES, listing


def test_a_claim_is_of_the_file_as_it_stands() -> None:
    assert load("pigou").spec.description
    assert not load("pigou", rounds=3).spec.description


def test_no_grower_would_have_gained_a_hundredth() -> None:
    model = worlds.played(load("crop-choice"), log_every=500)
    agents = model.agents_frame()
    regret = agents["decision_swap_regret"]
    assert len(agents) == 200
    assert regret.max() < 0.01
    assert (regret >= agents["omniprediction_regret"] - 1e-12).all()
    assert (regret <= agents["bound_from_bias"] + 1e-9).all()
    assert (regret <= agents["bound"]).all()
    forecaster = model.game.blocks[0].forecaster
    assert forecaster.certificate_sum <= 0.1 * np.sqrt(model.played)
    limits = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert bias.max() <= limits.bias(occupancy) + 1e-9


@pytest.mark.parametrize("kind", ["studies", *REGISTRIES])
def test_names_that_files_may_use_are_listed_with_a_meaning(kind: str) -> None:
    lines = listing(kind, verbose=True)
    assert lines
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)
    with pytest.raises(UserError, match="list: unknown kind 'utilties'; did you mean 'utilities'"):
        listing("utilties")


# In no file: those whom `regretless train` seats in any, the default models, markets by feedback.
UNNAMED = {"cma", "plan", "prices", *(model["kind"] for model in PANEL.values())}


def test_every_built_in_name_is_used() -> None:
    """A basis is also in use where it is the default of a cohort."""
    kinds = "utility", "response", "learner", "agent", "adversary", "forecaster", "policy"
    registries = [getattr(register, kind) for kind in (*kinds, "market", "basis")]
    wanted = {*FEEDBACKS}.union(*map(built_in, registries)) - UNNAMED
    text = "".join(path.read_text(encoding="utf-8") for path in catalogue().values())
    for name in ("consumers", "mixed-bazaar"):
        few = [f"cohort.{own.name}.count=3" for own in load(name).spec.cohort]
        text += "".join(f'"{b.name}"' for b in worlds.told(name, *few).build().game.blocks)
    assert [name for name in sorted(wanted) if f'"{name}"' not in text] == []


def test_the_page_has_every_scenario() -> None:
    page = (Path(__file__).parents[2] / "docs/scenarios.md").read_text(encoding="utf-8")
    assert [name for name in catalogue() if f"**{name}**" not in page] == []
