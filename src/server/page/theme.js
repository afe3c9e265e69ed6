// Sets the colours before anything is painted: the one script that the page waits for.
try {
  const { theme } = JSON.parse(localStorage.getItem("turboquant.settings") || "{}");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage, or not ours: as the system has it.
}
