"""One run on many processors or machines: its agents are shared out, the broadcast is not."""
