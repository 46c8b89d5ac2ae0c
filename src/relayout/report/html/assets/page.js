// The page around the graphs. Texts of the model are only ever text nodes, never markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name === "className" ? "class" : name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
  return made;
}
const find = id => document.getElementById(id);
const number = (count, unit) => unit === "bytes" ? bytes(count) : unit === "seconds" ? (count < 0.1 ? (count * 1000).toFixed(1) + " ms" : count.toFixed(2) + " s") : String(count);
const plural = (count, noun) => count + " " + noun + (count === 1 ? "" : "s");

async function readData() {
  const holder = find("data");
  if (holder.type === "application/json") return JSON.parse(holder.textContent);
  const packed = Uint8Array.from(atob(holder.textContent), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function head(data) {
  find("title").textContent = data.title;
  find("subtitle").textContent = data.subtitle;
  find("headline").textContent = data.headline;
  find("headline").className = data.tone;
  find("footer").textContent = data.version;
  for (const card of data.cards) {
    const value = element("div", { className: "value" + (/[a-z] [a-z]/i.test(card.value) || card.value.length > 14 ? " words" : "") });
    if (card.before) value.append(element("span", { className: "was" }, card.before + " →"));
    value.append(element("b", {}, card.value));
    find("cards").append(element("div", { className: "card " + card.tone }, element("div", { className: "label" }, card.label), value, element("div", { className: "note" }, card.note)));
  }
}
function tables(data) {
  const numeric = text => /^[\d.,]+( ?(B|KB|MB|GB|TB|s|ms|%))?$/.test(text);
  for (const chart of data.charts) {
    const most = Math.max(...chart.bars.flatMap(bar => [bar[1], bar[2] || 0]), 1e-12);
    const rows = chart.bars.flatMap(([label, before, after]) => [
      element("span", {}, label),
      element("span", { className: "pair" },
        element("span", { className: "bar" + (after === null ? " after" : ""), style: `width:${100 * before / most}%` }),
        after === null ? null : element("span", { className: "bar after", style: `width:${100 * after / most}%` })),
      element("span", { className: "figure" }, number(before, chart.unit) + (after === null ? "" : " → " + number(after, chart.unit)))]);
    find("more").append(element("section", { className: "panel" }, element("h2", {}, chart.title), element("div", { className: "bars" }, ...rows)));
  }
  for (const table of data.tables) {
    const kinds = table.headings.map((_, at) => table.rows.every(row => numeric(row[at])) ? "number" : "");
    const line = (cells, tag) => element("tr", {}, ...cells.map((cell, at) => element(tag, { className: kinds[at] }, cell)));
    const body = element("table", {}, element("thead", {}, line(table.headings, "th")), element("tbody", {}, ...table.rows.map(row => line(row, "td"))));
    find("more").append(element("section", { className: "panel wide" }, element("h2", {}, table.title), body, element("p", { className: "soft" }, table.note)));
  }
  if (data.notes.length) find("more").append(element("section", { className: "panel wide" }, element("h2", {}, "Notes"), element("ul", {}, ...data.notes.map(note => element("li", {}, note)))));
}

// A line of an explanation, with what it begins with made visible.
function reason(line) {
  const match = /^((?:stored for|wanted by):?) (.*)$/s.exec(line);
  return match ? element("div", {}, element("b", {}, match[1]), " " + match[2]) : element("div", { className: "soft" }, line);
}

class Page {
  constructor(data) {
    this.data = data;
    head(data);
    if (data.graph) this.graphs();
    tables(data);
    document.addEventListener("keydown", event => this.key(event));
    window.addEventListener("hashchange", () => this.follow());
    find("theme").addEventListener("click", () => this.theme());
    if (window.matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
    document.documentElement.dataset.ready = "yes";
  }
  graphs() {
    const graph = this.graph = new Graph(this.data.graph), both = this.data.graph.both;
    find("main").hidden = find("overview").hidden = false;
    if (!both) find("pane1").parentElement.hidden = true, find("pane1").parentElement.style.display = "none";
    const canvases = both ? [find("pane0"), find("pane1")] : [find("pane0")];
    this.view = new View(graph, canvases, item => this.detail(item));
    const counts = this.data.graph.boxes[0].c;
    const hidden = number => number ? `; not drawn: ${number} for shapes and constants` : "";
    (both ? ["Before", "After"] : ["Model"]).forEach((word, pane) =>
      find("caption" + pane).replaceChildren(word, element("span", {}, ` ${plural(counts[pane], "node")}, ${plural(counts[pane + 2], "Transpose")}${hidden(this.data.graph.left_out[pane])}`)));
    canvases.forEach((canvas, pane) => canvas.setAttribute("aria-label", (pane ? "After" : "Before") + ": arrows follow edges, n and p go through Transposes, Enter folds and unfolds"));
    this.legend(both);
    this.leftList();
    this.detail(null);
    this.view.start();
    this.map = new TransposeMap(find("map"), graph, item => this.view.show(item));
    const press = (id, action) => find(id).addEventListener("click", action);
    press("next", () => this.step(1));
    press("previous", () => this.step(-1));
    press("fold", () => { graph.foldAll(); this.view.start(); });
    press("unfold", () => { graph.unfoldMoving(600); this.view.draw(); });
    press("fit", () => this.view.fit());
    press("help", () => this.help());
    find("search").addEventListener("input", () => this.search(0));
    find("search").addEventListener("keydown", event => { if (event.key === "Enter") this.search(event.shiftKey ? -1 : 1); });
    this.follow();
    if (this.view.selected === null) this.first();
  }
  // What is left is what people look for: the largest such Transpose is shown at first.
  first() {
    const pane = this.data.graph.both ? 1 : 0;
    const left = this.graph.moving.filter(item => this.graph.transpose(item, pane));
    const shown = left.length ? left : this.graph.moving;
    if (!shown.length) return;
    const size = item => (this.graph.transpose(item, pane) || this.graph.transpose(item, 0)).y;
    this.view.show(shown.reduce((most, item) => size(item) > size(most) ? item : most));
  }
  legend(both) {
    const line = (kind, words) => {
      const canvas = element("canvas", { width: 34, height: 10 }), draw = () => { const pen = canvas.getContext("2d"); pen.clearRect(0, 0, 34, 10); pen.strokeStyle = this.view.colour(kind); pen.lineWidth = 2.4; pen.setLineDash(DASHES[kind]); pen.beginPath(); pen.moveTo(0, 5); pen.lineTo(34, 5); pen.stroke(); };
      draw();
      (this.redraw ||= []).push(draw);
      return element("span", {}, element("i", {}, canvas), words);
    };
    const swatch = (style, words) => element("span", {}, element("i", { style: "width:16px;height:12px;border-radius:3px;" + style }), words);
    const key = both ? [swatch("background:var(--gonefill);border:1.6px dashed var(--gone)", "removed"), swatch("background:var(--left)", "left")] : [swatch("background:var(--left)", "Transpose")];
    find("key").append(...key);
    find("legend").append(line("first", "channels first (NCHW)"), line("last", "channels last (NHWC)"), line("weight", "weight"), line("tensor", "other tensor"),
      ...Object.entries(GLYPHS).map(([words, glyph]) => element("span", {}, glyph + " " + words)),
      ...(both ? [element("span", {}, "≈ restated"), element("span", {}, "+ new")] : []));
  }
  leftList() {
    const both = this.data.graph.both, pane = both ? 1 : 0, groups = new Map();
    for (const item of this.graph.moving) {
      const move = this.graph.transpose(item, pane);
      if (!move) continue;
      const alike = move.c.length ? JSON.stringify(move.c.map(line => line.replace(/[\d, ]+(and [\d]+)?/g, " "))) : "perm " + move.p;
      groups.set(alike, [...(groups.get(alike) || []), item]);
    }
    const list = [...groups.values()].sort((a, b) => this.moved(b, pane) - this.moved(a, pane));
    const asked = list.some(([item]) => this.graph.transpose(item, pane).c.length) ? ", and why" : "", left = list.flat().length, removed = this.graph.moving.length && both ? this.graph.data.boxes[0].c[2] - left : 0;
    const target = find("left");
    target.append(element("h2", {}, both ? (left ? `Left: ${plural(left, "Transpose")}${asked}` : "No Transpose is left") : (left ? `${plural(left, "Transpose")}${asked}` : "No Transposes")));
    if (both && !left && removed > 0) target.append(element("p", { className: "soft" }, removed === 1 ? "The one there was is removed; a dashed mark in the graph shows where it was." : `All ${removed} are removed; dashed marks in the graph show where they were.`));
    if (this.data.offers.length) target.append(element("div", { className: "offer" }, ...this.data.offers.map(offer => element("div", {}, offer))));
    for (const items of list) {
      const move = this.graph.transpose(items[0], pane), perms = new Set(items.map(each => String(this.graph.transpose(each, pane).p)));
      const what = perms.size > 1 ? `${items.length} with ${perms.size} perms` : `${items.length > 1 ? items.length + " × " : ""}perm ${move.p ? move.p.join(" ") : "?"}`;
      const names = items.slice(0, 4).map(item => element("li", {}, this.link(item, pane)));
      target.append(element("div", { className: "why" },
        element("div", { className: "what" }, `${what}, ${bytes(this.moved(items, pane))}`),
        element("div", { className: "soft" }, [...new Set(items.map(each => this.graph.transpose(each, pane).m))].join(", ")),
        ...move.c.map(reason),
        element("ul", {}, ...names, items.length > 4 ? element("li", { className: "soft" }, `${items.length - 4} more (n goes through them)`) : null)));
    }
  }
  moved(items, pane) { return items.reduce((sum, item) => sum + this.graph.transpose(item, pane).y, 0); }
  link(item, pane) { const side = this.graph.side(item, pane) || this.graph.any(item); return element("button", { className: "link mono", type: "button", onclick: () => this.view.show(item) }, side.n || side.op); }

  detail(item) {
    const target = find("detail"), graph = this.graph;
    target.replaceChildren();
    if (item === null) { target.append(element("h2", {}, "Select a node"), element("p", { className: "soft" }, "Click a node, or press n for the next Transpose. Boxes open and close with a click.")); return; }
    if (graph.isBox(item)) {
      const box = graph.box(item), [before, after, moved, left] = box.c;
      target.append(element("h2", {}, box.t), element("p", {}, this.data.graph.both ? `${before} → ${plural(after, "node")}, ${moved} → ${plural(left, "Transpose")}` : `${plural(before, "node")}, ${plural(moved, "Transpose")}`));
      return;
    }
    const node = graph.data.nodes[item], side = node.a || node.b, name = side.n;
    if (location.protocol !== "about:") history.replaceState(null, "", "#node=" + encodeURIComponent(name));
    const states = { removed: "removed", new: "new in the result", restated: "restated in another order or form", same: "as given" };
    target.append(element("h2", {}, side.op === "input" || side.op === "output" ? side.op + " " + name : side.op), this.data.graph.both ? element("p", { className: "soft" }, states[node.s]) : "");
    const list = element("dl"), row = (term, ...what) => list.append(element("dt", {}, term), element("dd", {}, ...what));
    row("name", element("code", {}, name));
    if (node.b && node.a && node.b.n !== node.a.n) row("name before", element("code", {}, node.b.n));
    const move = side.t, was = node.b && node.b.t;
    if (move) {
      row("perm", `${move.p ? move.p.join(" ") : "unknown"} (${move.m || "rank unknown"}), ${bytes(move.y)} read and written`);
      if (node.s === "removed") row("removed by", was.by || "the choice of layouts: what it read is stored in the order its readers want");
      else if (move.why.length) row(node.s === "new" ? "why it is here" : "why it stays", ...move.why.map(reason));
      if (node.s !== "removed") for (const offer of this.data.offers) row("what would help", offer);
    }
    [0, 1].forEach(pane => {
      const one = graph.side(item, pane);
      if (!one || (pane === 1 && node.s === "same")) return;
      const word = this.data.graph.both && node.s !== "same" ? (pane ? ", after" : ", before") : "";
      const tensors = places => element("ul", {}, ...places.map(place => { const [label, shape, layout] = graph.value(pane, place); return element("li", {}, `${shape} ${layout} `, element("code", {}, label)); }));
      if (one.r.length) row("reads" + word, tensors(one.r));
      if (one.w.length) row("writes" + word, tensors(one.w));
      if (one.at) row("attributes" + word, one.at);
      if (one.g) row("kernel" + word, one.g);
    });
    if (side.ln) row("source", element("code", {}, side.ln));
    target.append(list);
    target.scrollTop = 0;
  }
  step(direction) {
    const items = this.graph.moving;
    if (!items.length) return;
    const at = items.indexOf(this.view.selected);
    const next = at >= 0 ? at + direction : direction > 0 ? 0 : -1;
    this.view.show(items[(next + items.length) % items.length]);
  }
  search(direction) {
    const wanted = find("search").value.trim().toLowerCase(), graph = this.graph;
    const texts = this.texts ||= graph.data.nodes.map(node => [node.b, node.a].map((side, pane) => side ? [side.op, side.n, ...side.w.map(place => graph.value(pane, place)[0])].join(" ") : "").join(" ").toLowerCase());
    const found = wanted ? texts.map((text, item) => text.includes(wanted) ? item : -1).filter(item => item >= 0) : [];
    this.view.hits = new Set([...found, ...found.map(item => graph.shownAs(item))]);
    this.place = direction && found.length ? ((this.place ?? -1) + direction + found.length) % found.length : 0;
    find("found").textContent = wanted ? (found.length ? `${this.place + 1} of ${found.length}` : "none") : "";
    if (found.length) this.view.show(found[this.place]);
    else this.view.draw();
  }
  // Along an edge, within the layers of what is shown.
  walk(key) {
    const graph = this.graph, item = this.view.selected, at = graph.at[item];
    if (!at) return this.step(1);
    const near = graph.lines.filter(line => key === "ArrowDown" ? line.a === item : line.b === item).map(line => key === "ArrowDown" ? line.b : line.a);
    const level = graph.items.filter(other => other !== item && !graph.isOpen(other) && Math.abs(graph.at[other].y - at.y) < 20 && (key === "ArrowRight") === (graph.at[other].x > at.x));
    const choices = key === "ArrowUp" || key === "ArrowDown" ? near : level;
    if (!choices.length) return;
    const next = choices.reduce((best, other) => Math.abs(graph.at[other].x - at.x) < Math.abs(graph.at[best].x - at.x) ? other : best);
    this.view.centre(next);
    this.view.select(next);
  }
  key(event) {
    if (event.target.tagName === "INPUT") { if (event.key === "Escape") event.target.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const view = this.view, actions = { t: () => this.theme() };
    if (view) Object.assign(actions, {
      "/": () => find("search").focus(), n: () => this.step(1), p: () => this.step(-1), "+": () => view.zoom(1.25), "=": () => view.zoom(1.25), "-": () => view.zoom(0.8), 0: () => view.fit(),
      c: () => { this.graph.foldAll(); view.start(); }, e: () => { this.graph.unfoldMoving(600); view.draw(); }, Escape: () => view.select(null), "?": () => this.help(),
    });
    if (view && event.target.tagName === "CANVAS") {
      for (const arrow of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]) actions[arrow] = () => this.walk(arrow);
      for (const enter of ["Enter", " "]) actions[enter] = () => { if (view.selected !== null && this.graph.isBox(view.selected)) view.toggle(view.selected); };
    }
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
  help() {
    const keys = [["/", "search; Enter goes on"], ["n p", "next, previous Transpose"], ["arrows", "follow edges (in a graph)"], ["Enter", "open or close a box"], ["+ - 0", "zoom, fit"], ["c e", "fold all, unfold what holds Transposes"], ["t", "light or dark"], ["Esc", "nothing selected"], ["drag, wheel", "move; with Ctrl zoom"]];
    const close = element("button", { type: "button" }, "Close");
    const dialog = element("dialog", { "aria-label": "Keys" }, element("h2", {}, "Keys"), element("table", {}, ...keys.map(([key, words]) => element("tr", {}, element("td", {}, element("kbd", {}, key)), element("td", {}, words)))), close);
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }
  theme() {
    document.documentElement.classList.toggle("dark");
    if (!this.view) return;
    this.view.draw();
    this.map.draw();
    this.redraw.forEach(draw => draw());
  }
  follow() {
    const match = /^#node=(.*)$/.exec(location.hash);
    if (!match || !this.graph) return;
    const name = decodeURIComponent(match[1]);
    const item = this.data.graph.nodes.findIndex(node => [node.a, node.b].some(side => side && side.n === name));
    if (item >= 0 && item !== this.view.selected) this.view.show(item);
  }
}

// A line from the first node to the last, with a mark for each Transpose, as high as it is costly.
class TransposeMap {
  constructor(canvas, graph, onPick) {
    Object.assign(this, { canvas, graph, rows: graph.data.both ? [0, 1] : [0] });
    canvas.style.height = (this.rows.length * 40 + 12) + "px";
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("click", event => {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      const near = graph.moving.reduce((best, item) => best === null || Math.abs(this.x(item) - x) < Math.abs(this.x(best) - x) ? item : best, null);
      if (near !== null && Math.abs(this.x(near) - x) < 12) onPick(near);
    });
  }
  x(item) { return 92 + (this.canvas.clientWidth - 104) * (item + 0.5) / this.graph.count; }
  draw() {
    const ratio = window.devicePixelRatio || 1, canvas = this.canvas, pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement), colour = name => style.getPropertyValue("--" + name).trim();
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.scale(ratio, ratio);
    const most = Math.log(2 + Math.max(...this.graph.moving.map(item => (this.graph.transpose(item, 0) || this.graph.transpose(item, 1)).y), 0));
    for (const pane of this.rows) {
      const base = 40 * pane + 42, items = this.graph.moving.filter(item => this.graph.transpose(item, pane));
      pen.strokeStyle = colour("line");
      pen.lineWidth = 1;
      pen.beginPath(); pen.moveTo(92, base); pen.lineTo(canvas.clientWidth - 12, base); pen.stroke();
      pen.fillStyle = colour("soft"); pen.font = "12px system-ui, sans-serif";
      pen.fillText(this.rows.length > 1 ? (pane ? "after" : "before") : "model", 0, base - 4);
      pen.fillStyle = colour("ink"); pen.font = "680 15px system-ui, sans-serif";
      pen.fillText(String(items.length), 52, base - 3);
      for (const item of items) {
        const move = this.graph.transpose(item, pane), gone = this.graph.data.nodes[item].s === "removed";
        const high = 8 + 24 * Math.log(2 + move.y) / most;
        pen.fillStyle = colour(gone ? "gone" : "left");
        pen.fillRect(this.x(item) - 1.5, base - high, gone ? 2.5 : 4, high);
      }
    }
  }
}

readData().then(data => { window.report = new Page(data); }, error => { find("headline").textContent = "This browser cannot read the data of the report: " + error.message; });
