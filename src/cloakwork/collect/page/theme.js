// Runs before the first paint, so that a chosen theme does not flash. The choice stays in this browser.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("cloakwork-theme");
  } catch {
    // a browser that keeps nothing for this page follows the system
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
