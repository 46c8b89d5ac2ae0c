// Draws a graph on one or two canvases that show the same place.
const DASHES = { first: [], last: [7, 3], weight: [2, 3], tensor: [] };
const GLYPHS = { "same order in memory": "○", "rows stay whole": "≡", "transpose of matrices": "⇄", "one axis moves": "→", "element by element": "✱" };

class View {
  constructor(graph, canvases, onSelect) {
    Object.assign(this, { graph, canvases, onSelect, selected: null, hits: new Set(), scale: 1, x: 0, y: 0 });
    canvases.forEach((canvas, pane) => this.listen(canvas, pane));
    new ResizeObserver(() => this.draw()).observe(canvases[0]);
  }
  colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }
  listen(canvas, pane) {
    let held = null;
    canvas.addEventListener("pointerdown", event => { held = { x: event.clientX, y: event.clientY, moved: false }; if (event.isTrusted) canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", event => {
      if (!held) return;
      const dx = event.clientX - held.x, dy = event.clientY - held.y;
      if (!held.moved && Math.hypot(dx, dy) < 4) return;
      Object.assign(held, { x: event.clientX, y: event.clientY, moved: true });
      this.x -= dx / this.scale;
      this.y -= dy / this.scale;
      this.draw();
    });
    canvas.addEventListener("pointerup", event => {
      if (held && !held.moved) this.click(event, canvas, pane);
      held = null;
    });
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 200), event.clientX - box.left, event.clientY - box.top);
      else { this.x += event.deltaX / this.scale; this.y += event.deltaY / this.scale; this.draw(); }
    }, { passive: false });
  }
  zoom(factor, px = this.canvases[0].clientWidth / 2, py = this.canvases[0].clientHeight / 2) {
    const scale = Math.min(3, Math.max(0.04, this.scale * factor));
    this.x += px / this.scale - px / scale;
    this.y += py / this.scale - py / scale;
    this.scale = scale;
    this.draw();
  }
  click(event, canvas, pane) {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) / this.scale + this.x, y = (event.clientY - box.top) / this.scale + this.y;
    let hit = null;
    for (const item of this.graph.items) {
      const at = this.graph.at[item];
      const inside = x >= at.x && x <= at.x + at.w && y >= at.y && y <= at.y + (this.graph.isOpen(item) ? HEAD : at.h);
      if (inside) hit = item;
    }
    if (hit !== null && this.graph.isBox(hit)) this.toggle(hit);
    else this.select(hit);
  }
  toggle(item) {
    const before = this.graph.at[item], dx = before.x - this.x, dy = before.y - this.y;
    this.graph.toggle(item);
    const after = this.graph.at[item];
    this.x = after.x + after.w / 2 - before.w / 2 - dx;
    this.y = after.y - dy;
    this.select(item, false);
  }
  select(item, tell = true) {
    this.selected = item;
    this.onSelect(item, tell);
    this.draw();
  }
  show(item) {
    this.graph.reveal(item);
    if (this.scale < 0.55) this.scale = 0.8;
    this.centre(item);
    this.select(item);
  }
  centre(item) {
    const at = this.graph.at[this.graph.shownAs(item)];
    this.x = at.x + at.w / 2 - this.canvases[0].clientWidth / 2 / this.scale;
    this.y = at.y + at.h / 2 - this.canvases[0].clientHeight / 2 / this.scale;
    this.clamp();
  }
  // No more empty space than there must be.
  clamp() {
    const w = this.canvases[0].clientWidth / this.scale, h = this.canvases[0].clientHeight / this.scale;
    const within = (at, room, size) => size <= room ? (size - room) / 2 : Math.min(Math.max(at, -8), size + 8 - room);
    this.x = within(this.x, w, this.graph.width);
    this.y = this.graph.height <= h ? -8 : within(this.y, h, this.graph.height);
  }
  fit() {
    const { clientWidth: w, clientHeight: h } = this.canvases[0];
    this.scale = Math.min(1, Math.max(0.04, Math.min(w / (this.graph.width + 20), h / (this.graph.height + 20))));
    this.x = this.graph.width / 2 - w / 2 / this.scale;
    this.y = this.graph.height / 2 - h / 2 / this.scale;
    this.draw();
  }
  // As large as can be read, from the top, or as much as fits.
  start() {
    this.fit();
    const { clientWidth: w } = this.canvases[0];
    const scale = Math.min(1, Math.max(0.62, w / (this.graph.width + 20)));
    if (this.scale >= scale) return;
    this.scale = scale;
    this.x = this.graph.width / 2 - w / 2 / scale;
    this.y = -8;
    this.draw();
  }
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.canvases.forEach((canvas, pane) => this.paint(canvas, pane)); });
  }
  paint(canvas, pane) {
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio * this.scale, 0, 0, ratio * this.scale, -this.x * this.scale * ratio, -this.y * this.scale * ratio);
    this.colours = Object.fromEntries(["first", "last", "weight", "tensor", "left", "gone", "gonefill", "ink", "soft", "line", "node", "box", "boxopen", "stay", "focus", "paper", "sheet"].map(name => [name, this.colour(name)]));
    const seen = at => at.x < this.x + w / this.scale && at.x + at.w > this.x && at.y < this.y + h / this.scale && at.y + at.h > this.y;
    const visible = this.graph.items.filter(item => seen(this.graph.at[item]));
    visible.filter(item => this.graph.isOpen(item)).forEach(item => this.paintOpen(pen, item));
    for (const line of this.graph.lines) this.paintLine(pen, line, pane, w, h);
    for (const item of visible) {
      if (this.graph.isOpen(item)) continue;
      if (this.graph.isBox(item)) this.paintClosed(pen, item, pane);
      else this.paintNode(pen, item, pane);
    }
  }
  frame(pen, at, radius) { pen.beginPath(); pen.roundRect(at.x, at.y, at.w, at.h, radius); }
  paintOpen(pen, item) {
    const at = this.graph.at[item], box = this.graph.box(item), c = this.colours;
    this.frame(pen, at, 10);
    pen.fillStyle = c.boxopen;
    pen.fill();
    pen.strokeStyle = item === this.selected ? c.focus : c.line;
    pen.lineWidth = item === this.selected ? 2 : 1;
    pen.stroke();
    if (this.scale > 0.25) this.text(pen, "▾ " + box.t, at.x + 10, at.y + 15, at.w - 20, c.soft, "11.5px");
  }
  paintClosed(pen, item, pane) {
    const at = this.graph.at[item], box = this.graph.box(item), c = this.colours;
    if (box.k === "copies") { this.frame(pen, { ...at, x: at.x + 5, y: at.y + 5 }, 9); pen.fillStyle = c.box; pen.fill(); pen.strokeStyle = c.line; pen.stroke(); }
    this.frame(pen, at, 9);
    pen.fillStyle = c.box;
    pen.fill();
    pen.strokeStyle = item === this.selected ? c.focus : this.hits.has(item) ? c.focus : c.line;
    pen.lineWidth = item === this.selected ? 2.5 : 1.2;
    pen.stroke();
    if (this.scale < 0.25) { this.badge(pen, at, box, pane, true); return; }
    this.text(pen, "▸ " + box.t, at.x + 10, at.y + 19, at.w - 20, c.ink, "600 12px");
    const nodes = box.c[pane] || box.c[0];
    this.text(pen, nodes + (nodes === 1 ? " node" : " nodes"), at.x + 10, at.y + 38, 90, c.soft, "11px");
    this.badge(pen, at, box, pane, false);
  }
  badge(pen, at, box, pane, small) {
    const count = box.c[2 + pane], c = this.colours;
    if (!count && !box.c[2]) return;
    const left = this.graph.data.both ? box.c[3] : box.c[2], gone = Math.max(0, box.c[2] - left);
    const words = count ? count + (count === 1 ? " Transpose" : " Transposes") : "no Transpose left";
    const filled = count && (pane === 1 || !gone || !this.graph.data.both);
    pen.font = "600 11px system-ui, sans-serif";
    const w = small ? at.w - 20 : pen.measureText(words).width + 14;
    const rect = { x: at.x + at.w - w - 8, y: at.y + 27, w, h: 17 };
    this.frame(pen, rect, 8);
    if (filled) { pen.fillStyle = c.left; pen.fill(); }
    else if (count) { pen.fillStyle = c.gonefill; pen.fill(); pen.strokeStyle = c.gone; pen.lineWidth = 1.3; pen.stroke(); }
    if (!small) this.text(pen, words, rect.x + 7, rect.y + 12.5, w, filled ? c.sheet : count ? c.ink : c.soft, "600 11px");
  }
  paintNode(pen, item, pane) {
    const at = this.graph.at[item], side = this.graph.side(item, pane), c = this.colours, node = this.graph.data.nodes[item];
    const chosen = item === this.selected;
    if (!side) { this.paintGhost(pen, at, item, chosen); return; }
    const port = side.op === "input" || side.op === "output";
    const gone = side.t && node.s === "removed", left = side.t && !gone;
    this.frame(pen, at, port ? at.h / 2 : left ? 4 : 6);
    pen.fillStyle = left ? c.left : gone ? c.gonefill : port ? c.stay : c.node;
    pen.fill();
    pen.lineWidth = chosen ? 3 : this.hits.has(item) ? 2.4 : gone ? 1.8 : 1;
    pen.strokeStyle = chosen || this.hits.has(item) ? c.focus : gone ? c.gone : left ? c.left : c.tensor;
    pen.setLineDash(gone && !chosen ? [5, 3] : []);
    pen.stroke();
    pen.setLineDash([]);
    const tint = side.w.length ? this.graph.value(pane, side.w[0])[3] : "tensor";
    if (!side.t && !port && tint !== "tensor") { pen.globalAlpha = 0.1; pen.fillStyle = c[tint]; pen.fill(); pen.globalAlpha = 1; }
    if (side.g) { pen.fillStyle = groupColour(side.g); pen.fillRect(at.x, at.y + 5, 4, at.h - 10); }
    if (this.scale < 0.3) return;
    const ink = left ? c.sheet : c.ink, soft = left ? c.sheet : c.soft;
    const mark = { restated: "≈ ", new: "+ " }[node.s] || "";
    const value = side.w.length ? this.graph.value(pane, side.w[0]) : side.r.length ? this.graph.value(pane, side.r[0]) : null;
    if (side.t) {
      this.text(pen, (GLYPHS[side.t.m] || "⇄") + " Transpose" + (gone ? " ✕" : node.s === "new" ? " +" : ""), at.x + 9, at.y + 16, at.w - 14, ink, "650 12px");
      this.text(pen, (side.t.p ? side.t.p.join(" ") : "?") + "  " + bytes(side.t.y), at.x + 9, at.y + 30, at.w - 14, soft, "11px");
      return;
    }
    this.text(pen, port ? side.n : mark + side.op, at.x + (port ? 14 : 9), at.y + 15, at.w - (port ? 24 : 14), ink, "600 12px");
    if (value) this.text(pen, (value[2] && value[2].length < 7 && value[3] !== "tensor" ? value[2] + " " : "") + value[1], at.x + (port ? 14 : 9), at.y + 29, at.w - (port ? 24 : 14), soft, "10.5px");
  }
  paintGhost(pen, at, item, chosen) {
    const c = this.colours, moves = this.graph.transpose(item, 0) || this.graph.transpose(item, 1);
    this.frame(pen, at, 6);
    pen.strokeStyle = chosen ? c.focus : moves ? c.gone : c.line;
    pen.globalAlpha = chosen ? 1 : 0.55;
    pen.lineWidth = chosen ? 2 : 1;
    pen.setLineDash([2, 4]);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }
  paintLine(pen, line, pane, w, h) {
    const kinds = line.kinds[pane];
    if (!kinds.length) return;
    const points = line.points, ends = [points[0], points[points.length - 1]];
    const top = Math.min(ends[0][1], ends[1][1]), bottom = Math.max(ends[0][1], ends[1][1]);
    if (bottom < this.y || top > this.y + h / this.scale) return;
    this.paintHull(pen, line, pane);
    const chosen = this.selected !== null && (line.a === this.selected || line.b === this.selected);
    kinds.forEach((kind, i) => {
      pen.beginPath();
      pen.strokeStyle = this.colours[kind];
      pen.lineWidth = chosen ? 3.2 : kind === "tensor" ? 1.3 : 2;
      pen.setLineDash(DASHES[kind]);
      pen.moveTo(points[0][0] + 3 * i, points[0][1]);
      for (let n = 1; n < points.length; n++) {
        const [x0, y0] = points[n - 1], [x1, y1] = points[n], bend = Math.min(Math.abs(y1 - y0) / 2, 60) || 12;
        if (n % 2 === 0) pen.lineTo(x1 + 3 * i, y1);
        else pen.bezierCurveTo(x0 + 3 * i, y0 + bend, x1 + 3 * i, y1 - bend, x1 + 3 * i, y1);
      }
      pen.stroke();
      pen.setLineDash([]);
      const [x, y] = ends[1];
      if (this.scale > 0.3) { pen.beginPath(); pen.fillStyle = this.colours[kind]; pen.moveTo(x, y); pen.lineTo(x - 4, y - 7); pen.lineTo(x + 4, y - 7); pen.fill(); }
    });
  }
  // What runs as one kernel is under one band of colour.
  paintHull(pen, line, pane) {
    const [a, b] = [line.a, line.b].map(item => this.graph.side(item, pane));
    if (!a || !b || !a.g || a.g !== b.g) return;
    const from = this.graph.at[line.a], to = this.graph.at[line.b];
    pen.globalAlpha = 0.28;
    pen.strokeStyle = groupColour(a.g);
    pen.lineWidth = from.w + 18;
    pen.lineCap = "round";
    pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(from.x + from.w / 2, from.y + from.h / 2);
    pen.lineTo(to.x + to.w / 2, to.y + to.h / 2);
    pen.lineCap = "butt";
    pen.stroke();
    pen.globalAlpha = 1;
  }
  text(pen, words, x, y, room, colour, font) {
    pen.font = font + " system-ui, 'Segoe UI', 'Liberation Sans', sans-serif";
    pen.fillStyle = colour;
    let shown = words;
    if (pen.measureText(shown).width > room) {
      while (shown.length > 1 && pen.measureText(shown + "…").width > room) shown = shown.slice(0, -1);
      shown += "…";
    }
    pen.fillText(shown, x, y);
  }
}

function groupColour(name) {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 360;
  return `hsl(${hash} 55% 55%)`;
}
function bytes(count) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) { count /= 1000; unit += 1; }
  return (unit ? count.toFixed(1) : count) + " " + units[unit];
}
