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
    s: () => follow('[data-mark^="star "] button'),
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
      const view = { k: "tokens", i: "prompt" }[event.key];  // of the first turn
      if (/^[a-z]$/.test(event.key) && (follow(`a[data-go="${event.key}"]`) || (view && follow(`main a[href*="/${view}?"]`)))) event.preventDefault();
      return;
    }
    if (event.key === "g") { going = Date.now(); return; }
    if (/^[vwaxr]$/.test(event.key)) { if (follow(`a[data-go="${event.key}"]`)) event.preventDefault(); return; }
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
    if (action && action() !== false) event.preventDefault();
  });

  // The filter box lists the fields that begin with what is typed and, after a colon, their values.
  const box = select("#filter");
  if (box) {
    const list = Object.assign(document.createElement("ul"), { id: "filter-list", hidden: true });
    const set = (name, value) => (value === null ? box.removeAttribute(name) : box.setAttribute(name, value));
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Fields and values");
    list.dataset.testid = "filter-list";
    box.after(list);
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", list.id], ["aria-expanded", "false"]]) set(name, value);
    let fields = null, chosen = -1, start = 0;
    const close = () => { list.hidden = true; chosen = -1; set("aria-expanded", "false"); set("aria-activedescendant", null); };
    const choose = (at) => {
      chosen = (at + list.children.length) % list.children.length;
      [...list.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === chosen)));
      set("aria-activedescendant", list.children[chosen].id);
      list.children[chosen].scrollIntoView({ block: "nearest" });
    };
    const take = (option) => {
      const text = option.dataset.text, end = text.endsWith(":") ? "" : " ";
      box.setRangeText(text + end, start, box.selectionEnd, "end");
      box.focus();
      end ? close() : open(false);
    };
    const offers = (asked) => {
      const typed = box.value.slice(0, box.selectionEnd);
      const value = typed.match(/(?:^|[\s(-])([A-Za-z][\w.]*):("[^"]*|[^\s"()]*)$/);
      const field = value ? fields.find((one) => one.name === value[1].toLowerCase()) : null;
      const begins = (word, typed) => word.toLowerCase().replace('"', "").startsWith(typed.toLowerCase().replace('"', ""));
      start = typed.length - (value ? value[2] : typed.match(/[\w.]*$/)[0]).length;
      const part = typed.slice(start);
      if (field) return field.words.filter((word) => begins(word, part) && word !== part).map((word) => [word, field.about]);
      if (value || (!part && !asked) || !/(^|[\s(-])$/.test(typed.slice(0, start))) return [];
      return fields.filter((one) => begins(one.name, part)).map((one) => [`${one.name}:`, one.about]);
    };
    const open = async (asked) => {
      try {
        fields ??= await (await fetch(box.dataset.fields)).json();
      } catch { return; /* the server is away */ }
      const found = offers(asked);
      list.replaceChildren(...found.map(([text, about], place) => {
        const option = Object.assign(document.createElement("li"), { id: `filter-option-${place}` });
        option.setAttribute("role", "option");
        option.dataset.text = text;
        const name = Object.assign(document.createElement("b"), { textContent: text });
        option.append(name, ` ${about}`);
        option.addEventListener("mousedown", (event) => { event.preventDefault(); take(option); });
        return option;
      }));
      chosen = -1;
      set("aria-activedescendant", null);
      list.hidden = !found.length;
      set("aria-expanded", String(!list.hidden));
    };
    box.addEventListener("input", () => open(false));
    box.addEventListener("blur", close);
    box.addEventListener("keydown", async (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) {
        event.preventDefault();
        if (list.hidden) await open(true);
        if (!list.hidden) choose(chosen < 0 && by < 0 ? -1 : chosen + by);
      } else if (!list.hidden && event.key === "Escape") {
        event.stopPropagation();
        close();
      } else if (chosen >= 0 && (event.key === "Enter" || event.key === "Tab")) {
        event.preventDefault();
        take(list.children[chosen]);
      }
    });
  }

  // The heads of a sortable table sort its rows: numbers by value, other cells as text, and missing values last.
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = text.match(/^[+-]?\d+(\.\d+)?/);
    return number ? Number(number[0]) : text;
  };
  const order = (a, b, sign) => {
    if (a === "–" || b === "–") return (a === "–") - (b === "–");
    return sign * (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
  };
  for (const table of document.querySelectorAll("table.sortable"))
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button"; button.className = "sort"; button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => order(value(a, column), value(b, column), down ? -1 : 1));
        table.tBodies[0].append(...rows);
      });
    });

  // What scrolls sideways can be scrolled by keys.
  const reach = () => {
    for (const box of document.querySelectorAll(".wide, .text, .chips")) {
      const scrolls = box.scrollWidth > box.clientWidth && !box.querySelector("a, button, input");
      if (scrolls) box.tabIndex = 0; else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", reach);
  reach();

  // A link to a turn opens what is folded there.
  const unfold = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    for (let parent = target; parent; parent = parent.parentElement) if (parent.tagName === "DETAILS") parent.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  const fetched = async (options = { headers: { Accept: "text/html" } }) => {
    const answer = await fetch(location.href, options);
    return [answer, new DOMParser().parseFromString(await answer.text(), "text/html")];
  };

  // A star, label or note is stored without leaving the page; only its own forms change.
  document.addEventListener("submit", async (event) => {
    const form = event.target, mark = form.dataset.mark;
    if (!mark) return;
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form)), button = event.submitter;
    if (button?.name) fields.append(button.name, button.value);
    const same = (page) => [...page.querySelectorAll("form[data-mark]")].filter((other) => other.dataset.mark === mark);
    const old = same(document), place = old.indexOf(form), index = [...form.elements].indexOf(document.activeElement);
    let answer, page;
    try {
      [answer, page] = await fetched({ method: "POST", body: fields });
      if (!answer.ok) throw new Error(page.querySelector('[data-testid="error"]')?.textContent ?? page.body.textContent);
    } catch (error) {
      const status = select("[role=status]", form) ?? form.appendChild(document.createElement("span"));
      status.role = "alert"; status.textContent = `not saved: ${error.message}`;
      return;
    }
    const fresh = same(page);
    old.forEach((one, number) => fresh[number] && one.replaceWith(fresh[number]));
    const now = fresh[place], status = now && select("[role=status]", now);
    if (status) status.textContent = "saved";
    if (index >= 0) now?.elements[index]?.focus();
  });

  // Something is being built, or a run of the list is written: the content is asked for again, but not under
  // somebody's cursor.
  const refresh = async () => {
    const element = select("[data-refresh]");
    if (!element) return;
    if (!document.hidden && !select("#main").contains(document.activeElement)) {
      try {
        const [, page] = await fetched(), main = select("#main", page);
        if (main) { select("#main").replaceChildren(...main.childNodes); document.title = page.title; watch(); }
      } catch { /* the server is away; asked again */ }
    }
    setTimeout(refresh, Number(element.dataset.refresh));
  };
  if (select("[data-refresh]")) setTimeout(refresh, Number(select("[data-refresh]").dataset.refresh));

  // A page asks for itself again: for a number that takes long, and for what is new while its run is written.
  const COUNT = '[data-testid="count"]';
  const copy = (page, selector) => {
    const there = select(selector, page);
    if (there) select(selector)?.replaceChildren(...there.cloneNode(true).childNodes);
  };
  const count = async () => {
    if (!select("[data-count]")) return;
    try {
      const [answer, page] = await fetched();
      if (answer.status === 200) copy(page, COUNT);
    } catch { /* the server is away; asked again */ }
    setTimeout(count, 1000);
  };
  count();

  // New rows are put on top of a list that shows the newest first and is at its top; else they are offered.
  function watch() {
    const bar = select("[data-live]");
    if (!bar || bar.dataset.watched) return;
    bar.dataset.watched = "1";
    const message = select("#live-message"), button = select("#live-show"), inserts = bar.dataset.live === "insert";
    const total = (page) => Number(select("[data-total]", page)?.textContent.replaceAll(",", "")) || 0;
    let known = total(document);
    const offer = (text, label, act) => {
      message.textContent = text; button.textContent = label; button.onclick = act; button.hidden = false;
    };
    const take = (page) => {
      const rows = [...(select("#rows", page)?.children ?? [])], body = select("#rows");
      const fresh = rows.filter((row) => !document.getElementById(row.id)).length;
      const added = total(page) - known;
      copy(page, COUNT);
      if (added < 0) return offer("The run returned to an earlier step.", "Reload the page", () => location.reload());
      if (inserts && fresh && (!body || (fresh === rows.length && body.children.length)))
        return offer("Many new debates.", "Reload the page", () => location.reload());
      const put = () => {
        for (const row of [...rows].reverse()) {
          const old = document.getElementById(row.id);
          if (!old) body.prepend(row);
          else if (!old.contains(document.activeElement)) old.replaceWith(row);
        }
        select('[data-testid="none"]')?.remove();
        known = total(page); button.hidden = true; message.textContent = "";
      };
      const calm = window.scrollY < 40 && !items().includes(document.activeElement);
      if (inserts && body && (calm || !fresh)) return put();
      if (inserts ? fresh : added) offer(`${inserts ? fresh : added} new`, "Show", inserts ? put : () => follow('[data-testid="order"], [data-testid="page-first"]'));
    };
    const ask = async () => {
      let goes = true;
      if (!document.hidden) {
        try {
          const [answer, page] = await fetched();
          if (answer.status === 200) {
            take(page);
            goes = Boolean(select("[data-live]", page));
            if (!goes) select(".live", bar).textContent = "not running";
          }
        } catch { /* the server is away; asked again */ }
      }
      if (goes) setTimeout(ask, POLL_MS);
    };
    setTimeout(ask, POLL_MS);
  }
  watch();
})();
