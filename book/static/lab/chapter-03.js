/* Chapter 3: gradient descent of the deep linear model over two weights, step by step. The Python of the same is
   companion/chapter_03/landscape.py. */
"use strict";

(function chapter03() {
  const { make, slider, button } = NADLAB;
  const [LOW, HIGH, GRID] = [-0.5, 4, 61];

  NADLAB.two_weight_loss = function (theta, phi, m, epsilon, sigma) {
    const product = m * theta * phi;
    return (1 - epsilon * product) ** 2 + sigma ** 2 * product ** 2;
  };

  /* Descent from a start: the path of (θ, φ), its losses, the least loss, and the steps after which nine tenths of the way to
     it are done for good. */
  NADLAB.two_weight_landscape = function (m, { learning_rate: rate, steps, start: [theta, phi], epsilon = 1, sigma = 0.3 }) {
    const second = epsilon ** 2 + sigma ** 2;
    const path = [[theta, phi]];
    for (let step = 0; step < steps; step++) {
      const slope = 2 * (second * m * theta * phi - epsilon) * m;
      [theta, phi] = [theta - rate * slope * phi, phi - rate * slope * theta];
      if (!(Math.max(Math.abs(theta), Math.abs(phi)) < 1e60)) break;
      path.push([theta, phi]);
    }
    const losses = path.map(([t, p]) => NADLAB.two_weight_loss(t, p, m, epsilon, sigma));
    const least = m ? sigma ** 2 / second : 1;
    const level = least + 0.1 * (1 - least);
    const last = losses.findLastIndex((loss) => !(loss <= level));
    return { path, path_losses: losses, least, steps_to_learn: last === losses.length - 1 ? Infinity : last + 1 };
  };

  NADLAB.lab("chapter-03", (box) => {
    const STEPS = 60;
    const state = { m: 1, learning_rate: 0.1, sigma: 0.3, theta: 1, phi: 0.1, step: STEPS };
    const said = NADLAB.announcer();
    const status = make("p", { class: "nl-verdict" });
    const valley = make("canvas", { "aria-hidden": "true" });
    const path = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    path.setAttribute("viewBox", "0 0 100 100");
    path.setAttribute("aria-hidden", "true");
    const map = make("div", { class: "nl-map nl-valley", role: "img", "aria-label": "The loss over the weights θ, to the right, and φ, upwards, with the path of descent" }, valley, path);
    const curve = NADLAB.chart("The loss by step", { width: 360, height: 230 });
    let timer = 0;

    const update = () => {
      const { m, sigma, learning_rate, theta, phi } = state;
      const found = NADLAB.two_weight_landscape(m, { learning_rate, steps: STEPS, start: [theta, phi], sigma });
      const weight = (k) => LOW + (k / (GRID - 1)) * (HIGH - LOW);
      const losses = Float64Array.from({ length: GRID * GRID }, (_, k) =>
        NADLAB.two_weight_loss(weight(k % GRID), weight(GRID - 1 - Math.floor(k / GRID)), m, 1, sigma));
      NADLAB.paint(valley, losses, GRID, (loss) => NADLAB.sequential(Math.log10(Math.max(1e-3, loss - found.least) / 1e-3) / 5.3));
      const end = Math.min(state.step, found.path.length - 1);
      const across = (x) => (100 * (x - LOW)) / (HIGH - LOW);
      const points = found.path.slice(0, end + 1).map(([t, p]) => [across(t), 100 - across(p)]);
      path.innerHTML = `<polyline points="${points.map((xy) => xy.map((x) => Math.max(-50, Math.min(150, x)).toFixed(2)).join()).join(" ")}"/>`
        + points.map(([x, y], k) => (x > 0 && x < 100 && y > 0 && y < 100 ? `<circle cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${k === end ? 1.8 : 0.9}"/>` : "")).join("");
      const top = Math.max(1.05, Math.min(5, 1.05 * Math.max(...found.path_losses)));
      curve.draw([{ y: found.path_losses, colour: NADLAB.COLOURS[0] }, { x: [end], y: [found.path_losses[end]], colour: NADLAB.COLOURS[1], dots: 5 },
        { x: [0, STEPS], y: [found.least, found.least], colour: "#8c8c8c", faint: true }],
      { label: "step", min: 0, max: STEPS, ticks: [0, 20, 40, 60].map((x) => [x, String(x)]) },
      { label: "loss", min: 0, max: top, ticks: [0, 0.5, 1, 2, 3, 4].filter((x) => x < top && (top < 2 || x !== 0.5)).map((x) => [x, String(x)]) });
      const curvature = 2 * (1 + sigma ** 2) * (theta * m) ** 2;
      const three = (x) => Number(x.toPrecision(3));
      const loss = found.path_losses[end];
      status.textContent = `Curvature along φ at the start: ${three(curvature)}. `
        + (curvature ? `A step along φ diverges above the learning rate ${three(2 / curvature)}. ` : "")
        + (Number.isFinite(found.steps_to_learn) ? `Learned after ${found.steps_to_learn} steps. ` : `Not learned in ${STEPS} steps. `)
        + `Loss after ${end}: ${loss < 1e5 ? three(loss) : loss.toExponential(1)}.`;
      said.say(status.textContent);
    };
    const set = (key) => (value) => { state[key] = value; update(); };
    const steps = slider("step", { min: 0, max: STEPS, value: STEPS }, (value) => { halt(); set("step")(value); });
    const play = button("Train", () => {
      if (timer) { halt(); return; }
      play.textContent = "Stop";
      state.step = NADLAB.still() ? STEPS - 1 : 0;
      timer = setInterval(() => {
        state.step += 1;
        steps.set(state.step);
        update();
        if (state.step >= STEPS) halt();
      }, 80);
    }, { class: "nl-strong" });
    function halt() {
      clearInterval(timer);
      timer = 0;
      play.textContent = "Train";
    }
    const three = (x) => x.toFixed(3);
    const one = (x) => x.toFixed(1);
    box.append(
      make("div", { class: "nl-sliders" },
        slider("m", { min: -1.5, max: 0, step: 0.05, value: 1, log: true, show: three }, set("m")),
        slider("learning rate", { min: -2, max: 1.5, step: 0.05, value: 0.1, log: true, show: three }, set("learning_rate")),
        slider("σ", { min: 0, max: 3, step: 0.1, value: 0.3, show: one, title: "sigma" }, set("sigma")),
        slider("θ at the start", { min: -0.4, max: 4, step: 0.1, value: 1, show: one, title: "theta at the start" }, set("theta")),
        slider("φ at the start", { min: -0.4, max: 4, step: 0.1, value: 0.1, show: one, title: "phi at the start" }, set("phi")),
        steps),
      make("div", { class: "nl-tools" }, play),
      status,
      make("div", { class: "nl-row" },
        make("div", {}, make("p", { class: "nl-caption" }, "The loss over θ → and φ ↑, from −0.5 to 4"), map),
        make("div", { class: "nl-grow" }, make("p", { class: "nl-caption" }, "The loss by step; the least there is"), curve)),
      said);
    update();
  });
})();
