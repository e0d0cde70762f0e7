"use strict";
// Opens the session, and asks for its state for as long as the page is open.

const SHORTEST_PAUSE_MS = 500;  // between two questions

async function openSession() {
  const opened = await post("open", { session: market.session });
  if (opened.error) throw new Error(opened.error);
  market.session = opened.session;
  sessionStorage.setItem(SESSION_KEY, market.session);
}

async function followMarket() {
  try {
    await openSession();
  } catch (error) {
    showFault(
      `The market could not be built (${error.message}); start the server again and reload.`);
    return;
  }
  for (;;) {  // half of the time at least is left to the market
    const start = performance.now();
    await ask("state", {}, figuresToAskFor());
    const pause = Math.max(SHORTEST_PAUSE_MS, performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

followMarket();
