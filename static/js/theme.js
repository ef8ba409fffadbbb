// Runs before the first paint, so it is no module: the theme must stand before anything is drawn.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const choices = ["system", "light", "dark"];

  const remembered = () => {
    try {
      const choice = localStorage.getItem("dexweb-theme");
      return choices.includes(choice) ? choice : "system";
    } catch {
      return "system";
    }
  };
  const remember = (choice) => {
    try {
      localStorage.setItem("dexweb-theme", choice);
    } catch {
      // Storage is refused: the choice holds for this page.
    }
  };
  const show = (choice) => {
    root.dataset.choice = choice;
    root.dataset.theme = choice === "system" ? (dark.matches ? "dark" : "light") : choice;
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.setAttribute("aria-label", `Theme: ${choice}. Change it`);
      button.title = `Theme: ${choice}`;
    }
    root.dispatchEvent(new CustomEvent("themechange"));
  };

  show(remembered());
  dark.addEventListener("change", () => show(root.dataset.choice));
  addEventListener("storage", (event) => event.key === "dexweb-theme" && show(remembered()));
  document.addEventListener("DOMContentLoaded", () => show(root.dataset.choice));
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-switch]")) return;
    const next = choices[(choices.indexOf(root.dataset.choice) + 1) % choices.length];
    remember(next);
    show(next);
  });
})();
