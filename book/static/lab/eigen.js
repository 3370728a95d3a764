/* Eigenvalues and eigenvectors of symmetric matrices, and of operators that are known by what they do to an image.

   Matrices are Float64Arrays, row by row. This file and recursion.js are also the whole program of a worker, so each is
   one function that fills NADLAB and needs nothing of the page. */
"use strict";

var NADLAB_PARTS = NADLAB_PARTS || [];

NADLAB_PARTS.push(function eigen(NADLAB) {
  const EPS = 2 ** -52;

  /* All eigenvalues, the largest first, and if asked for the eigenvectors, one in each row. */
  NADLAB.eigh = function (matrix, n, withVectors = true) {
    const a = Float64Array.from(matrix);
    const [diagonal, beside] = [new Float64Array(n), new Float64Array(n)];
    const reflections = tridiagonalise(a, n, diagonal, beside);
    const z = withVectors ? product(reflections, n) : null;
    diagonalise(diagonal, beside, z, n);
    const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[j] - diagonal[i]);
    const values = Float64Array.from(order, (k) => diagonal[k]);
    return { values, vectors: z && order.map((k) => z.slice(k * n, (k + 1) * n)) };
  };

  /* Householder: A = Q T Qᵀ, with T tridiagonal and Q a product of reflections I − v vᵀ. */
  function tridiagonalise(a, n, diagonal, beside) {
    const reflections = [];
    const p = new Float64Array(n);
    for (let k = 0; k < n; k++) {
      diagonal[k] = a[k * n + k];
      if (k === n - 1) break;
      let norm = 0;
      for (let i = k + 1; i < n; i++) norm += a[k * n + i] ** 2;
      norm = Math.sqrt(norm);
      const first = a[k * n + k + 1];
      if (k === n - 2 || norm === 0) {
        beside[k] = first;
        reflections.push(null);
        continue;
      }
      const sign = first > 0 ? -1 : 1; // the new entry has the other sign, so that nothing cancels
      beside[k] = sign * norm;
      const v = a.slice(k * n, (k + 1) * n).fill(0, 0, k + 1);
      v[k + 1] -= beside[k];
      const scale = 1 / Math.sqrt(norm * (norm + Math.abs(first))); // makes vᵀv = 2
      for (let i = k + 1; i < n; i++) v[i] *= scale;
      // With p = A v − ½ (vᵀ A v) v, the reflected matrix is A − v pᵀ − p vᵀ.
      let half = 0;
      for (let i = k + 1; i < n; i++) {
        let sum = 0;
        for (let j = k + 1, at = i * n; j < n; j++) sum += a[at + j] * v[j];
        p[i] = sum;
        half += 0.5 * sum * v[i];
      }
      for (let i = k + 1; i < n; i++) p[i] -= half * v[i];
      for (let i = k + 1; i < n; i++) {
        const [vi, pi] = [v[i], p[i]];
        for (let j = k + 1, at = i * n; j < n; j++) a[at + j] -= vi * p[j] + pi * v[j];
      }
      reflections.push(v);
    }
    return reflections;
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
        let [s, c, shift, i] = [1, 1, 0, high - 1];
        for (; i >= low; i--) {
          const [f, b] = [s * e[i], c * e[i]];
          const r = Math.hypot(f, g);
          e[i + 1] = r;
          if (r === 0) break;
          s = f / r;
          c = g / r;
          g = d[i + 1] - shift;
          const t = (d[i] - g) * s + 2 * c * b;
          shift = s * t;
          d[i + 1] = g + shift;
          g = c * t - b;
          for (let k = 0, one = i * n, two = one + n; z && k < n; k++, one++, two++) {
            const [x, y] = [z[one], z[two]];
            z[one] = c * x - s * y;
            z[two] = s * x + c * y;
          }
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

  /* The first eigenvectors of a symmetric operator, by block Krylov and Rayleigh-Ritz.

     Eigenvalues that occur several times are found if the block of vectors to start from is as wide. It ends when the
     residuals are small against the largest eigenvalue, or when the subspace is full; the eigenvalues' errors are of the
     order of the residuals' squares. */
  NADLAB.leading = function (apply, start, count, { most = 240, tolerance = 1e-4 } = {}) {
    const [basis, images] = [[], []];
    for (let block = start, blocks = 1; ; blocks++) {
      const first = basis.length;
      for (const vector of block) {
        const before = norm(vector);
        for (let pass = 0; pass < 2; pass++) for (const q of basis) subtract(vector, dot(q, vector), q);
        const length = norm(vector);
        if (length > 1e-10 * before) basis.push(vector.map((x) => x / length));
      }
      for (let k = first; k < basis.length; k++) images.push(apply(basis[k]));
      block = images.slice(first).map((image) => image.slice());
      const full = !block.length || basis.length + block.length > most;
      if (blocks % 2 && !full) continue;
      const ritz = rayleighRitz(basis, images, count);
      if (full || Math.max(...ritz.residuals) <= tolerance * ritz.values[0]) return ritz;
    }
  };

  function rayleighRitz(basis, images, count) {
    const n = basis.length;
    const small = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) small[i * n + j] = small[j * n + i] = dot(basis[i], images[j]);
    }
    const { values, vectors } = NADLAB.eigh(small, n);
    const kept = Math.min(count, n);
    const combine = (weights, list) => {
      const sum = new Float64Array(list[0].length);
      list.forEach((one, k) => subtract(sum, -weights[k], one));
      return sum;
    };
    const found = vectors.slice(0, kept).map((weights) => combine(weights, basis));
    const residuals = found.map((vector, k) => {
      const image = combine(vectors[k], images);
      subtract(image, values[k], vector);
      return norm(image);
    });
    return { values: values.slice(0, kept), vectors: found, residuals };
  }

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  function subtract(a, weight, b) {
    for (let i = 0; i < a.length; i++) a[i] -= weight * b[i];
  }

  const norm = (a) => Math.sqrt(dot(a, a));
});
