// Tables that can be sorted and searched. Without scripts they are as they were printed.
"use strict";

const SEARCHED_FROM_ROWS = 8;

/** Return the number that a cell begins with, or null: "1,234 [1,200, 1,260]" is 1234. */
function numberOf(text) {
  const number = text.replace(/[\u202f\u00a0,\s](?=\d{3})/g, "").replace("\u2212", "-").match(/^[-+]?\d*\.?\d+/);
  return number ? parseFloat(number[0]) : null;
}

/** Order two texts: numbers by size, before texts by letters; what is missing is last in both directions. */
function compare(first, second, direction) {
  const [a, b] = [numberOf(first), numberOf(second)];
  const missing = (text) => (text === "" || text.startsWith("\u2013") ? 1 : 0);
  if (missing(first) !== missing(second)) return missing(first) - missing(second);
  if (a !== null && b !== null && a !== b) return direction * (a - b);
  if ((a === null) !== (b === null)) return a === null ? 1 : -1;
  return direction * first.localeCompare(second, "en", { numeric: true });
}

/** Return the label of a group without the path of its runs, which follows a colon. */
function labelOf(group) {
  return group.innerText.replace(/: [^:]*\/[^:]*$/, "");
}

/** Return the text of a cell without the label of its group. */
function textOf(cell) {
  const own = [...cell.childNodes].filter((node) => node.className !== "of-group");
  return own.map((node) => node.textContent).join("").trim();
}

/** Return the rows with values, each with the row of its group, in printed order. */
function rowsOf(table) {
  let group = null;
  const rows = [];
  for (const row of table.tBodies[0].rows) {
    if (row.classList.contains("group")) group = row;
    else rows.push({ row, group });
  }
  return rows;
}

/** Sort by the column under a heading: up, down, then as printed. */
function sort(table, printed, rows, heading, column) {
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  const order = next[heading.getAttribute("aria-sort") || "none"];
  for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", order);
  const direction = order === "ascending" ? 1 : -1;
  const text = ({ row }) => textOf(row.cells[column]);
  const sorted = [...rows].sort((first, second) => compare(text(first), text(second), direction));
  table.classList.toggle("sorted", order !== "none");
  table.tBodies[0].append(...(order === "none" ? printed : sorted.map(({ row }) => row)));
  if (order !== "none") table.tBodies[0].prepend(...printed.filter((row) => row.classList.contains("group")));
}

function makeSortable(table, rows) {
  const printed = [...table.tBodies[0].rows];
  let column = 0;
  for (const heading of table.tHead.rows[0].cells) {
    const position = column;
    column += heading.colSpan;
    heading.setAttribute("aria-sort", "none");
    heading.tabIndex = 0;
    const sortHere = () => sort(table, printed, rows, heading, position);
    heading.addEventListener("click", (event) => event.target.closest("a") || sortHere());
    heading.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        sortHere();
      }
    });
  }
  for (const { row, group } of rows) {
    if (group) row.cells[0].insertAdjacentHTML("afterbegin", '<span class="of-group"></span>');
    if (group) row.cells[0].firstChild.textContent = labelOf(group);
  }
}

function makeSearchable(table, rows) {
  const box = document.createElement("input");
  Object.assign(box, { type: "search", placeholder: "search " + rows.length + " rows" });
  box.setAttribute("aria-label", "search this table");
  const nothing = Object.assign(document.createElement("p"), { className: "no-hit", textContent: "No row matches." });
  nothing.setAttribute("role", "status");
  nothing.hidden = true;
  table.closest(".scroll").before(box, nothing);
  const texts = rows.map(({ row, group }) => ((group ? group.innerText + " " : "") + row.innerText).toLowerCase());
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/);
    const shown = new Set();
    rows.forEach(({ row, group }, index) => {
      row.hidden = !words.every((word) => texts[index].includes(word));
      if (!row.hidden) shown.add(group);
    });
    for (const { group } of rows) if (group) group.hidden = !shown.has(group);
    nothing.hidden = shown.size > 0;
  });
}

function prepare(table) {
  const rows = rowsOf(table);
  if (table.tHead && rows.length > 1) makeSortable(table, rows);
  // What has no headings is a list of facts.
  const isWhole = table.closest("figure").querySelector("[data-rows]") === null;
  if (table.tHead && isWhole && rows.length >= SEARCHED_FROM_ROWS) makeSearchable(table, rows);
}

/** Lead to the row that the address names: it may have been in no row before. */
function findRow() {
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView();
  return target !== null;
}

/** Give a table all its rows and their footnotes; the script beside the page calls this. */
function allRows(name, rows, footnotes) {
  const figure = document.getElementById("table-" + name);
  const printed = figure.querySelector("table");
  // A copy: what sorted the few rows that were there belongs to the old one.
  const table = printed.cloneNode(true);
  table.classList.remove("sorted");
  if (table.tHead) table.tHead.innerHTML = figure.dataset.head;
  table.tBodies[0].innerHTML = rows;
  printed.replaceWith(table);
  for (const old of figure.querySelectorAll(".further, .footnotes, input[type=search], .no-hit")) old.remove();
  table.closest(".scroll").insertAdjacentHTML("afterend", footnotes);
  prepare(table);
  if (figure.contains(document.getElementById(location.hash.slice(1)))) findRow();
}

/** Load all rows of the long tables whose buttons are given. */
function loadRows(buttons) {
  for (const button of buttons) {
    button.disabled = true;
    const script = document.createElement("script");
    script.src = button.dataset.rows;
    script.addEventListener("error", () => (button.textContent = button.dataset.rows + " is missing"));
    document.head.append(script);
  }
}

const buttons = document.querySelectorAll("button[data-rows]");
for (const button of buttons) {
  const figure = button.closest("figure");
  figure.dataset.head = figure.querySelector("thead")?.innerHTML ?? "";
  button.addEventListener("click", () => loadRows([button]));
}
for (const table of document.querySelectorAll("figure.table table")) prepare(table);
addEventListener("hashchange", () => {
  if (location.hash && !findRow()) loadRows(document.querySelectorAll("button[data-rows]:enabled"));
});
if (location.hash && !findRow()) loadRows(buttons);
/** Make a table as small as it must be to fit on paper: A4 without its margins, in pixels. No interval is broken. */
const PAPER_WIDTH = ((210 - 2 * 14) / 25.4) * 96;
function fitPaper(table) {
  const style = table.style;
  Object.assign(style, { zoom: "", width: "min-content", fontSize: "7pt" });
  const factor = Math.min(1, PAPER_WIDTH / table.getBoundingClientRect().width);
  Object.assign(style, { zoom: factor < 1 ? factor : "", width: "", fontSize: "" });
}

// Paper can't unfold or scroll anything.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => (details.open = true));
  document.querySelectorAll("figure.table table").forEach(fitPaper);
});
addEventListener("afterprint", () => document.querySelectorAll("table").forEach((table) => (table.style.zoom = "")));

// How a number was made: its formula, its runs, and the code that has both in a notebook.
function headingOf(cell) {
  let end = 0;
  for (const heading of cell.closest("table").tHead?.rows[0].cells ?? []) {
    end += heading.colSpan;
    if (cell.cellIndex < end) return heading;
  }
}

function intervalOf(cell) {
  const next = cell.nextElementSibling;
  return (next?.matches(".interval") && next.firstChild?.textContent) || "";
}

function codeOf(column, digest) {
  const study = JSON.stringify(document.body.dataset.study), end = JSON.stringify("-" + digest);
  const columns = JSON.stringify([...new Set(["repetition", "status", column, "throughput"])]);
  return [
    "import dlperf_study",
    `dataset = dlperf_study.open_study(${study}).dataset`,
    "rows, runs = dataset.configurations, dataset.runs",
    `display(rows[rows.configuration_id.str.endswith(${end})].filter(regex="^${column}(_low|_high)?$"))`,
    `runs[runs.configuration_id.str.endswith(${end})].filter(${columns})`,
  ].join("\n");
}

function showHowMade(link, heading) {
  const dialog = document.createElement("dialog"), cell = link.closest("td"), column = heading.dataset.column;
  const add = (tag, text) => Object.assign(dialog.appendChild(document.createElement(tag)), { textContent: text });
  const interval = intervalOf(cell) && " " + intervalOf(cell);
  dialog.className = "how-made";
  add("h2", link.textContent + interval);
  add("p", heading.dataset.definition || column);
  const runs = add("a", "The runs it was computed from");
  runs.href = link.getAttribute("href");
  runs.addEventListener("click", () => dialog.close());
  add("p", "In a notebook:");
  add("pre", codeOf(column, link.hash.replace("#run-", "")));
  add("button", "Close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener("click", (event) => {
  const link = event.target.closest('td.number a[href*="#run-"]'), heading = link && headingOf(link.closest("td"));
  if (!heading?.dataset.column || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  showHowMade(link, heading);
});

// A number of a sentence that is in one cell of the tables, with its interval, was made as that cell was.
const cellsOf = new Map();
for (const link of document.querySelectorAll('td.number a[href*="#run-"]')) {
  const cell = link.closest("td"), column = headingOf(cell)?.dataset.column, printed = link.textContent + " " + intervalOf(cell);
  if (!column || !intervalOf(cell)) continue;
  const first = cellsOf.get(printed);
  const isSame = !first || (first.hash === link.hash && headingOf(first.closest("td")).dataset.column === column);
  cellsOf.set(printed, isSame ? first ?? link : null);
}
for (const sentence of document.querySelectorAll(".findings li")) {
  const walker = document.createTreeWalker(sentence, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) offerNumbers(text);
}

/** Make each number of a text that is in one cell of the tables a button that shows how it was made. */
function offerNumbers(text) {
  for (const part of [...text.data.matchAll(/([\d.\u202f]+)((?: times)? )(\[[^\]]+\])/g)].reverse()) {
    const link = cellsOf.get(part[1] + " " + part[3].replaceAll("\u00a0", " "));
    if (!link) continue;
    const number = text.splitText(part.index);
    number.splitText(part[0].length);
    const button = Object.assign(document.createElement("button"), { type: "button", className: "number", textContent: part[0] });
    button.addEventListener("click", () => showHowMade(link, headingOf(link.closest("td"))));
    number.replaceWith(button);
  }
}

// On a phone the answer would be below the fold.
if (matchMedia("(max-width: 40rem)").matches) document.querySelector("details.about")?.removeAttribute("open");
