// Runs before the first paint, so that the page does not flash in the wrong theme.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("cloakwork-theme");
  } catch {
    // without storage, the page follows the system
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
