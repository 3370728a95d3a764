/* Plotly follows the window's width only, and not even that once a figure's height was changed. A figure inside a closed
   solution has no width when it is drawn, and the sidebar changes the width of the text: follow the width of the figure's
   own box instead. */
document.addEventListener("DOMContentLoaded", () => {
  const observer = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const drawn = target._fullLayout;
      if (drawn && contentRect.width > 0 && Math.abs(drawn.width - contentRect.width) > 1) {
        Plotly.relayout(target, { width: contentRect.width });
      }
    }
  });
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => observer.observe(figure));
});

/* Plotly's page fixes the height of the boxes around a figure, too. */
const setHeight = (figure, height, change = {}) => {
  for (const box of [figure, figure.parentElement]) if (box.style.height) box.style.height = `${height}px`;
  Plotly.relayout(figure, { ...change, height });
};

/* What stands above the panels wraps into more lines the narrower the screen is. Where one part would cover another, the panels move
   down. An open menu may cover what it likes. */
document.addEventListener("DOMContentLoaded", () => {
  const box = (figure, part) => {
    const found = figure.querySelector(part);
    return found && found.getBoundingClientRect();
  };
  const covered = (lower, upper) =>
    lower && upper && lower.width && upper.width && lower.left < upper.right && upper.left < lower.right &&
      upper.top < lower.bottom && upper.bottom > lower.top ? upper.bottom - lower.top + 4 : 0;
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => {
    let attempts = 0;
    const makeRoom = () => {
      const [legend, menu, title] = [".legend", ".updatemenu-header-group", ".g-gtitle"].map((part) => box(figure, part));
      const [menuLine, titleLine] = [covered(legend, menu), Math.max(covered(legend, title), covered(menu, title))];
      if (!(menuLine || titleLine) || attempts++ >= 4) return;
      const { margin, height, updatemenus } = figure._fullLayout;
      const room = menuLine || titleLine;
      const change = { "margin.t": margin.t + room };
      if (menuLine) change["updatemenus[0].pad.b"] = updatemenus[0].pad.b + room;
      setHeight(figure, height + room, change);
    };
    if (!figure.on) return;
    figure.on("plotly_afterplot", makeRoom);
    makeRoom();
  });
});

/* A square map is as high as the column lets it be wide: on a telephone much of its height would stay blank. */
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => {
    const drawn = figure._fullLayout;
    if (!drawn || !figure.layout.meta || !figure.layout.meta.square) return;
    const { xaxis, yaxis, height } = drawn;
    const [low, high] = yaxis._inputDomain || yaxis.domain; /* one row of several has a part of the height */
    const wanted = xaxis._length * Math.abs((yaxis.range[1] - yaxis.range[0]) / (xaxis.range[1] - xaxis.range[0]));
    const unused = drawn._size.h - wanted / (high - low);
    if (unused > 20) setHeight(figure, height - unused);
  });
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

/* A sheet of pictures is as high as its width allows: on a telephone nothing but blank would follow it. There the pictures of a
   wall would be too small to see, so each of its long rows becomes two. */
document.addEventListener("DOMContentLoaded", () => {
  const fold = (figure, { count, height, width, gap, named }) => {
    const [wide, between] = [Math.ceil(count / 2) * width, named ? gap : 3];
    const nothing = -128;
    const lines = Array.from(figure._fullData[0].z, (line) => Array.from(line));
    const z = [];
    for (let top = 0; top < lines.length; top += gap + height) {
      const block = lines.slice(top, top + gap + height);
      block.forEach((line) => z.push(line.slice(0, wide)));
      for (let k = 0; k < between; k++) z.push(Array(wide).fill(nothing));
      block.slice(gap).forEach((line) => z.push([...line.slice(wide), ...Array(2 * wide - line.length).fill(nothing)]));
    }
    const annotations = figure.layout.annotations.map((label) => {
      const row = Math.floor(label.y / (gap + height));
      const second = label.x >= wide - 1;
      return { ...label, x: label.x - second * wide, y: label.y + (row + second) * (between + height) };
    });
    Plotly.update(figure, { z: [z] }, { annotations });
    return z.length / wide;
  };
  document.querySelectorAll(".plotly-graph-div").forEach((figure) => {
    const { sheet, wall } = (figure.layout && figure.layout.meta) || {};
    if (!sheet) return;
    const ratio = wall && wall.count > 7 && figure.clientWidth < 500 ? fold(figure, wall) : sheet;
    const { l, r, t, b } = figure.layout.margin;
    const height = Math.round(t + b + ratio * (figure.clientWidth - l - r));
    if (height < figure.layout.height || ratio !== sheet) setHeight(figure, height);
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

/* The numbers of a figure, as it is drawn at the moment, as a table with a row for each point. */
document.addEventListener("DOMContentLoaded", () => {
  const at = (values, start, step, k) => (values ? values[k] : (start || 0) + (step || 1) * k);
  const label = ({ customdata, text }, k) => [text, customdata]
    .flatMap((texts) => (texts && typeof texts === "object" && texts[k] !== undefined ? Array.from([texts[k]].flat()) : []))
    .join(" ").replace(/<[^>]*>/g, " ");
  const points = (trace) => {
    if (!trace.z) {
      const error = trace.error_y && trace.error_y.visible ? trace.error_y.array : [];
      return Array.from(trace.y || trace.x, (_, k) =>
        [at(trace.x, trace.x0, trace.dx, k), at(trace.y, trace.y0, trace.dy, k), "", error[k], label(trace, k)]);
    }
    return Array.from(trace.z).flatMap((row, i) => Array.from(row, (value, j) =>
      [at(trace.x, trace.x0, trace.dx, j), at(trace.y, trace.y0, trace.dy, i), value, "", ""]));
  };
  const cell = (value) => {
    const rounded = typeof value === "number" ? Number(value.toPrecision(7)) : value; /* more is single precision's noise */
    const text = rounded === undefined || rounded === null ? "" : String(rounded);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const table = (figure) => {
    const rows = [["panel", "line", "x", "y", "z", "error", "label"]];
    const numeric = (trace) => trace.visible === true && trace.type !== "image" && trace.mode !== "text";
    figure._fullData.filter(numeric).forEach((trace) => {
      const panel = (trace.yaxis || "y").slice(1) || "1";
      const name = (figure.data[trace.index].name || "").replace(/<[^>]*>/g, " ");
      points(trace).filter(([x, y]) => x !== null && y !== null) /* a gap in a line is no point */
        .forEach((point) => rows.push([panel, name, ...point]));
    });
    return rows.map((row) => row.map(cell).join(",")).join("\r\n");
  };
  const page = location.pathname.split("/").pop().replace(/\.html$/, "");
  document.querySelectorAll(".nadtools-figure").forEach((box, index) => {
    const figure = box.querySelector(".plotly-graph-div");
    const origin = box.querySelector(".figure-origin");
    if (!figure.data || figure.data.every((trace) => trace.type === "image")) { /* photographs are no numbers */
      origin.hidden = !origin.querySelector(".stamp");
      return;
    }
    const button = document.createElement("button");
    button.type = "button";
    button.className = "figure-data";
    button.textContent = "Data as CSV";
    button.setAttribute("aria-label", `Data of figure ${index + 1} as CSV`);
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([`${table(figure)}\r\n`], { type: "text/csv" }));
      link.download = `${page}-figure-${index + 1}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    origin.append(button);
  });
});

/* Plotly's sliders and menus answer to the pointer alone. The same controls for the keyboard appear when it reaches them. */
document.addEventListener("DOMContentLoaded", () => {
  const plain = (text) => (text || "").replace(/<[^>]*>/g, " ").trim();
  document.querySelectorAll(".nadtools-figure").forEach((box, index) => {
    const figure = box.querySelector(".plotly-graph-div");
    const keys = document.createElement("div");
    keys.className = "figure-keys";
    keys.setAttribute("role", "group");
    keys.setAttribute("aria-label", `Controls of figure ${index + 1}`);
    const choose = (kind, number, { method, args }, active) => {
      Plotly.relayout(figure, { [`${kind}[${number}].active`]: active });
      if (method !== "skip") Plotly[method](figure, ...args);
    };
    const add = (name, control) => {
      const label = document.createElement("label");
      label.append(`${name} `, control);
      keys.append(label);
    };
    const layout = figure.layout || {};
    (layout.updatemenus || []).forEach((menu, number) => {
      if (menu.type === "buttons") {
        menu.buttons.forEach((entry, k) => {
          const button = document.createElement("button");
          button.type = "button";
          button.textContent = plain(entry.label);
          button.addEventListener("click", () => choose("updatemenus", number, entry, k));
          keys.append(button);
        });
        return;
      }
      const select = document.createElement("select");
      menu.buttons.forEach((entry) => select.add(new Option(plain(entry.label))));
      select.addEventListener("focus", () => { select.selectedIndex = figure.layout.updatemenus[number].active || 0; });
      select.addEventListener("change", () =>
        choose("updatemenus", number, figure.layout.updatemenus[number].buttons[select.selectedIndex], select.selectedIndex));
      add("Show", select);
    });
    (layout.sliders || []).forEach((slider, number) => {
      const range = document.createElement("input");
      Object.assign(range, { type: "range", min: 0, max: slider.steps.length - 1, value: slider.active || 0 });
      const tell = () => range.setAttribute("aria-valuetext", plain(figure.layout.sliders[number].steps[range.value].label));
      tell();
      range.addEventListener("focus", () => { range.value = figure.layout.sliders[number].active || 0; tell(); });
      range.addEventListener("input", () => {
        tell();
        choose("sliders", number, figure.layout.sliders[number].steps[range.value], Number(range.value));
      });
      add(plain((slider.currentvalue || {}).prefix).replace(/[=:]$/, "") || "Step", range);
    });
    if (keys.childElementCount) box.append(keys);
  });
});

/* The theme lets the keyboard reach boxes of code that scroll, and looks for them when the window changes. Opening a solution shows more. */
document.addEventListener("click", ({ target }) => {
  if (target.closest(".toggle-button, summary")) setTimeout(() => window.dispatchEvent(new Event("resize")), 0);
});
