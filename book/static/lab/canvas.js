/* What the labs of all pages share: colours and maps as in the book's figures, controls that have names, and a way to say
   results to readers who do not see the pictures. */
"use strict";

var NADLAB = {};
NADLAB_PARTS.forEach((part) => part(NADLAB));

(function canvas() {
  /* 256 colours between some at equal distances. */
  const scale = (...colours) => {
    const steps = colours.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    const table = Array.from({ length: 256 }, (_, index) => {
      const place = (index / 255) * (steps.length - 1);
      const k = Math.min(steps.length - 2, Math.floor(place));
      return steps[k].map((low, channel) => Math.round(low + (place - k) * (steps[k + 1][channel] - low)));
    });
    return (share) => table[Math.min(255, Math.max(0, Math.round(255 * share)))];
  };
  /* Viridis, and RdBu reversed: SEQUENTIAL and DIVERGING of companion/style.py, at eleven places. */
  NADLAB.sequential = scale("#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70",
    "#7ad151", "#bddf26", "#fde725");
  NADLAB.diverging = scale("#053061", "#2065ab", "#4393c3", "#90c4dd", "#d1e5f0", "#f7f6f6", "#fddbc7", "#f3a481",
    "#d6604d", "#b1182b", "#67001f");
  NADLAB.COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
  NADLAB.still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  NADLAB.minus = (number) => String(number).replace("-", "\u2212");
  NADLAB.percent = (share) => `${(100 * share).toFixed(1)} %`;

  /* An element: attributes whose name begins with "on" are listeners, the rest of the arguments are its children. */
  const make = NADLAB.make = function (name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== false && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  };

  /* A picture of one canvas pixel for each value; style sheets make it larger. NaN becomes transparent. */
  NADLAB.paint = function (canvas, values, columns, colour) {
    const rows = values.length / columns;
    if (canvas.width !== columns) canvas.width = columns;
    if (canvas.height !== rows) canvas.height = rows;
    const image = new ImageData(columns, rows);
    for (let k = 0; k < values.length; k++) {
      if (Number.isNaN(values[k])) continue;
      const [red, green, blue] = colour(values[k]);
      image.data[4 * k] = red;
      image.data[4 * k + 1] = green;
      image.data[4 * k + 2] = blue;
      image.data[4 * k + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  /* Signed values, with zero at the centre of the map. */
  NADLAB.paintSigned = function (canvas, values, columns, limit) {
    let largest = limit || 0;
    if (!limit) for (const value of values) largest = Math.max(largest, Math.abs(value));
    NADLAB.paint(canvas, values, columns, (value) => NADLAB.diverging(0.5 + (0.5 * value) / (largest || 1)));
  };

  /* The Fourier atom, as nadtools.directions.fourier_atom. */
  NADLAB.fourier_atom = function (n, [i, j], phase) {
    const wave = new Float64Array(n * n);
    let squares = 0;
    for (let r = 0; r < n; r++) {
      for (let c = 0; c < n; c++) {
        const value = Math.cos((2 * Math.PI * ((i * r + j * c) % n)) / n - phase);
        wave[r * n + c] = value;
        squares += value ** 2;
      }
    }
    const norm = Math.sqrt(squares);
    return wave.map((value) => value / norm);
  };
  NADLAB.ownMirror = (n, [i, j]) => (2 * i) % n === 0 && (2 * j) % n === 0;

  NADLAB.button = (text, onclick, attributes = {}) => make("button", { type: "button", ...attributes, onclick }, text);

  /* A slider with its name and value. The returned box has `input`, and `set`, which moves it without telling. */
  NADLAB.slider = function (name, { min, max, step = 1, value, show = String, title = name, log = false }, changed) {
    const input = make("input", { type: "range", min, max, step, "aria-label": title });
    const output = make("output", { "aria-hidden": "true" });
    const number = () => (log ? 10 ** Number(input.value) : Number(input.value));
    const tell = () => {
      output.textContent = NADLAB.minus(show(number()));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    const box = make("label", { class: "nl-slider" }, make("span", {}, name), input, output);
    box.input = input;
    box.set = (to) => { input.value = log ? Math.log10(to) : to; tell(); };
    box.set(value);
    input.addEventListener("input", () => { tell(); changed(number()); });
    return box;
  };

  /* Buttons of which one is pressed. */
  NADLAB.choice = function (name, options, value, changed) {
    const box = make("div", { class: "nl-choice", role: "group", "aria-label": name });
    box.set = (to) => box.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", one.dataset.value === String(to)));
    for (const [key, text] of options) {
      box.append(NADLAB.button(text, () => { box.set(key); changed(key); }, { "data-value": key }));
    }
    box.set(value);
    return box;
  };

  /* A line that is read out when it has stood for a moment, not at every step of a slider. */
  NADLAB.announcer = function () {
    const box = make("p", { class: "nl-said", role: "status", "aria-live": "polite" });
    let waiting = 0;
    box.say = (text) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { if (box.textContent !== text) box.textContent = text; }, NADLAB.patience);
    };
    return box;
  };
  NADLAB.patience = 400; // ms

  const SVG = "http://www.w3.org/2000/svg";
  const shape = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  /* A chart: `lines` are { x, y, colour, dots, bars, faint }; axes { label, min, max, log, ticks: [[value, text], ...] }. */
  NADLAB.chart = function (name, { width = 420, height = 180 } = {}) {
    const svg = shape("svg", { class: "nl-chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
    const [left, right, top, bottom] = [56, width - 16, 10, height - 36];
    const place = (axis, low, high) => {
      const at = axis.log ? Math.log10 : (value) => value;
      return (value) => {
        const share = (at(value) - at(axis.min)) / (at(axis.max) - at(axis.min));
        return low + Math.min(1.02, Math.max(-0.02, share)) * (high - low);
      };
    };
    svg.draw = (lines, xAxis, yAxis) => {
      const [x, y] = [place(xAxis, left, right), place(yAxis, bottom, top)];
      const parts = [];
      for (const [value, text] of xAxis.ticks) {
        parts.push(shape("line", { class: "nl-grid", x1: x(value), x2: x(value), y1: top, y2: bottom }),
          shape("text", { x: x(value), y: bottom + 14, "text-anchor": "middle" }, text));
      }
      for (const [value, text] of yAxis.ticks) {
        parts.push(shape("line", { class: "nl-grid", x1: left, x2: right, y1: y(value), y2: y(value) }),
          shape("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text));
      }
      parts.push(shape("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, xAxis.label),
        shape("text", { transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yAxis.label));
      for (const line of lines) {
        const points = Array.from(line.y, (value, k) => [x(line.x ? line.x[k] : k), y(value), value])
          .filter(([, , value]) => Number.isFinite(value) && (!yAxis.log || value > 0));
        if (line.bars) {
          const wide = (right - left) / line.y.length;
          points.forEach(([px, py]) => parts.push(shape("rect", {
            x: px - wide / 2, y: py, width: wide, height: Math.max(0, bottom - py), fill: line.colour, "fill-opacity": 0.55,
          })));
          continue;
        }
        if (!line.dots || line.joined) {
          parts.push(shape("path", { d: points.map(([px, py], k) => `${k ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join(""),
            fill: "none", stroke: line.colour, "stroke-width": line.faint ? 1 : 2, "stroke-opacity": line.faint ? 0.45 : 1 }));
        }
        if (line.dots) points.forEach(([px, py]) => parts.push(shape("circle", { cx: px, cy: py, r: line.dots, fill: line.colour })));
      }
      svg.replaceChildren(...parts);
    };
    return svg;
  };

  /* A map over frequencies, (0, 0) in its middle, i downwards and j to the right, with a mark that the pointer and the arrow
     keys move. `picked` gets the frequency. */
  NADLAB.waveMap = function (name, picked) {
    const canvas = make("canvas", { "aria-hidden": "true" });
    const mark = make("span", { class: "nl-mark", "aria-hidden": "true" });
    const frame = make("div", { class: "nl-map", tabindex: 0, role: "application", "aria-roledescription": "map of waves", "aria-label": name }, canvas, mark);
    let n = 32;
    let frequency = [0, 0];
    const box = make("figure", { class: "nl-map-box" }, frame);
    box.set = (to) => {
      frequency = to;
      mark.style.left = `${(100 * (to[1] + n / 2)) / n}%`;
      mark.style.top = `${(100 * (to[0] + n / 2)) / n}%`;
      mark.style.width = mark.style.height = `${100 / n}%`;
    };
    /* Values at [i * n + j], modulo n, as the Fourier transform has them. */
    box.draw = (values, colour) => {
      n = Math.round(Math.sqrt(values.length));
      const shifted = new Float64Array(n * n);
      for (let r = 0; r < n; r++) {
        const i = (r + n / 2) % n;
        for (let c = 0; c < n; c++) shifted[r * n + c] = values[i * n + ((c + n / 2) % n)];
      }
      NADLAB.paint(canvas, shifted, n, colour);
      box.set(frequency.map((f) => Math.max(-n / 2, Math.min(n / 2 - 1, f))));
    };
    const at = (event) => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      const cell = (share) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
      picked([cell((event.clientY - top) / height) - n / 2, cell((event.clientX - left) / width) - n / 2], event.type);
    };
    for (const type of ["pointermove", "pointerdown", "click"]) frame.addEventListener(type, at);
    frame.addEventListener("keydown", (event) => {
      const [up, along] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
      if (up === undefined) return;
      event.preventDefault();
      const inside = (f) => ((f + n / 2 + n) % n) - n / 2;
      picked([inside(frequency[0] + up), inside(frequency[1] + along)], "key");
    });
    return box;
  };

  /* Work that takes long is done by a worker made of the two files that need no page. Of the requests of one owner that wait
     only the last is carried out. */
  let worker = null;
  let busy = null;
  const waiting = new Map();
  const program = () => [
    '"use strict"; const NADLAB = {};',
    ...NADLAB_PARTS.map((part) => `(${part})(NADLAB);`),
    `onmessage = ({ data: architecture }) => {
      const covariance = NADLAB.covariance(architecture);
      postMessage({ covariance });
      postMessage({ ...NADLAB.nads(covariance), done: true });
    };`,
  ].join("\n");
  const send = () => {
    if (busy || !waiting.size) return;
    const [[owner, request]] = waiting;
    waiting.delete(owner);
    busy = request;
    worker = worker || new Worker(URL.createObjectURL(new Blob([program()], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => {
      if (data.covariance) data.alignment = NADLAB.alignment(data.covariance);
      request.received(data);
      if (!data.done) return;
      busy = null;
      send();
    };
    worker.postMessage(request.architecture);
  };

  /* Everything about an architecture: `received` gets { covariance, alignment, vectors, eigenvalues, done } at once for a chain
     of layers, and in two parts where there are shortcuts. An error says what is wrong with the architecture. */
  NADLAB.compute = function (architecture, received, owner) {
    NADLAB.sizes(architecture);
    waiting.delete(owner);
    if (architecture.layers.some(({ kind }) => kind === "shortcut")) {
      waiting.set(owner, { architecture, received });
      send();
      return;
    }
    const covariance = NADLAB.covariance(architecture);
    received({ covariance, alignment: NADLAB.alignment(covariance), ...NADLAB.nads(covariance), done: true });
  };

  /* Every lab is made when it is about to be seen. */
  const labs = {};
  NADLAB.lab = (name, build) => { labs[name] = build; };
  document.addEventListener("DOMContentLoaded", () => {
    const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
      seen.unobserve(target);
      target.replaceChildren();
      labs[target.dataset.lab](target);
      target.classList.add("nl-ready");
    }), { rootMargin: "600px" });
    document.querySelectorAll(".nad-lab").forEach((box) => labs[box.dataset.lab] && seen.observe(box));
  });
})();
