/* Eigenvalues and eigenvectors of symmetric matrices.

   Matrices are Float64Arrays, row by row. This file and recursion.js are also the whole program of a worker, so each is
   one function that fills NADLAB and needs nothing of the page. */
"use strict";

var NADLAB_PARTS = NADLAB_PARTS || [];

NADLAB_PARTS.push(function eigen(NADLAB) {
  const EPS = 2 ** -52;

  /* All eigenvalues, the largest first, and the eigenvectors, one in each row. */
  NADLAB.eigh = function (matrix, n) {
    const { diagonal, beside, reflections } = tridiagonalise(Float64Array.from(matrix), n);
    const z = product(reflections, n);
    diagonalise(diagonal, beside, z, n);
    const order = descending(diagonal);
    return { values: diagonal.map((_, k) => diagonal[order[k]]), vectors: order.map((k) => z.slice(k * n, (k + 1) * n)) };
  };

  /* All eigenvalues, and of a large matrix, which is overwritten, only the first eigenvectors: by inverse iteration. */
  NADLAB.leading = function (matrix, n, count) {
    const { diagonal, beside, reflections } = tridiagonalise(matrix, n);
    const values = diagonal.slice();
    diagonalise(values, beside.slice(), null, n);
    values.sort().reverse();
    const size = Math.max(Math.abs(values[0]), Math.abs(values[n - 1])) || 1;
    const found = [];
    for (let k = 0; k < Math.min(count, n); k++) {
      let x = Float64Array.from({ length: n }, (_, i) => Math.cos(i * i * (k + 1)) + 0.1); // as good as random, always the same
      for (let pass = 0; pass < 3; pass++) {
        x = solve(diagonal, beside, values[k] + EPS * size * k, x, size * EPS);
        // Where eigenvalues nearly coincide, only orthogonality keeps the vectors apart.
        for (let other = 0; other < k; other++) {
          if (values[other] - values[k] < 1e-3 * size) subtract(x, dot(x, found[other]), found[other]);
        }
        const norm = Math.sqrt(dot(x, x));
        x = x.map((entry) => entry / norm);
      }
      found.push(x);
    }
    const vectors = found.map((x) => {
      const vector = x.slice();
      for (let k = n - 1; k >= 0; k--) if (reflections[k]) subtract(vector, dot(vector, reflections[k]), reflections[k]);
      return vector;
    });
    return { values, vectors };
  };

  /* Householder: A = Q T Qᵀ, with T tridiagonal and Q a product of reflections I − v vᵀ. Only the part of A above the diagonal
     is read and written. With p = A v − ½ (vᵀ A v) v, a reflected matrix is A − v pᵀ − p vᵀ: that is done row by row while the
     next reflection's A v is summed, so that each step goes through the matrix once. */
  function tridiagonalise(a, n) {
    const [diagonal, beside, reflections] = [new Float64Array(n), new Float64Array(n), []];
    let [v, p] = [new Float64Array(n), new Float64Array(n)]; // of the step before
    for (let k = 0; k < n; k++) {
      for (let j = k; j < n; j++) a[k * n + j] -= v[k] * p[j] + p[k] * v[j];
      diagonal[k] = a[k * n + k];
      const w = new Float64Array(n);
      let norm = 0;
      for (let i = k + 1; i < n; i++) norm += a[k * n + i] ** 2;
      norm = Math.sqrt(norm);
      if (k < n - 1) beside[k] = a[k * n + k + 1];
      const reflects = k < n - 2 && norm > 0;
      if (reflects) {
        const first = beside[k];
        beside[k] = first > 0 ? -norm : norm; // the new entry has the other sign, so that nothing cancels
        const scale = 1 / Math.sqrt(norm * (norm + Math.abs(first))); // makes wᵀw = 2
        for (let i = k + 1; i < n; i++) w[i] = a[k * n + i] * scale;
        w[k + 1] -= beside[k] * scale;
      }
      const q = new Float64Array(n);
      for (let i = k + 1; i < n; i++) {
        const [vi, pi, wi, row] = [v[i], p[i], w[i], i * n];
        const corner = a[row + i] - 2 * vi * pi;
        a[row + i] = corner;
        let sum = corner * wi;
        for (let j = i + 1; j < n; j++) {
          const entry = a[row + j] - vi * p[j] - pi * v[j];
          a[row + j] = entry;
          sum += entry * w[j];
          q[j] += entry * wi;
        }
        q[i] += sum;
      }
      subtract(q, dot(q, w) / 2, w);
      [v, p] = [w, q];
      reflections.push(reflects ? w : null);
    }
    return { diagonal, beside, reflections };
  }

  /* Qᵀ, the transposed product of the reflections. */
  function product(reflections, n) {
    const z = new Float64Array(n * n);
    for (let i = 0; i < n; i++) z[i * n + i] = 1;
    for (let k = reflections.length - 1; k >= 0; k--) {
      const v = reflections[k];
      if (!v) continue;
      for (let i = k + 1; i < n; i++) {
        let sum = 0;
        for (let j = k + 1, at = i * n; j < n; j++) sum += z[at + j] * v[j];
        for (let j = k + 1, at = i * n; j < n; j++) z[at + j] -= sum * v[j];
      }
    }
    return z;
  }

  /* Implicit QL with Wilkinson's shift; the rotations are applied to the rows of z. */
  function diagonalise(d, e, z, n) {
    let size = 0;
    for (let i = 0; i < n; i++) size = Math.max(size, Math.abs(d[i]) + Math.abs(e[i]));
    for (let low = 0; low < n; low++) {
      for (let attempt = 0; attempt < 60; attempt++) {
        let high = low;
        while (high < n - 1 && Math.abs(e[high]) > EPS * size) high++;
        if (high === low) break;
        const half = (d[low + 1] - d[low]) / (2 * e[low]);
        let g = d[high] - d[low] + e[low] / (half + (half < 0 ? -1 : 1) * Math.hypot(half, 1));
        let s = 1;
        let c = 1;
        let shift = 0;
        let i = high - 1;
        for (; i >= low; i--) {
          const f = s * e[i];
          const b = c * e[i];
          const r = Math.sqrt(f * f + g * g);
          e[i + 1] = r;
          if (r === 0) break;
          s = f / r;
          c = g / r;
          g = d[i + 1] - shift;
          const t = (d[i] - g) * s + 2 * c * b;
          shift = s * t;
          d[i + 1] = g + shift;
          g = c * t - b;
          if (z) rotate(z, n, i, c, s);
        }
        if (i >= low) { // it fell apart in the middle
          d[i + 1] -= shift;
          e[high] = 0;
          continue;
        }
        d[low] -= shift;
        e[low] = g;
        e[high] = 0;
      }
    }
  }

  function rotate(z, n, i, c, s) {
    for (let one = i * n, two = one + n, end = two; one < end; one++, two++) {
      const x = z[one];
      z[one] = c * x - s * z[two];
      z[two] = s * x + c * z[two];
    }
  }

  /* (T − shift I)⁻¹ b for a tridiagonal T, by elimination with pivots; a pivot of zero becomes `tiny`. */
  function solve(diagonal, beside, shift, b, tiny) {
    const n = b.length;
    const [u, v, w, x] = [new Float64Array(n), new Float64Array(n), new Float64Array(n), b.slice()];
    u[0] = diagonal[0] - shift;
    v[0] = beside[0];
    for (let i = 0; i < n - 1; i++) {
      const [left, middle, right] = [beside[i], diagonal[i + 1] - shift, i < n - 2 ? beside[i + 1] : 0];
      if (Math.abs(left) > Math.abs(u[i])) { // the next row is the better pivot
        const factor = u[i] / left;
        [u[i + 1], v[i + 1]] = [v[i] - factor * middle, -factor * right];
        [u[i], v[i], w[i]] = [left, middle, right];
        [x[i], x[i + 1]] = [x[i + 1], x[i] - factor * x[i + 1]];
      } else {
        const factor = left / (u[i] || tiny);
        [u[i + 1], v[i + 1]] = [middle - factor * v[i], right];
        x[i + 1] -= factor * x[i];
      }
    }
    for (let i = n - 1; i >= 0; i--) {
      let sum = x[i];
      if (i < n - 1) sum -= v[i] * x[i + 1];
      if (i < n - 2) sum -= w[i] * x[i + 2];
      x[i] = sum / (u[i] || tiny);
    }
    return x;
  }

  function descending(values) {
    return Array.from(values.keys()).sort((i, j) => values[j] - values[i]);
  }

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  function subtract(a, weight, b) {
    for (let i = 0; i < a.length; i++) a[i] -= weight * b[i];
  }
});
