"use strict";
const all = (query, root = document) => [...root.querySelectorAll(query)];
const made = (tag, text, look) => Object.assign(document.createElement(tag), { textContent: text, className: look });
const key = (row, place) => {
  const cell = row.cells[place], text = cell.dataset.v ?? cell.textContent.trim();
  return text === "" || Number.isNaN(Number(text)) ? text : Number(text);
};
const count = (rows) => rows.length.toLocaleString("en");
const order = (a, b) => typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b)) : typeof a === "number" ? -1 : 1;

for (const table of all(".table > table")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = all("thead th", table);
  if (rows.length < 2) continue;
  heads.forEach((head, place) => {
    const button = made("button", head.textContent, "sort");
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const way = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      body.append(...rows.sort((a, b) => way * order(key(a, place), key(b, place))));
    });
  });
  if (rows.length <= 10) continue;
  const bar = made("div", "", "filter"), field = made("input", "", ""), shown = made("span", `${count(rows)} rows`, "");
  field.type = "search"; field.placeholder = "Filter rows";
  field.setAttribute("aria-label", `Filter rows of: ${table.caption.textContent}`); shown.setAttribute("role", "status");
  bar.append(field, shown); table.parentElement.before(bar);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    const kept = rows.filter((row) => !(row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word))));
    shown.textContent = `${count(kept)} of ${count(rows)} rows`;
  });
}

const tip = made("div", "", "tip"), hide = () => { tip.hidden = true; };
tip.id = "tip"; tip.setAttribute("role", "tooltip"); hide(); document.body.append(tip);
const show = (event) => {
  const at = event.target.closest?.("[data-tip]");
  if (!at) return hide();
  tip.textContent = at.dataset.tip; tip.hidden = false; at.setAttribute("aria-describedby", "tip");
  const box = at.getBoundingClientRect(), below = box.bottom + tip.offsetHeight + 8 < innerHeight;
  tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(8, below ? box.bottom + 4 : box.top - tip.offsetHeight - 4)}px`;
};
all("[data-tip]").forEach((one) => { one.tabIndex = 0; });
for (const name of ["pointerover", "focusin"]) document.addEventListener(name, show);
document.addEventListener("focusout", hide);
document.addEventListener("scroll", hide, { passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

const parts = all("details.section"), every = made("button", "Expand all", "every");
const turn = (open) => { all("details").forEach((part) => { part.open = open; }); every.textContent = open ? "Close all" : "Expand all"; };
every.addEventListener("click", () => turn(every.textContent === "Expand all"));
if (parts.length > 2) parts[0].before(every);
addEventListener("beforeprint", () => turn(true));
const reach = () => {
  const at = document.getElementById(decodeURIComponent(location.hash.slice(1))), part = at?.closest("details");
  if (part) { part.open = true; at.scrollIntoView(); }
};
addEventListener("hashchange", reach); reach();
