// Long names in tables break after their separators, not anywhere; copied text stays the same.
document.addEventListener("DOMContentLoaded", () => {
  for (const name of document.querySelectorAll(".bd-article td code .pre")) {
    const parts = name.textContent.split(/(?<=::|[/._])(?=[^/._:])/);
    name.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }
});
