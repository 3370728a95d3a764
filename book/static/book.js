/* Plotly follows the window's width only. A figure inside a closed solution has no width when it is drawn, and the
   sidebar changes the width of the text: follow the width of the figure's own box instead. */
document.addEventListener("DOMContentLoaded", () => {
  const observer = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const drawn = target._fullLayout;
      if (drawn && contentRect.width > 0 && Math.abs(drawn.width - contentRect.width) > 1) {
        Plotly.Plots.resize(target);
      }
    }
  });
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => observer.observe(figure));
});

/* A map over frequencies is linked with a picture of the wave: the pointer on a cell draws the wave of its frequency. */
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => {
    const link = figure.layout && figure.layout.meta && figure.layout.meta.waves;
    if (!link) return;
    const { size, trace, annotation } = link;
    let shown = null;
    const draw = ({ points: [{ curveNumber, x: j, y: i }] }) => {
      if (curveNumber >= trace || shown === `${i},${j}`) return;
      shown = `${i},${j}`;
      const ownMirror = (2 * i) % size === 0 && (2 * j) % size === 0;
      const phase = ownMirror ? 0 : link.phase;
      const norm = (ownMirror ? 1 : Math.SQRT2) / size;
      const wave = Array.from({ length: size }, (_, row) =>
        Array.from({ length: size }, (_, column) =>
          norm * Math.cos((2 * Math.PI * (i * row + j * column)) / size - phase)));
      Plotly.update(figure, { z: [wave] }, {
        [`annotations[${annotation}].text`]: `v at (${i}, ${j})`.replaceAll("-", "\u2212"),
      }, [trace]);
    };
    figure.on("plotly_hover", draw);
    figure.on("plotly_click", draw);
  });
});

/* Maps over pairs of indices are linked with decision boundaries: the pointer on a cell marks the pair and draws its own. */
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => {
    const link = figure.layout && figure.layout.meta && figure.layout.meta.pairs;
    if (!link) return;
    let shown = null;
    const draw = ({ points: [{ curveNumber, x, y }] }) => {
      if (!link.maps.includes(curveNumber)) return;
      const [menu] = figure.layout.updatemenus || [];
      const group = (menu && menu.active) || 0;
      const { names, sections, texts } = link.groups[group];
      const [row, column] = [names.indexOf(String(y)), names.indexOf(String(x))];
      if (row < 0 || column < 0 || shown === `${group},${x},${y}`) return;
      shown = `${group},${x},${y}`;
      const marks = link.marks.length;
      Plotly.update(figure, {
        x: Array(marks).fill([names[column]]), y: Array(marks).fill([names[row]]),
      }, { [`annotations[${link.annotation}].text`]: texts[row][column] }, link.marks);
      Plotly.restyle(figure, { z: [sections[row][column]] }, [link.section]);
    };
    figure.on("plotly_hover", draw);
    figure.on("plotly_click", draw);
    figure.on("plotly_restyle", () => { shown = null; }); /* another network may have been chosen */
  });
});
