/* "Bet": does this network learn this wave? The accuracies are stored results of the book, brought here by its build
   (NADLAB_DATA), and α bets too: on every wave that the network prefers to a random direction. */
"use strict";

NADLAB.lab("bet", (box) => {
  const { make, button, minus, percent } = NADLAB;
  const { networks, learned } = window.NADLAB_DATA;
  const ROUND = 10;
  const said = NADLAB.announcer();
  const verdict = make("p", { class: "nl-verdict" });
  const score = make("p", { class: "nl-score" });
  const wave = make("canvas", { class: "nl-wave", role: "img" });
  const name = make("strong");
  const stamp = make("p", { class: "nl-stamp" });
  let [network, current, bets, alignment] = [networks[0], null, [], null];
  const size = () => NADLAB.parse(NADLAB.PRESETS[network.key].text).size;
  const key = (i, j) => ((i + 32) % 32) * 32 + ((j + 32) % 32);

  const map = NADLAB.waveMap("Waves with a stored training. Arrow keys move, to the nearest of them.", (f, how) => {
    if (how !== "pointermove") choose(nearest(f));
  });
  const opposite = (k) => key(-Math.floor(k / 32), -(k % 32));
  const distance = ([a, b], [c, d]) => Math.hypot(a - c, b - d);
  /* Of a frequency and its opposite, which name the same wave, the closer one counts. */
  const nearest = (f) => {
    const ahead = current ? [f[0] - current.at[0], f[1] - current.at[1]] : [0, 0];
    const candidates = network.waves.flatMap((one) => [one.frequency, one.frequency.map((x) => -x)].map((at) => ({ ...one, at })));
    const onward = candidates.filter(({ at }) => current && (at[0] - current.at[0]) * ahead[0] + (at[1] - current.at[1]) * ahead[1] > 0);
    const pool = Math.abs(ahead[0]) + Math.abs(ahead[1]) === 1 && onward.length ? onward : candidates;
    return pool.reduce((best, one) => (distance(one.at, f) < distance(best.at, f) ? one : best));
  };
  /* Ours counts where there are both. */
  const accuracyOf = ({ ours, authors }) => (ours === undefined ? authors : ours);
  const inside = ([i, j]) => [i, j].map((f) => (f > 15 ? f - 32 : f));

  function paint() {
    const values = new Float64Array(32 * 32).fill(NaN);
    for (const { frequency: [i, j] } of network.waves) values[key(i, j)] = values[opposite(key(i, j))] = -1;
    for (const { wave: one } of bets) values[key(...one.frequency)] = values[opposite(key(...one.frequency))] = accuracyOf(one);
    map.draw(values, (value) => (value < 0 ? [128, 140, 152] : NADLAB.sequential(2 * value - 1)));
    if (current) map.set(inside(current.at));
  }

  function choose(one) {
    current = one;
    const n = size();
    NADLAB.paintSigned(wave, NADLAB.fourier_atom(n, one.frequency, NADLAB.ownMirror(n, one.frequency) ? 0 : network.phase), n);
    name.textContent = `(${one.frequency.map(minus).join(", ")})`;
    wave.setAttribute("aria-label", `The wave ${name.textContent}`);
    const before = bets.find(({ wave: { frequency } }) => String(frequency) === String(one.frequency));
    verdict.textContent = before ? before.text : "Your bet?";
    yes.disabled = no.disabled = Boolean(before) || bets.length >= ROUND;
    map.set(inside(one.at));
  }

  function bet(mine) {
    const { ours, authors } = current;
    const truth = accuracyOf(current) > learned;
    const alphas = alignment(current.frequency, network.phase) > 1;
    const measured = [ours && `${percent(ours)} in this book`, authors && `${percent(authors)} by the authors`].filter(Boolean).join(", ");
    const text = `It reached ${measured}: ${truth ? "more" : "not more"} than ${100 * learned} %. `
      + `You were ${mine === truth ? "right" : "wrong"}, α was ${alphas === truth ? "right" : "wrong"}.`;
    bets.push({ wave: current, mine: mine === truth, alphas: alphas === truth, text });
    verdict.textContent = text;
    yes.disabled = no.disabled = true;
    tally();
    paint();
    said.say(`${text} ${score.textContent}`);
    (bets.length >= Math.min(ROUND, network.waves.length) ? again : another).focus();
  }

  function tally() {
    const [mine, alphas] = ["mine", "alphas"].map((who) => bets.filter((one) => one[who]).length);
    const done = bets.length >= Math.min(ROUND, network.waves.length);
    score.textContent = bets.length ? `After ${bets.length}: you ${mine}, α ${alphas}.` : "";
    if (done) {
      score.textContent += mine > alphas ? " You beat the closed form." : mine === alphas ? " You and α know as much." : " α knows the architecture, and never saw a training.";
    }
    another.disabled = done;
  }

  function random() {
    const left = network.waves.filter(({ frequency }) => !bets.some(({ wave: one }) => String(one.frequency) === String(frequency)));
    const one = left[Math.floor(Math.random() * left.length)];
    if (one) choose({ ...one, at: inside(one.frequency) });
  }

  function start(chosen) {
    network = networks.find((one) => one.key === chosen);
    bets = [];
    current = null;
    NADLAB.compute(NADLAB.parse(NADLAB.PRESETS[network.key].text), (data) => { if (data.alignment) alignment = data.alignment.alpha; }, "bet");
    stamp.textContent = network.stamp;
    random();
    tally();
    paint();
  }

  const yes = button("It learns it", () => bet(true), { class: "nl-strong" });
  const no = button("It does not", () => bet(false), { class: "nl-strong" });
  const another = button("Another wave", () => { random(); said.say(`Wave ${name.textContent}. Your bet?`); });
  const again = button("Start again", () => { start(network.key); said.say(`A new round. Wave ${name.textContent}. Your bet?`); });
  box.append(
    make("div", { class: "nl-bar" }, NADLAB.choice("Network", networks.map(({ key: one, name: text }) => [one, text]), network.key, start)),
    make("div", { class: "nl-pair nl-plain" }, make("div", {}, map),
      make("div", { class: "nl-side nl-wide" }, wave, make("p", { class: "nl-value" }, "The wave ", name),
        make("div", { class: "nl-tools" }, yes, no), verdict, score, make("div", { class: "nl-tools" }, another, again))),
    stamp, said);
  start(network.key);
});
