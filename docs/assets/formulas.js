// Sets the formulas of a page with KaTeX (assets/katex, version 0.19.1, MIT licence).
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const text = formula.textContent;
    katex.render(text.slice(2, -2), formula, {
      displayMode: text.startsWith("\\["),
      throwOnError: false,
    });
  }
});
