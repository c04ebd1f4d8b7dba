"use strict";
// One page of results: tables that sort, curves that toggle, and an explorer of the policy.

const $ = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

// a bound with six digits that is still one: rounded down (side -1) or up (side 1)
const bound = (x, side) => {
  const near = Number(x.toPrecision(6));
  if (!Number.isFinite(x) || side * (near - x) >= 0) return digits(x);
  return digits(near + side * 10 ** (Math.floor(Math.log10(Math.abs(x))) - 5));
};
const share = (x) => Number(x.toPrecision(4)).toString(); // of probability
const digits = (x) => (Number.isFinite(x) ? Number(x.toPrecision(6)).toString() : x > 0 ? "∞" : x < 0 ? "−∞" : "?");

// ---- tables -----------------------------------------------------------------------------------

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.replaceChildren($("button", { onclick: () => sort(column) }, head.textContent));
  });
  function sort(column) {
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const x = key(a), y = key(b), p = Number(x), q = Number(y);
      const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
  }
}

// ---- curves -----------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes, text) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

function ticks(low, high, whole = false) {
  const rough = Math.max((high - low) / 5, whole ? 1 : 0), unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((k) => k >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12); k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function decades(low, high) {
  const found = [];
  for (let e = Math.floor(low); e <= high; e += 1) {
    for (const k of high - low > 2.5 ? [1] : [1, 3]) {
      const x = k * 10 ** e;
      if (Math.log10(x) >= low - 1e-9 && Math.log10(x) <= high + 1e-9) found.push(x);
    }
  }
  return found;
}

function drawChart(place, chart) {
  const W = 760, H = 340, left = 62, right = 16, top = 14, bottom = 44;
  const hidden = new Set();
  const frame = $("div", { class: "chart" });
  const legend = $("div", { class: "legend" });
  const tip = $("div", { class: "tip", hidden: "" });
  const names = [...new Set(chart.lines.map((line) => line.name))];
  const colour = (name) => `var(--c${names.indexOf(name) % 6})`;
  for (const name of names) {
    const button = $("button", { "aria-pressed": "true", onclick: () => toggle(name, button) },
      $("span", { style: `color:${colour(name)}` }, names.indexOf(name) > 5 ? "◌ " : "● "), name);
    legend.append(button);
  }
  function toggle(name, button) {
    if (!hidden.delete(name)) hidden.add(name);
    button.setAttribute("aria-pressed", String(!hidden.has(name)));
    draw();
  }
  function draw() {
    const lines = chart.lines.filter((line) => !hidden.has(line.name));
    const ends = lines.flatMap((line) => line.band.flatMap((b, i) => b.map((y) => [line.points[i][0], y])));
    const points = lines.flatMap((line) => line.points).concat(ends);
    const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": chart.title });
    if (points.length) axes(root, points, lines);
    frame.replaceChildren(root);
  }
  function axes(root, points, lines) {
    const fx = chart.log ? Math.log10 : (x) => x;
    const xs = points.map((p) => fx(p[0])), ys = points.map((p) => p[1]);
    let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    if (x0 === x1) { x0 -= 1; x1 += 1; }
    if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
    const X = (x) => left + ((fx(x) - x0) / (x1 - x0)) * (W - left - right);
    const Y = (y) => H - bottom - ((y - y0) / (y1 - y0)) * (H - top - bottom);
    for (const y of ticks(y0, y1)) {
      root.append(svg("line", { class: "grid", x1: left, x2: W - right, y1: Y(y), y2: Y(y) }));
      root.append(svg("text", { x: left - 8, y: Y(y) + 4, "text-anchor": "end" }, digits(y)));
    }
    const whole = points.every((p) => Number.isInteger(p[0])); // then so are the marks
    for (const x of chart.log ? decades(x0, x1) : ticks(x0, x1, whole)) {
      root.append(svg("text", { x: X(x), y: H - bottom + 18, "text-anchor": "middle" }, x.toLocaleString("en")));
    }
    root.append(svg("text", { x: (W + left) / 2, y: H - 6, "text-anchor": "middle" }, chart.x));
    root.append(svg("text", { x: 14, y: H / 2, transform: `rotate(-90 14 ${H / 2})`, "text-anchor": "middle" }, chart.y));
    for (const line of lines) {
      if (line.band.length) {
        const edge = (side) => line.band.map((b, i) => `${X(line.points[i][0]).toFixed(1)} ${Y(b[side]).toFixed(1)}`);
        root.append(svg("path", { class: "band", d: `M${[...edge(1), ...edge(0).reverse()].join("L")}Z`, style: `fill:${colour(line.name)}` }));
      }
      const path = line.points.map((p, i) => `${i ? "L" : "M"}${X(p[0]).toFixed(1)} ${Y(p[1]).toFixed(1)}`).join("");
      root.append(svg("path", { d: path, style: `stroke:${colour(line.name)}`, "stroke-dasharray": line.dashed ? "6 4" : names.indexOf(line.name) > 5 ? "2 3" : "none" }));
      for (const p of line.points) {
        const dot = svg("circle", { cx: X(p[0]), cy: Y(p[1]), r: 4, style: `fill:${colour(line.name)}`, tabindex: 0 });
        dot.addEventListener("pointerenter", (event) => {
          tip.textContent = `${line.name}${line.note ? `, ${line.note}` : ""}: ${digits(p[1])} at ${digits(p[0])}`;
          tip.style.left = `${event.clientX + 12}px`;
          tip.style.top = `${event.clientY - 30}px`;
          tip.hidden = false;
        });
        dot.addEventListener("pointerleave", () => { tip.hidden = true; });
        root.append(dot);
      }
    }
  }
  draw();
  place.append($("h3", {}, chart.title), legend, frame, tip);
}

// ---- explorer ---------------------------------------------------------------------------------

const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u1: Uint8Array };

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = await new Response(stream).arrayBuffer();
  const length = new DataView(raw).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(raw, 4, length)));
  const data = {};
  for (const [name, [type, offset, count]] of Object.entries(head.arrays)) {
    data[name] = new TYPES[type](raw, 4 + length + offset, count);
  }
  return { head, data };
}

class Explorer {
  constructor(place, { head, data }) {
    Object.assign(this, { place, head, data, history: [] });
    this.step = 0; // of a finite horizon
    this.width = head.variables.length;
    this.index = new Map();
    for (let i = 0; i < data.state.length; i += 1) this.index.set(this.key(this.valuation(i)), i);
    this.sure = this.layer(0);
    this.start = Math.max(data.state.indexOf(head.initial), 0);
    this.now = this.start;
    this.axes = this.widest();
    this.others = this.richest(); // of the map: values of the variables not on it
    this.main = $("div", { class: "card" });
    this.side = $("div", { class: "card" });
    place.replaceChildren($("div", { class: "explorer" }, this.main, this.side));
    this.show();
  }

  // the guaranteed values of all states when some steps are gone
  layer(step) {
    const side = this.head.agent === "max" ? this.data.lower : this.data.upper;
    const count = this.data.state.length, first = Math.min(step, this.head.layers - 1) * count;
    return side.subarray(first, first + count);
  }

  valuation(i) { return this.data.valuation.subarray(i * this.width, (i + 1) * this.width); }

  key(values) { return values.join(); }

  name(i) {
    return this.head.variables.map(([name, , , boolean], v) => {
      const value = this.valuation(i)[v];
      return boolean ? `${value ? "" : "!"}${name}` : `${name}=${value}`;
    }).join(", ");
  }

  // the two variables whose maps have the most cells, on average over the others
  widest() {
    if (this.width < 2) return [0, 0];
    const count = this.data.state.length, stride = Math.max(1, Math.floor(count / 3000));
    let best = [0, 1], fewest = Infinity;
    for (let a = 0; a < this.width; a += 1) {
      for (let b = a + 1; b < this.width; b += 1) {
        const others = new Set();
        for (let i = 0; i < count; i += stride) others.add(this.offMap(i, [a, b]));
        if (others.size < fewest) [best, fewest] = [[a, b], others.size];
      }
    }
    return best;
  }

  // what tells the map of a state from others: its variables that are not on the axes
  offMap(i, axes) { return this.valuation(i).filter((_, v) => !axes.includes(v)).join(); }

  // the first map: that of the current state, unless another shows more than three times as many values
  richest() {
    const values = new Map(), first = new Map();
    for (let i = 0; i < this.data.state.length; i += 1) {
      const key = this.offMap(i, this.axes);
      if (!values.has(key)) { values.set(key, new Set()); first.set(key, i); }
      values.get(key).add(this.sure[i]);
    }
    const own = values.get(this.offMap(this.now, this.axes)).size;
    const most = Math.max(...Array.from(values.values(), (found) => found.size));
    if (most <= 3 * own) return [...this.valuation(this.now)];
    const key = Array.from(values.keys()).find((k) => values.get(k).size === most);
    return [...this.valuation(first.get(key))];
  }

  // the states on the map of a state: only variables on the axes tell them apart
  onMap(i, axes) {
    const off = this.head.variables.map((_, v) => v).filter((v) => !axes.includes(v));
    const all = this.data.valuation, width = this.width, found = [];
    for (let k = 0; k < this.data.state.length; k += 1) {
      if (off.every((v) => all[k * width + v] === all[i * width + v])) found.push(k);
    }
    return found;
  }

  go(i, step = this.step) {
    if (i < 0 || step >= this.head.steps || (i === this.now && step === this.step)) return;
    this.history.push([this.now, this.step]);
    this.at(i, step);
  }

  // the step after this one: without a horizon, or where a page has the first step only, the same
  after() { return this.head.steps > 1 ? this.step + 1 : this.step; }

  at(i, step) {
    Object.assign(this, { now: i, step, sure: this.layer(step) });
    if (this.onMap(i, this.axes).length > 3) this.others = [...this.valuation(i)]; // else a map of next to nothing
    this.show();
  }

  back() {
    if (this.history.length) this.at(...this.history.pop());
  }

  show() {
    const d = this.data, i = this.now;
    const labels = this.head.labels.filter((_, l) => d.label[l * d.state.length + i]);
    const badges = labels.map((label) => $("span", { class: "badge" }, label));
    const most = this.head.agent === "max";
    const value = `${most ? "at least" : "at most"} ${bound(this.sure[i], most ? -1 : 1)}`;
    this.main.replaceChildren(
      $("div", { class: "controls" },
        $("button", { onclick: () => this.go(this.start, 0) }, "Start"),
        $("button", { "data-action": "back", onclick: () => this.back(), ...(this.history.length ? {} : { disabled: "" }) }, `Back (${this.history.length})`),
        $("button", { "data-action": "nature", onclick: () => this.draw("nature") }, "Sample a step: nature's worst case"),
        $("button", { "data-action": "chance", onclick: () => this.draw("nominal") }, "Sample a step: nominal chance")),
      this.clock(), this.picker(),
      $("h3", { "data-role": "state" }, this.name(i)),
      $("p", {}, this.head.agent === this.head.nature ? "Value, with a nature that helps, " : "Guaranteed value ", $("span", { class: "big" }, value), " ", ...badges),
      this.actions(), this.outcomes(), this.marginals());
    this.side.replaceChildren(this.heatmap());
  }

  clock() {
    const { steps } = this.head;
    if (steps < 2) return "";
    return $("div", { class: "controls" }, $("label", {}, `step ${this.step + 1} of ${steps} `,
      $("input", { type: "range", min: 0, max: steps - 1, value: this.step, "data-role": "step",
        onchange: (event) => this.go(this.now, Number(event.target.value)) })));
  }

  picker() {
    const values = [...this.valuation(this.now)];
    const boxes = this.head.variables.map(([name, low, high], v) =>
      $("label", {}, `${name} `, $("input", { type: "number", min: low, max: high, value: values[v], "data-variable": name,
        onchange: (event) => {
          values[v] = Number(event.target.value);
          const found = this.index.get(this.key(values));
          if (found === undefined) event.target.setCustomValidity("The policy does not reach this state, or it is not on this page.");
          else this.go(found);
          event.target.reportValidity();
        } })));
    return $("div", { class: "controls" }, ...boxes);
  }

  rows() {
    const d = this.data, rows = [];
    for (let r = d.row_ptr[this.now]; r < d.row_ptr[this.now + 1]; r += 1) rows.push(r);
    return rows;
  }

  // where the entry of a row stands in arrays that have one step after the other
  entry(r) { return this.step * this.data.action.length + r; }

  chosen() { return this.rows().find((r) => this.data.taken[this.entry(r)]) ?? this.rows()[0]; }

  actions() {
    const d = this.data, body = $("tbody");
    for (const r of this.rows()) {
      const e = this.entry(r);
      body.append($("tr", { class: d.taken[e] ? "chosen" : "" },
        $("td", {}, `${d.taken[e] ? "► " : ""}${this.head.actions[d.action[r]] || `choice ${r - d.row_ptr[this.now] + 1}`}`),
        $("td", {}, bound(d.row_lower[e], -1)), $("td", {}, bound(d.row_upper[e], 1))));
    }
    return $("div", { class: "scroll" }, $("table", { "data-role": "actions" },
      $("thead", {}, $("tr", {}, $("th", {}, "action (► the policy's)"), $("th", {}, "at least"), $("th", {}, "at most"))), body));
  }

  parts(r) {
    const d = this.data, parts = [];
    let place = this.step * d.nature_ptr[d.action.length] + d.nature_ptr[r];
    for (let k = d.marginal_ptr[r]; k < d.marginal_ptr[r + 1]; k += 1) {
      const j = d.marginal[k], first = d.outcome_ptr[j], size = d.outcome_ptr[j + 1] - first;
      parts.push({ j, first, size, nature: d.nature.subarray(place, place + size), nominal: d.nominal.subarray(first, first + size) });
      place += size;
    }
    return parts;
  }

  marginals() {
    const d = this.data, body = $("tbody");
    const bar = (p, kind) => $("span", { class: `bar ${kind}`, style: `width:${(p * 4).toFixed(2)}rem` });
    const r = this.chosen(), parts = this.parts(r);
    const place = (o) => (parts.length === 1 ? d.successor[d.successor_ptr[r] + o] : -1);  // one factor: outcomes are states
    for (const part of parts) {
      body.append($("tr", {}, $("th", { colspan: 4 }, this.head.marginals[part.j])));
      for (let o = 0; o < part.size; o += 1) {
        const e = part.first + o;
        body.append($("tr", {},
          $("td", {}, this.head.outcomes[e] || (place(o) < 0 ? `outcome ${o + 1}` : `to ${this.name(place(o))}`)),
          $("td", {}, `[${digits(d.set_lower[e])}, ${digits(d.set_upper[e])}]`),
          $("td", {}, share(part.nominal[o]), " ", bar(part.nominal[o], "")),
          $("td", {}, share(part.nature[o]), " ", bar(part.nature[o], "worst"))));
      }
    }
    if (!body.rows.length) return $("p", { class: "soft" }, "The policy's action is certain here: nature has no choice.");
    return $("div", { class: "scroll" }, $("h3", {}, "What nature does against it"), $("table", {},
      $("thead", {}, $("tr", {}, ...["outcome", "set", "nominal", "nature"].map((t) => $("th", {}, t)))), body));
  }

  joint(kind) {
    const d = this.data, r = this.chosen();
    let probabilities = [1];
    for (const part of this.parts(r)) {
      probabilities = probabilities.flatMap((p) => Array.from(part[kind], (q) => p * q));
    }
    const total = new Map();
    for (let k = d.successor_ptr[r], o = 0; k < d.successor_ptr[r + 1]; k += 1, o += 1) {
      total.set(d.successor[k], (total.get(d.successor[k]) || 0) + probabilities[o]);
    }
    return total;
  }

  draw(kind) {
    let left = Math.random();
    let last = this.now;
    for (const [state, p] of this.joint(kind)) {
      if (p > 0 && state >= 0) last = state;
      left -= p;
      if (left <= 0) break;
    }
    this.go(last, this.after());
  }

  outcomes() {
    const worst = this.joint("nature"), nominal = this.joint("nominal"), body = $("tbody");
    const next = this.layer(this.step + 1), over = this.after() >= this.head.steps;
    const order = [...worst].sort((a, b) => b[1] - a[1]).slice(0, 12);
    for (const [state, p] of order) {
      const name = state < 0 ? "(a state that is not on this page)" : this.name(state);
      const button = state < 0 || over || (state === this.now && this.after() === this.step) ? name
        : $("button", { "data-action": "outcome", onclick: () => this.go(state, this.after()) }, name);
      body.append($("tr", {}, $("td", {}, button), $("td", {}, share(nominal.get(state))), $("td", {}, share(p)),
        $("td", {}, state < 0 ? "" : bound(next[state], this.head.agent === "max" ? -1 : 1))));
    }
    return $("div", { class: "scroll" }, $("h3", {}, `What happens next${worst.size > 12 ? " (the twelve likeliest)" : ""}`),
      $("table", { "data-role": "next" }, $("thead", {}, $("tr", {}, ...["state", "nominal", "nature", "value there"].map((t) => $("th", {}, t)))), body));
  }

  // of a model with one variable: values over it
  curve() {
    const place = $("div", { "data-role": "curve" }), name = this.head.variables[0][0];
    const point = (i) => [this.valuation(i)[0], this.sure[i]];
    const all = Array.from(this.data.state, (_, i) => point(i)).filter((p) => Number.isFinite(p[1])).sort((p, q) => p[0] - q[0]);
    const stride = Math.ceil(all.length / 500); // more dots than that nobody tells apart
    const line = (label, points) => ({ name: label, note: "", points, band: [], dashed: false });
    const lines = [line("all states", all.filter((_, k) => k % stride === 0)), line("this state", [point(this.now)].filter((p) => Number.isFinite(p[1])))];
    drawChart(place, { title: `Guaranteed values over ${name}`, x: name, y: "value", log: false, lines });
    return place;
  }

  heatmap() {
    const variables = this.head.variables;
    if (variables.length < 2) return this.curve();
    const choose = (axis) => $("select", { "aria-label": axis ? "vertical variable" : "horizontal variable", onchange: (event) => { this.axes[axis] = Number(event.target.value); this.show(); } },
      ...variables.map(([name], v) => $("option", { value: v, ...(this.axes[axis] === v ? { selected: "" } : {}) }, name)));
    const [a, b] = this.axes, fixed = this.others;
    const [, low, high] = variables[a], [, bottom, top] = variables[b];
    const cell = Math.max(16, Math.round(400 / Math.max(high - low + 1, top - bottom + 1)));
    const canvas = $("canvas", { width: (high - low + 1) * cell, height: (top - bottom + 1) * cell, role: "img", "aria-label": "values" });
    const pen = canvas.getContext("2d");
    const cells = [];
    for (let x = low; x <= high; x += 1) {
      for (let y = bottom; y <= top; y += 1) {
        const values = fixed.slice();
        values[a] = x; values[b] = y;
        const i = this.index.get(this.key(values));
        if (i !== undefined && (a !== b || x === y)) cells.push([x, y, i]);
      }
    }
    const scale = scaleOf(cells.map(([, , i]) => this.sure[i]));
    for (const [x, y, i] of cells) {
      pen.fillStyle = viridis(scale.share(this.sure[i]));
      pen.fillRect((x - low) * cell, (top - y) * cell, cell, cell);
      if (i === this.now) { pen.strokeStyle = "#ff4f00"; pen.lineWidth = 3; pen.strokeRect((x - low) * cell + 1.5, (top - y) * cell + 1.5, cell - 3, cell - 3); }
    }
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      const values = fixed.slice();
      values[a] = low + Math.floor(((event.clientX - box.left) / box.width) * (high - low + 1));
      values[b] = top - Math.floor(((event.clientY - box.top) / box.height) * (top - bottom + 1));
      const found = this.index.get(this.key(values));
      if (found !== undefined) this.go(found);
    });
    const slider = ([name, from, to], v) => $("label", {}, `${name} = ${fixed[v]} `,
      $("input", { type: "range", min: from, max: to, value: fixed[v], "data-slider": name,
        onchange: (event) => { fixed[v] = Number(event.target.value); this.side.replaceChildren(this.heatmap()); } }));
    const sliders = variables.map((variable, v) => (v === a || v === b ? "" : slider(variable, v)));
    return $("div", {}, $("h3", {}, "Guaranteed values over two variables"),
      $("div", { class: "controls" }, "across ", choose(0), " up ", choose(1)),
      $("div", { class: "controls" }, ...sliders), canvas,
      $("div", { class: "scale", style: `background:linear-gradient(to right,${[0, 1, 2, 3, 4].map((k) => viridis(k / 4)).join()})` }),
      $("div", { class: "ticks", "data-role": "scale" }, ...scale.ticks.map((t) => $("span", {}, Number(t.toPrecision(3)).toString()))),
      $("p", { class: "soft" }, `${variables[a][0]} goes from ${low} to ${high} across, ${variables[b][0]} from ${bottom} to ${top} up. The colours are those of this map${scale.ranked ? ", by rank: most of its values lie close together" : ""}. Empty: not reached by the policy. The state is framed where it is on this map. Click a cell to go there.`));
  }
}

// From values to 0..1: linear, or by rank where one part of the range holds nearly all values.
function scaleOf(values) {
  const sorted = [...new Set(values.filter(Number.isFinite))].sort((x, y) => x - y);
  if (!sorted.length) return { share: (x) => (x > 0 ? 1 : 0), ticks: [], ranked: false };
  const last = sorted.length - 1, at = (t) => sorted[Math.round(t * last)];
  const least = sorted[0], span = sorted[last] - least;
  const ranked = last >= 4 && at(0.75) - at(0.25) < 0.1 * span;
  const below = (x) => { let low = 0, high = last; while (low < high) { const m = (low + high) >> 1; if (sorted[m] < x) low = m + 1; else high = m; } return low; };
  const share = (x) => (!(span > 0) ? 1 : ranked ? below(x) / last : Math.min(Math.max((x - least) / span, 0), 1));
  return { share, ranked, ticks: (span > 0 ? [0, 0.25, 0.5, 0.75, 1] : [0]).map((t) => (ranked ? at(t) : least + t * span)) };
}

function viridis(t) {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const x = t * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2), f = x - i;
  return `rgb(${stops[i].map((c, k) => Math.round(c + f * (stops[i + 1][k] - c))).join(",")})`;
}

// ---- page -------------------------------------------------------------------------------------

document.querySelectorAll("table.sortable").forEach(makeSortable);
const charts = document.getElementById("charts");
if (charts) JSON.parse(charts.textContent).forEach((chart) => drawChart(document.getElementById("curves"), chart));
document.querySelectorAll("script[type='application/x-explorer']").forEach(async (script) => {
  const place = document.getElementById(script.dataset.place);
  try {
    new Explorer(place, await unpack(script.textContent));
  } catch (error) {
    place.textContent = `The explorer needs a browser of 2023 or newer (${error}).`;
  }
});
