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
