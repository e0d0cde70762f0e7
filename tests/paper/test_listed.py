"""Streams on which listed losses are compared: outcomes of a market whose forecast is one model."""

import numpy as np

from paper import listed


def test_a_stream_gives_the_outcomes_of_each_round() -> None:
    stream = listed.stream_of("iid", 4, seed=0)
    assert stream.rounds == 4
    truths = [stream.nature(round_index) for round_index in range(4)]
    assert np.shape(truths) == (4, stream.model.game.blocks[0].basis.size)
    assert (np.array(truths) >= 0).all()
