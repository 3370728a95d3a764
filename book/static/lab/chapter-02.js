/* Chapter 2: a wave before and after pooling, the frequencies that share its bin, and the best accuracy that is left. The
   Python of the same is nadtools/theory/pooling.py and companion/chapter_02/explorer.py. */
"use strict";

(function chapter02() {
  const { make, slider, percent } = NADLAB;
  const TOLERANCE = 64 * 2 ** -52; // RESPONSE_TOLERANCE

  /* The taps of a filter on all D samples, counted from sample nS and around the circle. */
  NADLAB.taps = function (prefilter, size, stride) {
    const taps = new Float64Array(size);
    const fromResponse = (response) => {
      for (let n = 0; n < size; n++) {
        for (let l = 0; l < size; l++) {
          const signed = l < size / 2 ? l : l - size;
          taps[n] += (response(signed) * Math.cos((2 * Math.PI * ((l * n) % size)) / size)) / size;
        }
      }
    };
    if (prefilter === "average") taps.fill(1 / stride, 0, stride);
    else if (prefilter === "identity") taps[0] = 1;
    else if (prefilter === "binomial") {
      const order = 2 * (stride - 1);
      for (let k = 0, weight = 1 / 2 ** order; k <= order; weight *= (order - k) / (k + 1), k++) {
        taps[(k - order / 2 + size) % size] += weight;
      }
    } else if (prefilter === "gaussian") fromResponse((l) => Math.exp(-2 * ((Math.PI * stride) / 2 * (l / size)) ** 2));
    else fromResponse((l) => (2 * stride * Math.abs(l) <= size ? 1 : 0));
    return taps;
  };

  /* m̂[ℓ] = Σ_j w[j] exp(2πi j ℓ/D), as [real, imaginary]; what is rounding is zero. */
  NADLAB.spectral_response = function (prefilter, size, stride) {
    const taps = NADLAB.taps(prefilter, size, stride);
    const floor = TOLERANCE * taps.reduce((sum, w) => sum + Math.abs(w), 0);
    const [re, im] = [new Float64Array(size), new Float64Array(size)];
    for (let l = 0; l < size; l++) {
      for (let j = 0; j < size; j++) {
        const angle = (2 * Math.PI * ((j * l) % size)) / size;
        re[l] += taps[j] * Math.cos(angle);
        im[l] += taps[j] * Math.sin(angle);
      }
      if (Math.abs(re[l]) <= floor) re[l] = 0;
      if (Math.abs(im[l]) <= floor) im[l] = 0;
    }
    return [re, im];
  };

  /* Φ(x) for x ≥ 0, by the series near zero and a continued fraction far from it. */
  NADLAB.normalCdf = function (x) {
    if (x === Infinity) return 1;
    const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
    if (x < 3) {
      let [sum, term] = [x, x];
      for (let k = 1; term > 1e-17 * sum; k++) { term *= (x * x) / (2 * k + 1); sum += term; }
      return 0.5 + density * sum;
    }
    let fraction = 0;
    for (let k = 60; k > 0; k--) fraction = k / (x + fraction);
    return 1 - density / (x + fraction);
  };

  /* Best accuracy after pooling for the wave of every frequency: the three cases of the Python's docstring. */
  NADLAB.fourier_accuracies = function (prefilter, stride, epsilon, sigma, size, phase) {
    const [re, im] = NADLAB.spectral_response(prefilter, size, stride);
    const energy = re.map((x, l) => x ** 2 + im[l] ** 2);
    const bins = size / stride;
    const floor = TOLERANCE * Math.sqrt(Math.max(...energy));
    return Float64Array.from(energy, (own, l) => {
      const mirror = (size - l) % size;
      const interferes = (2 * l) % bins === 0 && l !== mirror;
      let [signal, noise] = [Math.sqrt(own), 0];
      for (let k = 1; k < stride; k++) {
        const alias = (l + k * bins) % size;
        if (!(interferes && alias === mirror)) noise += energy[alias];
      }
      if (interferes) {
        const inPhase = Math.abs(re[l] * Math.cos(phase) + im[l] * Math.sin(phase));
        const quadrature = Math.abs(im[l] * Math.cos(phase) - re[l] * Math.sin(phase));
        signal = Math.SQRT2 * (inPhase > floor ? inPhase : 0);
        noise += 2 * (quadrature > floor ? quadrature : 0) ** 2;
      }
      return NADLAB.normalCdf(epsilon * signal === 0 ? 0 : (epsilon * signal) / (sigma * Math.sqrt(noise)));
    });
  };

  NADLAB.lab("chapter-02", (box) => {
    const size = 128;
    const strides = [1, 2, 4, 8, 16];
    const state = { frequency: 9, phase: 0, stride: 4, prefilter: "average", ratio: 1 };
    const said = NADLAB.announcer();
    const status = make("p", { class: "nl-verdict" });
    const [above, below, curve] = ["The wave and its pooled samples", "The filter's response, with the wave's frequency and its aliases",
      "Best accuracy after pooling, by frequency"].map((name) => NADLAB.chart(name, { width: Math.max(300, box.clientWidth - 34), height: 165 }));
    const update = () => {
      const { frequency, phase, stride, prefilter, ratio } = state;
      const bins = size / stride;
      const aliases = Array.from({ length: stride - 1 }, (_, k) => (frequency + (k + 1) * bins) % size).sort((a, b) => a - b);
      const accuracies = NADLAB.fourier_accuracies(prefilter, stride, ratio, 1, size, phase);
      const [re, im] = NADLAB.spectral_response(prefilter, size, stride);
      const energy = re.map((x, l) => x ** 2 + im[l] ** 2);
      const wave = (n) => Math.cos((2 * Math.PI * frequency * n) / size - phase);
      const taps = NADLAB.taps(prefilter, size, stride);
      const pooled = Float64Array.from({ length: bins }, (_, n) => taps.reduce((sum, w, j) => sum + w * wave(n * stride + j), 0));
      const fine = Float64Array.from({ length: 8 * size }, (_, k) => k / 8);
      const ticks = [0, 32, 64, 96, 128].map((x) => [x, String(x)]);
      const [blue, orange, , pink] = NADLAB.COLOURS;
      above.draw([{ x: fine, y: fine.map(wave), colour: "#8c8c8c", faint: true }, { x: pooled.map((_, n) => n * stride), y: pooled, colour: blue, dots: 2, joined: true }],
        { label: "sample", min: 0, max: size, ticks }, { label: "wave, pooled", min: -1.1, max: 1.1, ticks: [[-1, "−1"], [0, "0"], [1, "1"]] });
      const dots = (values) => [{ x: aliases, y: aliases.map((l) => values[l]), colour: pink, dots: 4 }, { x: [frequency], y: [values[frequency]], colour: orange, dots: 5 }];
      const frequencies = { label: "frequency", min: 0, max: size, ticks };
      below.draw([{ y: energy, colour: blue }, ...dots(energy)], frequencies, { label: "|m̂|²", min: 0, max: 1.08 * Math.max(1, ...energy), ticks: [[0, "0"], [1, "1"]] });
      curve.draw([{ y: accuracies, colour: blue }, ...dots(accuracies)], frequencies, { label: "accuracy", min: 0.48, max: 1.02, ticks: [[0.5, "50 %"], [0.75, "75 %"], [1, "100 %"]] });
      const shared = aliases.length ? `shares bin ${frequency % bins} with ${aliases.join(", ")}` : "is alone";
      status.textContent = `ℓ = ${frequency} ${shared}. Best accuracy: ${percent(accuracies[frequency])}.`;
      said.say(status.textContent);
    };
    const set = (key) => (value) => { state[key] = value; update(); };
    box.append(
      make("div", { class: "nl-bar" }, NADLAB.choice("Prefilter", ["average", "binomial", "gaussian", "ideal", "identity"].map((one) => [one, one]), state.prefilter, set("prefilter"))),
      make("div", { class: "nl-sliders" },
        slider("frequency ℓ", { min: 0, max: size / 2, value: state.frequency }, set("frequency")),
        slider("phase", { min: 0, max: Math.PI, step: Math.PI / 16, value: 0, show: (x) => x.toFixed(2) }, set("phase")),
        slider("stride S", { min: 0, max: strides.length - 1, value: 2, show: (k) => String(strides[k]) }, (k) => set("stride")(strides[k])),
        slider("ε/σ", { min: -1, max: 1, step: 0.1, value: 1, log: true, show: (x) => x.toFixed(2), title: "epsilon over sigma" }, set("ratio"))),
      status, above, below, curve, said);
    update();
  });
})();
