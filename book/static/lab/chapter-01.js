/* Chapter 1: a wave, its energy, samples of D(v), and what one coordinate of them tells. The Python of the same is
   companion/explorer/directions.py; fourier_atom is in canvas.js. */
"use strict";

(function chapter01() {
  const { make, slider, minus } = NADLAB;
  const N = 32;

  /* The share of energy at each frequency, at [i * n + j] modulo n, as nadtools.directions.fourier_energy unshifted. */
  NADLAB.fourier_energy = function (v, n) {
    const along = (re, im) => { // one-dimensional transforms of the rows, transposed
      const [outRe, outIm] = [new Float64Array(n * n), new Float64Array(n * n)];
      for (let r = 0; r < n; r++) {
        for (let f = 0; f < n; f++) {
          let [x, y] = [0, 0];
          for (let c = 0; c < n; c++) {
            const angle = (-2 * Math.PI * ((f * c) % n)) / n;
            const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
            x += re[r * n + c] * cosine - im[r * n + c] * sine;
            y += re[r * n + c] * sine + im[r * n + c] * cosine;
          }
          outRe[f * n + r] = x;
          outIm[f * n + r] = y;
        }
      }
      return [outRe, outIm];
    };
    const [re, im] = along(...along(v, new Float64Array(n * n)));
    const energy = re.map((x, k) => x ** 2 + im[k] ** 2);
    const total = energy.reduce((sum, x) => sum + x, 0);
    return energy.map((x) => x / total);
  };

  /* x = ε y v + w from standard normal numbers g: the noise has no component along v. */
  NADLAB.sample = function (v, epsilon, sigma, y, g) {
    let along = 0;
    for (let k = 0; k < v.length; k++) along += g[k] * v[k];
    return g.map((x, k) => sigma * x + (epsilon * y - sigma * along) * v[k]);
  };

  /* Along a unit vector r both classes are normal, at ±mean and with this deviation. */
  NADLAB.projection = function (v, r, epsilon, sigma) {
    let cosine = 0;
    for (let k = 0; k < v.length; k++) cosine += v[k] * r[k];
    return { mean: epsilon * cosine, deviation: sigma * Math.sqrt(Math.max(0, 1 - cosine ** 2)) };
  };

  /* Random numbers that are the same at each visit (mulberry32), and normal ones of them (Box and Muller). */
  NADLAB.normals = function (seed, count) {
    let state = seed;
    const uniform = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    return Float64Array.from({ length: count }, () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()));
  };

  NADLAB.lab("chapter-01", (box) => {
    const state = { i: 3, j: 4, phase: 0, epsilon: 1, sigma: 1 };
    const said = NADLAB.announcer();
    const noise = Array.from({ length: 6 }, (_, k) => NADLAB.normals(k + 1, N * N));
    const r = NADLAB.normals(99, N * N);
    const length = Math.hypot(...r);
    r.forEach((x, k) => { r[k] = x / length; });
    const draws = NADLAB.normals(7, 2000); // of the part of the noise that each histogram sees
    const canvas = (text) => make("canvas", { class: "nl-wave", role: "img", "aria-label": text });
    const [direction, energy] = [canvas("The direction v"), canvas("Its Fourier energy, with frequency (0, 0) in the middle")];
    const samples = noise.map((_, k) => make("canvas", { role: "img", "aria-label": `A sample with y = ${k < 3 ? "+1" : "−1"}` }));
    const size = { width: 330, height: 170 };
    const [alongV, alongR] = ["v", "a random direction r"].map((name) => NADLAB.chart(`Histogram of samples along ${name}, by class`, size));
    const [captionV, captionR] = [make("p", { class: "nl-caption" }), make("p", { class: "nl-caption" })];

    const histogram = (chart, { mean, deviation }) => {
      const reach = Math.max(3.2 * Math.hypot(1, state.sigma), 1.3 * state.epsilon);
      const bins = 61;
      const counts = [new Float64Array(bins), new Float64Array(bins)];
      draws.forEach((g, k) => {
        const x = (k % 2 ? -1 : 1) * mean + deviation * g;
        const bin = Math.floor(((x + reach) / (2 * reach)) * bins);
        if (bin >= 0 && bin < bins) counts[k % 2][bin] += 1;
      });
      const middle = Float64Array.from({ length: bins }, (_, k) => ((k + 0.5) / bins) * 2 * reach - reach);
      const most = Math.max(...counts[0], ...counts[1]);
      const tick = reach > 4 ? 5 : 2;
      chart.draw([{ x: middle, y: counts[0], bars: true, colour: NADLAB.COLOURS[1] }, { x: middle, y: counts[1], bars: true, colour: NADLAB.COLOURS[0] }],
        { label: "coordinate", min: -reach, max: reach, ticks: [-tick, 0, tick].map((x) => [x, minus(x)]) },
        { label: "samples", min: 0, max: most * 1.08, ticks: [[0, "0"]] });
    };
    const update = () => {
      const own = NADLAB.ownMirror(N, [state.i, state.j]);
      const v = NADLAB.fourier_atom(N, [state.i, state.j], own ? 0 : state.phase);
      NADLAB.paintSigned(direction, v, N);
      const shares = NADLAB.fourier_energy(v, N);
      NADLAB.paint(energy, shares.map((_, k) => shares[((Math.floor(k / N) + N / 2) % N) * N + (((k % N) + N / 2) % N)]), N, (x) => NADLAB.sequential(2 * x));
      samples.forEach((one, k) => NADLAB.paintSigned(one, NADLAB.sample(v, state.epsilon, state.sigma, k < 3 ? 1 : -1, noise[k]), N));
      const across = NADLAB.projection(v, r, state.epsilon, state.sigma);
      histogram(alongV, { mean: state.epsilon, deviation: 0 });
      histogram(alongR, across);
      captionV.textContent = `Along v the classes lie at ±${state.epsilon.toFixed(1)}, without noise`;
      captionR.textContent = `Along a random r: ±${Math.abs(across.mean).toFixed(3)}, noise ${across.deviation.toFixed(2)}`;
      said.say(`v at frequency (${minus(state.i)}, ${state.j})${own ? ", where only the cosine exists" : ""}. ${captionV.textContent}. ${captionR.textContent}.`);
    };
    const set = (key) => (value) => { state[key] = value; update(); };
    box.append(
      make("div", { class: "nl-sliders" },
        slider("frequency i", { min: -16, max: 16, value: state.i }, set("i")),
        slider("frequency j", { min: 0, max: 16, value: state.j }, set("j")),
        slider("phase", { min: 0, max: Math.PI, step: Math.PI / 16, value: 0, show: (x) => x.toFixed(2) }, set("phase")),
        slider("ε", { min: 0.1, max: 3, step: 0.1, value: 1, show: (x) => x.toFixed(1), title: "epsilon" }, set("epsilon")),
        slider("σ", { min: 0, max: 5, step: 0.1, value: 1, show: (x) => x.toFixed(1), title: "sigma" }, set("sigma"))),
      make("div", { class: "nl-row" },
        make("div", {}, make("p", { class: "nl-caption" }, "v"), direction),
        make("div", {}, make("p", { class: "nl-caption" }, "its energy"), energy),
        make("div", {}, make("p", { class: "nl-caption" }, "samples with y = +1"), make("div", { class: "nl-samples" }, ...samples.slice(0, 3)),
          make("p", { class: "nl-caption" }, "and with y = −1"), make("div", { class: "nl-samples" }, ...samples.slice(3)))),
      make("div", { class: "nl-row" }, make("div", {}, captionV, alongV), make("div", {}, captionR, alongR)),
      said);
    update();
  });
})();
