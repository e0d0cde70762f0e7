"""Ctrl-C between two rounds, and not in the middle of one.

A round changes many parts of a market, one after the other: one that is cut off leaves ledgers with
a round that the history has not. Whoever plays rounds in a loop holds Ctrl-C back until the round
in hand has ended (``interrupts_between_rounds``), and then raises KeyboardInterrupt. A market that
was stopped so can go on, and plays what it would have played without the stop.
"""

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ROUND_GRACE_SECONDS = 2.0  # that a round may go on after Ctrl-C


class RoundInterrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of a round that did not end in time: its model is of no use any more."""


@contextmanager
def interrupts_between_rounds() -> Iterator[threading.Event]:
    """Note Ctrl-C instead of raising it in the middle of a round; yields the note.

    A round that has not ended ``ROUND_GRACE_SECONDS`` after Ctrl-C, as of an agent that loops for
    ever, is ended by RoundInterrupted. Compiled code that never returns cannot be ended so. Where
    Ctrl-C does nothing, as in a thread or a process in the background, nothing is noted.
    """
    noted = threading.Event()  # Ctrl-C was pressed: the round in hand is the last one
    overdue = threading.Event()  # and that round has had its time
    main_thread = threading.main_thread()
    timers: list[threading.Timer] = []  # none before Ctrl-C, then one
    has_own_thread = threading.current_thread() is main_thread
    if not has_own_thread or signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN):
        yield noted
        return

    def end_the_round() -> None:
        overdue.set()  # so that the interrupt below raises in ``note_interrupt``
        if hasattr(signal, "pthread_kill") and main_thread.ident is not None:
            signal.pthread_kill(main_thread.ident, signal.SIGINT)  # also ends a sleep
        else:
            _thread.interrupt_main()

    def note_interrupt(_signal: int, _frame: object) -> None:
        if overdue.is_set():
            raise RoundInterrupted
        if not noted.is_set():
            noted.set()
            timer = threading.Timer(ROUND_GRACE_SECONDS, end_the_round)
            timer.daemon = True
            timers.append(timer)
            timer.start()

    earlier_handler = signal.signal(signal.SIGINT, note_interrupt)
    try:
        yield noted
    finally:
        for timer in timers:
            timer.cancel()
        signal.signal(signal.SIGINT, earlier_handler)
