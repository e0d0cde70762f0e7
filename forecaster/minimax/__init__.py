"""The game of a round: the forecaster's mixture against nature, solved with a certificate."""
