/* "Draw an architecture", and its small version on the first page: layers as cards, and at once the waves that the network
   prefers, its first NADs, its spectrum, and the waves that its linear stand-in loses. */
"use strict";

(function draw() {
  const { make, slider, button, minus } = NADLAB;
  const [LOW, HIGH] = [-4, 3]; // decades of α that the map's colours span
  const WALL = 20; // whole rows of four, five or ten
  const SINE = Math.PI / 2;

  const colour = (value) => NADLAB.sequential((Math.log10(value) - LOW) / (HIGH - LOW));
  const number = (value) => {
    if (value >= 0.01 && value < 1000) return value.toPrecision(2).replace(/^(\d+)\.0$/, "$1");
    const [digits, power] = value.toExponential(0).split("e");
    return `${digits}·10${[...minus(Number(power))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["\u22120123456789".indexOf(c)]).join("")}`;
  };
  const times = (value) => (value < 1e-11 ? "α = 0: lost" : `α = ${number(value)} × a random direction`);

  /* One architecture's pictures. `chosen` hears of the frequency that pointer or keys choose. */
  function panel(chosen, { spectrum = true } = {}) {
    let [shown, moving, frequency, phase] = [null, 0, [2, 1], SINE];
    const title = make("p", { class: "nl-title" });
    const map = NADLAB.waveMap("α over all waves. Arrow keys move to another wave.", (f, how) => chosen(f, how));
    const wave = make("canvas", { class: "nl-wave", role: "img" });
    const name = make("strong");
    const value = make("span");
    const lost = make("span");
    const phases = NADLAB.choice("Phase of the wave", [[SINE, "sine"], [0, "cosine"]], phase, (to) => { phase = to; mark(); });
    const legend = make("p", { class: "nl-legend" }, make("span", {}, "10⁻⁴"), make("span", { class: "nl-ramp" }), make("span", {}, "10³"),
      make("span", { class: "nl-hatch" }), lost);
    const first = make("p", { class: "nl-caption" });
    const wall = make("div", { class: "nl-wall", role: "img" });
    const tiles = Array.from({ length: WALL }, () => wall.appendChild(make("canvas", { "aria-hidden": "true" })));
    const chart = NADLAB.chart("The spectrum: eigenvalues in units of their mean, from the first to the last", { width: Math.min(460, innerWidth - 70) });
    const box = make("div", { class: "nl-panel" }, title,
      make("div", {}, make("p", { class: "nl-caption" }, "How much every wave v is preferred: α(v)"), map, legend,
        make("div", { class: "nl-seen" }, wave, make("div", { class: "nl-side" }, make("p", { class: "nl-value" }, name, make("br"), value), phases))),
      make("div", {}, first, wall));
    if (spectrum) box.append(make("div", { class: "nl-across" }, make("p", { class: "nl-caption" }, "All eigenvalues"), chart));

    const mark = () => {
      if (!shown) return;
      const n = shown.size;
      const own = NADLAB.ownMirror(n, frequency);
      NADLAB.paintSigned(wave, NADLAB.fourier_atom(n, frequency, own ? 0 : phase), n);
      map.set(frequency);
      name.textContent = minus(`(${frequency[0]}, ${frequency[1]})`).replace(", -", ", \u2212");
      value.textContent = times(shown.alpha(frequency, phase));
      wave.setAttribute("aria-label", `The wave ${name.textContent}`);
    };
    const paintMap = (from, share) => map.draw(shown.mean.map((to, k) => {
      if (shown.lost[k]) return NaN;
      return from && from.size === shown.size && !from.lost[k] ? from.mean[k] ** (1 - share) * to ** share : to;
    }), colour);
    box.set = (text) => { title.textContent = text; };
    box.mark = (f) => { frequency = f; mark(); };
    box.wait = () => box.classList.add("nl-waiting");
    box.fits = (f) => !shown || (Math.abs(f[0]) <= shown.size / 2 && Math.abs(f[1]) <= shown.size / 2);
    /* `slowly` lets the map glide from the last architecture to this one. */
    box.show = ({ covariance, alignment, vectors, eigenvalues }, slowly) => {
      if (alignment) {
        const before = shown;
        shown = alignment;
        const n = covariance.size;
        frequency = frequency.map((f) => Math.max(-n / 2, Math.min(n / 2 - 1, f)));
        cancelAnimationFrame(moving);
        const start = performance.now();
        const step = (now) => {
          const share = Math.min(1, Math.max(0, (now - start) / 500));
          paintMap(before, share);
          if (share < 1) moving = requestAnimationFrame(step);
        };
        if (slowly && before && !NADLAB.still()) step(start);
        else paintMap();
        const count = alignment.lost.reduce((sum, one) => sum + one, 0);
        lost.textContent = count ? `${count} lost` : "none lost";
        lost.title = `${count} of ${n ** 2} waves are lost in the linear network`;
        mark();
      }
      if (vectors) {
        const n = shown.size;
        tiles.forEach((tile, k) => {
          tile.hidden = !vectors[k];
          if (vectors[k]) NADLAB.paintSigned(tile, vectors[k], n);
        });
        first.textContent = vectors.length ? `The first ${WALL} NADs` : "With shortcuts, NADs are computed up to 32 × 32.";
        if (vectors.length) wall.setAttribute("aria-label", `The first ${Math.min(WALL, vectors.length)} NADs as images. The first eigenvalue is ${number(eigenvalues[0])} times the mean of all.`);
        if (slowly && !NADLAB.still()) wall.animate([{ opacity: 0.15 }, { opacity: 1 }], { duration: 500 });
        box.classList.remove("nl-waiting");
      }
      if (eigenvalues && spectrum) {
        const decades = [[1e-6, "10⁻⁶"], [1e-4, "10⁻⁴"], [0.01, "0.01"], [1, "1"], [100, "100"], [1e4, "10⁴"]];
        // On a logarithmic axis the later points fall together: draw fewer of them.
        const drawn = Array.from(eigenvalues.keys()).filter((k) => k % Math.ceil((k + 1) / 100) === 0 || k === eigenvalues.length - 1);
        chart.draw([{ x: drawn.map((k) => k + 1), y: drawn.map((k) => eigenvalues[k]), colour: NADLAB.COLOURS[0] }],
          { label: "index", min: 1, max: shown.size ** 2, log: true, ticks: [1, 10, 100, 1000].filter((k) => k <= shown.size ** 2).map((k) => [k, String(k)]) },
          { label: "eigenvalue / mean", min: 1e-6, max: 1e4, log: true, ticks: decades });
      }
    };
    box.said = () => (shown ? `${name.textContent}: ${value.textContent}. ${lost.title}.` : "");
    return box;
  }

  const presetOf = (text) => Object.entries(NADLAB.PRESETS).find(([, preset]) => {
    const other = NADLAB.parse(preset.text);
    return text.replace(/^\d+/, other.size) === preset.text;
  });
  const presets = () => Object.entries(NADLAB.PRESETS).map(([key, { name }]) => [key, name]);

  /* ---- The first page: presets, map and wall. It moves until the reader takes over. ---- */
  NADLAB.lab("hero", (box) => {
    const said = NADLAB.announcer();
    let [playing, timer, frame, current] = [!NADLAB.still(), 0, 0, ""];
    const results = new Map();
    const view = panel((f, how) => { if (how !== "pointermove" || !playing) { stop(); } view.mark(f); said.say(view.said()); }, { spectrum: false });
    const show = (key, slowly) => {
      current = key;
      choice.set(key);
      view.set("");
      const known = results.get(key);
      if (known) { view.show(known, slowly); return; }
      view.wait();
      NADLAB.compute(NADLAB.parse(NADLAB.PRESETS[key].text), (data) => {
        results.set(key, { ...results.get(key), ...data });
        if (current === key) view.show(data, slowly);
      }, key);
    };
    const choice = NADLAB.choice("Architecture", presets(), "lenet", (key) => { stop(); show(key, true); said.say(`${NADLAB.PRESETS[key].name}. ${view.said()}`); });
    const pause = button("", () => (playing ? stop() : play()), { class: "nl-quiet" });
    const label = () => { pause.textContent = playing ? "Pause" : "Play"; };
    function stop() {
      playing = false;
      clearInterval(timer);
      cancelAnimationFrame(frame);
      label();
    }
    function play() {
      playing = true;
      label();
      const keys = Object.keys(NADLAB.PRESETS);
      timer = setInterval(() => { if (!document.hidden) show(keys[(keys.indexOf(current) + 1) % keys.length], true); }, 5000);
      const start = performance.now();
      let last = 0;
      const wander = (now) => {
        if (now - last > 120) {
          last = now;
          const t = (now - start) / 9000;
          view.mark([Math.round(10 * Math.sin(2 * Math.PI * t)), Math.round(10 * Math.sin(2 * Math.PI * 0.618 * t + 1))]);
        }
        frame = requestAnimationFrame(wander);
      };
      frame = requestAnimationFrame(wander);
    }
    const link = make("a", { class: "nl-more", href: box.dataset.page || "draw-an-architecture.html" }, "Draw your own →");
    const note = make("p", { class: "nl-caption" }, "Of the layers alone, without their nonlinearities: chapter 6. Low frequencies are in the middle, high ones at the border.");
    box.append(make("div", { class: "nl-bar" }, choice), view, note, make("div", { class: "nl-foot" }, link, pause), said);
    show("lenet");
    if (playing) play();
    label();
  });

  /* ---- The page: cards, one or two panels, the address, and Python. ---- */
  const NEW = {
    convolution: () => ({ kind: "convolution", kernel: 3, stride: 1, padding: 1 }),
    average: () => ({ kind: "average", kernel: 2, stride: 2 }),
    max: () => ({ kind: "max", kernel: 2, stride: 2 }),
    shortcut: () => ({ kind: "shortcut", over: 2 }),
    global: () => ({ kind: "global" }),
  };
  const NAMES = { convolution: "Convolution", average: "Average pooling", max: "Max pooling", shortcut: "Shortcut", global: "Global average" };
  const RANGES = {
    convolution: { kernel: [1, 9], stride: [1, 4], padding: [0, 4] },
    average: { kernel: [1, 8], stride: [1, 8] },
    max: { kernel: [1, 8], stride: [1, 8] },
    shortcut: { over: [1, 8] },
    global: {},
  };
  const word = (kind, key) => (key === "over" ? "layers" : key === "kernel" && kind !== "convolution" ? "size" : key);

  NADLAB.lab("draw", (box) => {
    const told = new URLSearchParams(location.hash.slice(1));
    const read = (key, otherwise) => {
      try {
        const architecture = NADLAB.parse(told.get(key));
        NADLAB.sizes(architecture);
        return architecture;
      } catch { return otherwise; }
    };
    let architecture = read("a", NADLAB.parse(NADLAB.PRESETS.lenet.text));
    let pinned = read("b", null);
    let frequency = [2, 1];
    const said = NADLAB.announcer();
    const problem = make("p", { class: "nl-problem", role: "alert" });
    const cards = make("ol", { class: "nl-cards", "aria-label": "Layers" });
    const python = make("code");
    const choose = (f) => {
      frequency = f;
      panels().forEach((one) => one.fits(f) && one.mark(f));
      said.say(panels().map((one) => one.said()).join(" Pinned: "));
    };
    const [live, other] = [panel(choose), panel(choose)];
    const panels = () => (pinned ? [live, other] : [live]);

    const preset = NADLAB.choice("Presets", presets(), "", (key) => {
      const size = architecture.size;
      architecture = NADLAB.parse(NADLAB.PRESETS[key].text);
      try { NADLAB.sizes({ ...architecture, size }); architecture.size = size; } catch { /* too small for it */ }
      rebuild(true);
    });
    const size = NADLAB.choice("Image size", [16, 32, 64].map((n) => [n, `${n} × ${n}`]), architecture.size, (n) => {
      architecture.size = n;
      update(true);
    });
    const pin = button("Pin", () => {
      pinned = pinned ? null : NADLAB.parse(NADLAB.format(architecture));
      showPinned();
      address();
    });
    const copy = button("Copy link", async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        said.say("Copied.");
      } catch { said.say("The address of this page holds the architecture: copy it from there."); }
    });
    const add = make("div", { class: "nl-add", role: "group", "aria-label": "Add a layer" }, make("span", {}, "Add"),
      ...Object.keys(NEW).map((kind) => button(NAMES[kind], () => {
        const last = architecture.layers.findIndex((layer) => layer.kind === "global");
        architecture.layers.splice(last < 0 ? architecture.layers.length : last, 0, NEW[kind]());
        rebuild();
      })));

    box.append(
      make("div", { class: "nl-bar" }, preset, size, make("div", { class: "nl-tools" }, pin, copy)),
      make("div", { class: "nl-bench" },
        make("div", { class: "nl-stack" }, cards, add, problem,
          make("details", { class: "nl-python" }, make("summary", {}, "As Python"), make("pre", { tabindex: 0 }, python))),
        make("div", { class: "nl-panels" }, live, other)),
      said);

    function address() {
      const words = [["a", architecture], ...(pinned ? [["b", pinned]] : [])].map(([key, one]) => `${key}=${NADLAB.format(one).replaceAll(" ", "+")}`);
      history.replaceState(null, "", `#${words.join("&")}`);
    }

    function title(one) {
      const [, known] = presetOf(NADLAB.format(one)) || [];
      const end = NADLAB.sizes(one).pop();
      return `${known ? known.name : "Your own"}: ${one.size} × ${one.size} → ${end} × ${end}`;
    }

    function showPinned() {
      pin.textContent = pinned ? "Unpin" : "Pin";
      pin.setAttribute("aria-pressed", String(Boolean(pinned)));
      other.hidden = !pinned;
      box.classList.toggle("nl-two", Boolean(pinned));
      if (!pinned) return;
      other.set(`Pinned. ${title(pinned)}`);
      NADLAB.compute(pinned, (data) => { other.show(data); if (data.alignment && other.fits(frequency)) other.mark(frequency); }, "pinned");
    }

    /* After any change: pictures, sizes on the cards, Python, address. */
    function update(slowly) {
      const [key] = presetOf(NADLAB.format(architecture)) || [""];
      preset.set(key);
      size.set(architecture.size);
      try {
        const sizes = NADLAB.sizes(architecture);
        cards.querySelectorAll(".nl-size").forEach((one, k) => { one.textContent = `${sizes[k + 1]} × ${sizes[k + 1]}`; });
        problem.textContent = "";
        live.set(title(architecture));
        live.wait();
        NADLAB.compute(architecture, (data) => {
          live.show(data, slowly);
          if (data.alignment && live.fits(frequency)) live.mark(frequency);
          if (data.done) said.say(`${title(architecture)}. ${live.said()}`);
        }, "live");
        python.textContent = NADLAB.python(architecture);
        address();
      } catch (error) {
        problem.textContent = `This cannot be computed: ${error.message}.`;
      }
    }

    function rebuild(slowly, focus) {
      let [inside, number] = [[], 0];
      cards.replaceChildren(...architecture.layers.map((layer, index) => {
        const depth = inside.length;
        inside = inside.map((left) => left - 1).filter((left) => left > 0);
        if (layer.kind === "shortcut") inside.push(layer.over);
        number += 1;
        const name = `${NAMES[layer.kind]}, layer ${number}`;
        const move = (by) => {
          const [one] = architecture.layers.splice(index, 1);
          architecture.layers.splice(index + by, 0, one);
          rebuild(false, [index + by, by < 0 ? "up" : "down"]);
        };
        const last = architecture.layers.length - 1;
        const tools = make("span", { class: "nl-moves" },
          button("↑", () => move(-1), { "aria-label": `Move ${name} up`, disabled: index === 0, "data-move": "up" }),
          button("↓", () => move(1), { "aria-label": `Move ${name} down`, disabled: index === last, "data-move": "down" }),
          button("×", () => { architecture.layers.splice(index, 1); rebuild(false, [Math.min(index, last - 1), "remove"]); }, { "aria-label": `Remove ${name}`, "data-move": "remove" }));
        const sliders = Object.entries(RANGES[layer.kind]).map(([key, [min, max]]) =>
          slider(word(layer.kind, key), { min, max, value: layer[key], title: `${word(layer.kind, key)} of ${name}` }, (value) => {
            layer[key] = value;
            if (key === "over") rebuild(false, [index, "input"]);
            else update();
          }));
        return make("li", { class: `nl-card nl-${layer.kind}`, style: `--depth: ${depth}` },
          make("div", { class: "nl-head" }, make("span", {}, NAMES[layer.kind]), make("span", { class: "nl-size" }), tools), ...sliders);
      }));
      update(slowly);
      if (focus && cards.children[focus[0]]) {
        const card = cards.children[focus[0]];
        const wanted = focus[1] === "input" ? card.querySelector("input") : card.querySelector(`[data-move=${focus[1]}]:not(:disabled)`);
        (wanted || card.querySelector("button:not(:disabled)")).focus();
      }
    }
    rebuild();
    showPinned();
  });

  /* At most five lines that compute the same. */
  NADLAB.python = function ({ size, layers }) {
    const width = 8;
    const text = NADLAB.format({ size, layers });
    const options = `image_size=(${size}, ${size})`;
    const [key] = presetOf(text) || [];
    if (["lenet", "vgg11", "resnet18"].includes(key)) return `import nadtools as nt\nnads = nt.analytic_nads("${key}", ${options})`;
    let channels = 1;
    const sequence = (from, to, inBlock) => {
      const words = [];
      for (let index = from; index < to; index++) {
        const layer = layers[index];
        if (layer.kind === "convolution") {
          const { kernel, stride, padding } = layer;
          words.push(`nn.Conv2d(${channels}, ${width}, ${kernel}, ${stride}, ${padding})`);
          const last = !layers.slice(index + 1, to).some(({ kind }) => kind === "convolution");
          if (!(inBlock && last)) words.push("nn.ReLU()");
          channels = width;
        } else if (layer.kind === "shortcut") {
          const end = index + layer.over + 1;
          const [entering, stride] = [channels, layers.slice(index + 1, end).reduce((product, one) => product * (one.stride || 1), 1)];
          const branch = sequence(index + 1, end, true).join(", ");
          const direct = stride === 1 && entering === width ? "nn.Identity()" : `nn.Conv2d(${entering}, ${width}, 1, ${stride})`;
          words.push(`Shortcut(${direct}, nn.Sequential(${branch}))`);
          index = end - 1;
        } else if (layer.kind === "global") {
          words.push("nn.AdaptiveAvgPool2d(1)");
        } else {
          words.push(`nn.${layer.kind === "max" ? "MaxPool2d" : "AvgPool2d"}(${layer.kernel}, ${layer.stride})`);
        }
      }
      return words;
    };
    const body = sequence(0, layers.length, false);
    const features = channels * NADLAB.sizes({ size, layers }).pop() ** 2;
    const lines = ["import nadtools as nt; from torch import nn"];
    if (layers.some(({ kind }) => kind === "shortcut")) {
      lines.push("class Shortcut(nn.Sequential):", "    def forward(self, x): return nn.functional.relu(self[0](x) + self[1](x))");
    }
    lines.push(`network = nn.Sequential(${[...body, "nn.Flatten()", `nn.Linear(${features}, 1)`].join(", ")})`);
    lines.push(`nads = nt.analytic_nads(network, ${options})`);
    return lines.join("\n");
  };
})();
