// Keeps a page current: its content comes again by server-sent events, and only what differs is replaced, so that the
// focus, choices and opened parts stay. Without this script every page works, and shows the state of when it was loaded.

const main = document.querySelector("main[data-live]");
/** How far the browser's clock is ahead of the server's, in milliseconds. */
const clockLead = Date.now() - Date.parse(document.querySelector("main")?.dataset.now ?? "") || 0;

if (main !== null) follow(main);
setInterval(showAges, 1000);

/** Replaces the content of `main` whenever the server sends it again. */
function follow(main) {
  const events = new EventSource(location.href);
  events.addEventListener("message", ({ data }) => {
    const next = document.createElement("main");
    next.append(...new DOMParser().parseFromString(data, "text/html").body.childNodes);
    const focus = document.activeElement;
    replaceChildren(main, next);
    // A part that moves loses the focus.
    if (focus !== document.activeElement && main.contains(focus)) focus.focus({ preventScroll: true });
    showAges();
    showStale(false);
  });
  events.addEventListener("error", () => {
    // The browser asks again by itself, unless the answer was a refusal.
    showStale(true, events.readyState === EventSource.CLOSED);
  });
}

/** Shows that the page is not current, above its content. */
function showStale(isStale, isOver = false) {
  document.querySelector(".stale")?.remove();
  if (!isStale) return;
  const note = document.createElement("p");
  note.className = "stale";
  note.setAttribute("role", "status");
  note.textContent = isOver
    ? "This page does not change any more: load it again."
    : "davit does not answer now: this page shows the past.";
  document.querySelector("main")?.before(note);
}

/** Gives an element the children of another one. Equal children stay, and those with an id are found by it. */
function replaceChildren(old, next) {
  const known = new Map([...old.children].filter(({ id }) => id !== "").map((child) => [child.id, child]));
  let at = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const same = known.get(wanted.id) ?? (isAlike(at, wanted) ? at : undefined);
    if (same === undefined || !isAlike(same, wanted)) {
      old.insertBefore(wanted, at);
      continue;
    }
    if (same !== at) old.insertBefore(same, at);
    else at = at.nextSibling;
    update(same, wanted);
  }
  while (at !== null) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function isAlike(old, next) {
  return old !== null && old.nodeName === next.nodeName && (old.id ?? "") === (next.id ?? "");
}

function update(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  if (old.isEqualNode(next)) return;
  for (const { name } of [...old.attributes]) {
    // The reader has opened or closed this part.
    if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  // What the reader types or chooses is a property, which stays.
  replaceChildren(old, next);
}

/** Spells every age as the server does (layout.ts), and by the server's clock. */
function showAges() {
  const now = Date.now() - clockLead;
  for (const time of document.querySelectorAll("time[data-age]")) {
    const text = ageText(now - Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}

function ageText(ms) {
  const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
  const age = Math.max(0, ms);
  if (age < 2 * minute) return `${Math.floor(age / 1000)} s`;
  if (age < 2 * hour) return `${Math.floor(age / minute)} min`;
  if (age < 2 * day) return `${Math.floor(age / hour)} h`;
  return `${Math.floor(age / day)} d`;
}
