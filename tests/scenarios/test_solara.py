"""A class of markets on Mesa's own page: ``SolaraViz`` renders, steps and resets it.

Skipped where Mesa's extra ``viz`` is not installed.
"""

from collections.abc import Iterator
from typing import Any

import mesa
import pytest

from regretless import market_class

solara = pytest.importorskip("solara")
vuetify = pytest.importorskip("ipyvuetify")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of other packages
    pytest.mark.skipif(
        tuple(map(int, solara.__version__.split(".")[:2])) >= (1, 45),
        reason="Mesa's page fails with newer versions of solara",
    ),
]


def worst_regret() -> mesa.DataCollector:
    return mesa.DataCollector({"worst": lambda model: model.agents_frame()["swap_regret"].max()})


class MesaPage:
    """A page that shows a market."""

    def __init__(self, model: Any, parameters: dict[str, Any]) -> None:
        from mesa.visualization import (  # noqa: PLC0415 - of the extra
            SolaraViz,
            make_plot_component,
        )

        self.model = solara.reactive(model)

        @solara.component
        def page() -> None:
            with solara.AppLayout():
                SolaraViz(
                    self.model,
                    components=[make_plot_component("worst")],
                    model_params=parameters,
                )

        _, self._rendered = solara.render(page(), handle_error=False)

    def press(self, label: str) -> None:
        """Press the button with this label."""
        (button,) = [
            button
            for button in self._rendered.find(vuetify.Btn).widgets
            if label in button.children
        ]
        button.click()

    def close(self) -> None:
        self._rendered.close()


@pytest.fixture
def page() -> Iterator[MesaPage]:
    """Show five growers, of whom there may be others after a reset."""
    from mesa.visualization import Slider  # noqa: PLC0415 - of the extra

    growers = market_class(
        "crop-choice", {"growers": "cohort.growers.count"}, rounds=40, collector=worst_regret
    )
    slider = Slider("growers", 5, 2, 20, 1)
    shown = MesaPage(growers(growers=5, seed=3), {"growers": slider, "seed": 3})
    yield shown
    shown.close()


def test_the_page_steps_the_market(page: MesaPage) -> None:
    assert page.model.value.played == 0
    page.press("Step")
    assert page.model.value.played == 1


def test_the_page_resets_to_a_new_market(page: MesaPage) -> None:
    first = page.model.value
    page.press("Step")
    page.press("Reset")
    assert page.model.value is not first
    assert page.model.value.played == 0
    assert len(page.model.value.agents) == 5
