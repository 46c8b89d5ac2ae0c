// Which items are shown and where: boxes are opened and closed, coordinates inside of them are given.
const GAP = 22, LAYER_GAP = 30, PAD = 14, HEAD = 24;

class Graph {
  constructor(data) {
    this.data = data;
    this.count = data.nodes.length;
    this.parents = new Array(this.count + data.boxes.length).fill(-1);
    data.boxes.forEach((box, number) => box.layers.flat().forEach(item => { this.parents[item] = number; }));
    this.open = new Set(data.open);
    this.bends = data.boxes.map(box => new Map(box.bends.map(([a, b, ...xs]) => [a + " " + b, xs])));
    this.ins = data.boxes.map(box => new Map(box.ins.map(([a, b, ...xs]) => [a + " " + b, xs])));
    this.outs = data.boxes.map(box => new Map(box.outs.map(([a, ...xs]) => [a, xs])));
    this.layerOf = [];
    data.boxes.forEach(box => box.layers.forEach((items, layer) => items.forEach(item => { this.layerOf[item] = layer; })));
    this.moving = data.nodes.map((node, i) => i).filter(i => this.transpose(i, 0) || this.transpose(i, 1));
    this.arrange();
  }
  isBox(item) { return item >= this.count; }
  box(item) { return this.data.boxes[item - this.count]; }
  side(item, pane) { const node = this.data.nodes[item]; return node && (pane ? node.a : node.b); }
  any(item) { const node = this.data.nodes[item]; return node.a || node.b; }
  transpose(item, pane) { const side = this.side(item, pane); return side && side.t; }
  isOpen(item) { return this.isBox(item) && this.open.has(item - this.count); }
  value(pane, place) { return this.data.values[pane][place]; }

  // The item itself, or the outermost closed box round it.
  shownAs(item) {
    let shown = item;
    for (let up = this.parents[item]; up > 0; up = this.parents[up + this.count]) {
      if (!this.open.has(up)) shown = up + this.count;
    }
    return shown;
  }
  reveal(item) {
    for (let up = this.parents[item]; up > 0; up = this.parents[up + this.count]) this.open.add(up);
    this.arrange();
  }
  toggle(item) {
    const number = item - this.count;
    this.open.has(number) ? this.open.delete(number) : this.open.add(number);
    this.arrange();
  }
  foldAll() { this.open = new Set([0]); this.arrange(); }
  unfoldMoving(limit) {
    let shown = this.items.length;
    for (const [number, box] of this.data.boxes.entries()) {
      const up = this.parents[number + this.count];
      const size = box.layers.flat().length;
      if (this.open.has(number) || !(box.c[2] || box.c[3]) || (up >= 0 && !this.open.has(up)) || shown + size > limit) continue;
      this.open.add(number);
      shown += size;
    }
    this.arrange();
  }

  size(item) {
    if (!this.isBox(item)) return { w: this.data.widths.node, h: this.transpose(item, 0) || this.transpose(item, 1) ? 38 : 36 };
    if (!this.isOpen(item)) return { w: this.data.widths.box, h: 50 };
    return this.inner(item - this.count);
  }
  // Size of an open box, and places of its items relative to its corner.
  inner(number) {
    const box = this.data.boxes[number], rows = [];
    let top = number ? HEAD + PAD : PAD, low = Infinity, high = -Infinity;
    box.layers.forEach((items, layer) => {
      const sizes = items.map(item => this.size(item));
      const middles = spread(box.x[layer], sizes.map(size => size.w));
      const height = Math.max(10, ...sizes.map(size => size.h));
      items.forEach((item, i) => {
        low = Math.min(low, middles[i] - sizes[i].w / 2);
        high = Math.max(high, middles[i] + sizes[i].w / 2);
      });
      rows.push({ items, sizes, middles, top, height });
      top += height + LAYER_GAP;
    });
    const bends = [...box.bends, ...box.ins].flatMap(([, , ...xs]) => xs).concat(box.outs.flatMap(([, ...xs]) => xs));
    for (const x of bends) { low = Math.min(low, x - 8); high = Math.max(high, x + 8); }
    const place = { rows, low, w: high - low + 2 * PAD, h: top - LAYER_GAP + PAD };
    this.inside[number] = place;
    return place;
  }
  arrange() {
    this.inside = [];
    this.at = [];
    this.items = [];
    const whole = this.size(this.count);
    this.width = whole.w;
    this.height = whole.h;
    this.put(0, 0, 0);
    this.route();
  }
  put(number, left, top) {
    const place = this.inside[number];
    place.left = left + PAD - place.low;
    place.absolute = top;
    for (const row of place.rows) {
      row.items.forEach((item, i) => {
        const size = row.sizes[i];
        const rect = { x: place.left + row.middles[i] - size.w / 2, y: top + row.top + (row.height - size.h) / 2, w: size.w, h: size.h };
        this.at[item] = rect;
        this.items.push(item);
        if (this.isOpen(item)) this.put(item - this.count, rect.x, rect.y);
      });
    }
  }
  // Edges between what is shown, each once for a line of a kind in a pane.
  route() {
    const lines = new Map();
    for (const [source, target, before, after] of this.data.edges) {
      const a = this.shownAs(source), b = this.shownAs(target);
      if (a === b) continue;
      [before, after].forEach((value, pane) => {
        if (value < 0) return;
        const kind = this.value(pane, value)[3], key = a + " " + b;
        let line = lines.get(key);
        if (!line) lines.set(key, line = { a, b, kinds: [[], []], values: [[], []], points: this.points(source, target, a, b) });
        if (!line.kinds[pane].includes(kind)) line.kinds[pane].push(kind);
        line.values[pane].push(value);
      });
    }
    this.lines = [...lines.values()];
  }
  points(source, target, a, b) {
    const from = this.at[a], to = this.at[b];
    const points = [[from.x + from.w / 2, from.y + from.h]];
    const [number, one, other] = this.meeting(source, target);
    const cross = (box, first, xs) => (xs || []).forEach((x, i) => {
      const place = this.inside[box], row = place.rows[first + i];
      points.push([place.left + x, place.absolute + row.top], [place.left + x, place.absolute + row.top + row.height]);
    });
    for (let item = a, up = this.parents[a]; up !== number; item = up + this.count, up = this.parents[item]) cross(up, this.layerOf[item] + 1, this.outs[up].get(item));
    cross(number, this.layerOf[one] + 1, this.bends[number].get(one + " " + other));
    const down = [];
    for (let item = b, up = this.parents[b]; up !== number; item = up + this.count, up = this.parents[item]) down.unshift([up, item]);
    for (const [up, item] of down) cross(up, 0, this.ins[up].get(source + " " + item));
    points.push([to.x + to.w / 2, to.y]);
    return points;
  }
  // The innermost box that holds both, and the items of it that they are in.
  meeting(source, target) {
    const path = new Map();
    for (let item = source, up = this.parents[item]; up >= 0; item = up + this.count, up = this.parents[item]) path.set(up, item);
    for (let item = target, up = this.parents[item]; up >= 0; item = up + this.count, up = this.parents[item]) {
      if (path.has(up)) return [up, path.get(up), item];
    }
    return [0, source, target];
  }
}

// Middles as near as can be to those wanted, side by side in this order.
function spread(wanted, widths) {
  const offsets = [], pools = [];
  let reached = 0;
  widths.forEach((width, i) => { if (i) reached += (widths[i - 1] + width) / 2 + GAP; offsets.push(reached); });
  wanted.forEach((x, i) => {
    pools.push([x - offsets[i], 1]);
    while (pools.length > 1 && pools[pools.length - 2][0] > pools[pools.length - 1][0]) {
      const [high, more] = pools.pop(), [low, few] = pools.pop();
      pools.push([(low * few + high * more) / (few + more), few + more]);
    }
  });
  return pools.flatMap(([level, count]) => new Array(count).fill(level)).map((level, i) => level + offsets[i]);
}
