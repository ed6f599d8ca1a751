// Keys, and what is new while a run is written. The pages work without it.
"use strict";
(() => {
  const POLL_MS = 2000;
  const select = (selector, within = document) => within.querySelector(selector);
  const items = () => [...document.querySelectorAll("a[data-item]")];

  // Keys. Moving in a list moves the focus, so that Enter opens as everywhere.
  const keysOn = select("#keys-on");
  const storage = (() => { try { return localStorage; } catch { return null; } })();
  if (keysOn) {
    keysOn.checked = storage?.getItem("keys") !== "off";
    keysOn.addEventListener("change", () => storage?.setItem("keys", keysOn.checked ? "on" : "off"));
  }
  const help = select("#help");
  select("#help-open")?.addEventListener("click", () => help.showModal());

  const move = (by) => {
    const all = items();
    if (!all.length) return;
    const at = all.indexOf(document.activeElement);
    const to = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    all[to].focus();
    all[to].scrollIntoView({ block: "nearest" });
  };
  const follow = (selector) => { const link = select(selector); if (link) link.click(); return Boolean(link); };
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => items().includes(document.activeElement) && (move(1), true),
    ArrowUp: () => items().includes(document.activeElement) && (move(-1), true),
    n: () => follow("a[rel=next]"),
    p: () => follow("a[rel=prev]"),
    N: () => follow("a[rel=prev]"),
    o: () => follow('[data-testid="order"]'),
    u: () => follow('a[data-key="up"]'),
    "/": () => { const box = select("#filter"); box?.focus(); box?.select(); },
    "?": () => help.showModal(),
  };
  let going = 0;
  const isField = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isField(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (help?.open || (keysOn && !keysOn.checked)) return;
    if (going && Date.now() - going < 1500) {
      going = 0;
      if (/^[a-z]$/.test(event.key) && follow(`a[data-go="${event.key}"]`)) event.preventDefault();
      return;
    }
    if (event.key === "g") { going = Date.now(); return; }
    if (/^[vwaxr]$/.test(event.key)) { if (follow(`a[data-go="${event.key}"]`)) event.preventDefault(); return; }
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (action && action() !== false) event.preventDefault();
  });

  // A link to a turn opens what is folded there.
  const unfold = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    for (let parent = target; parent; parent = parent.parentElement) if (parent.tagName === "DETAILS") parent.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // Something is being built, or a run of the list is written: the content is asked for again, but not under
  // somebody's cursor.
  const refresh = async () => {
    const element = select("[data-refresh]");
    if (!element) return;
    if (!document.hidden && !select("#main").contains(document.activeElement)) {
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const main = select("#main", page);
        if (main) { select("#main").replaceChildren(...main.childNodes); document.title = page.title; watch(); }
      } catch { /* the server is away; asked again */ }
    }
    setTimeout(refresh, Number(element.dataset.refresh));
  };
  if (select("[data-refresh]")) setTimeout(refresh, Number(select("[data-refresh]").dataset.refresh));

  // A number that takes long is filled in when it is there.
  const count = async () => {
    const element = select("[data-count]");
    if (!element) return;
    try {
      const answer = await fetch(element.dataset.count, { headers: { Accept: "application/json" } });
      const number = answer.status === 200 ? (await answer.json()).count : null;
      if (number !== null) {
        element.textContent = number.toLocaleString("en");
        delete element.dataset.count;
        return;
      }
    } catch { /* the server is away; asked again */ }
    setTimeout(count, 1000);
  };
  count();

  // New rows. They go on top of a list that shows the newest first and is at its top; else they are offered.
  function watch() {
    const bar = select("[data-live]");
    if (!bar || bar.dataset.watched) return;
    bar.dataset.watched = "1";
    const message = select("#live-message"), button = select("#live-show"), body = select("#rows");
    let cursor = bar.dataset.cursor, waiting = 0, html = "";
    const fragment = (markup) => {
      const made = document.createElement("template");
      made.innerHTML = markup;
      return made.content;
    };
    const put = () => {
      for (const row of [...fragment(html).children].reverse()) {
        const old = document.getElementById(row.id);
        if (old) {
          if (old.contains(document.activeElement)) continue;
          old.replaceWith(row);
        } else body.prepend(row);
      }
      select('[data-testid="none"]')?.remove();
      html = ""; waiting = 0; button.hidden = true; message.textContent = "";
    };
    const reload = () => location.reload();
    const take = (answer) => {
      if (answer.back || answer.more) {
        message.textContent = answer.back ? "The run went back to an earlier step." : "Many new debates.";
        button.textContent = "Load the page again"; button.onclick = reload; button.hidden = false;
        return;
      }
      cursor = answer.cursor;
      for (const name of ["total", "steps"]) {
        const element = select(`[data-${name}]`);
        if (element && typeof answer[name] === "number") element.textContent = answer[name].toLocaleString("en");
      }
      if (typeof answer.course === "string") select("#course")?.replaceChildren(fragment(answer.course));
      html = answer.html + html;
      waiting += answer.count;
      if (!html) return;
      const calm = window.scrollY < 40 && !items().includes(document.activeElement);
      if (bar.dataset.insert && body && (calm || waiting === 0)) return put();
      message.textContent = `${waiting} new`;
      button.textContent = "Show";
      button.onclick = bar.dataset.insert && body ? put : () => follow('[data-testid="order"], [data-testid="first-page"]');
      button.hidden = false;
    };
    const ask = async () => {
      let goes = true;
      if (!document.hidden) {
        try {
          const url = new URL(bar.dataset.live, location.href);
          if (cursor) url.searchParams.set("after", cursor);
          const answer = await fetch(url, { headers: { Accept: "application/json" } });
          if (answer.status === 200) {
            const news = await answer.json();
            take(news);
            goes = news.live && !news.back && !news.more;
            if (!news.live) select(".live", bar).textContent = "not running";
          }
        } catch { /* the server is away; asked again */ }
      }
      if (goes) setTimeout(ask, POLL_MS);
    };
    setTimeout(ask, POLL_MS);
  }
  watch();
})();
