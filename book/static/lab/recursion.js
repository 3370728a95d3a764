/* NADs without any network: the covariance of a random linear network's gradient, layer by layer from its output to the
   image, and its eigenvectors. The Python of the same is nadtools/analytic.

   Images are square, and so are kernels, strides and paddings. So the covariance G of one channel is the same for rows and
   for columns, and every layer treats the two axes alike: a chain of layers keeps G = M ⊗ M, with one n × n matrix M. A
   shortcut adds two such products. G is then kept as a sum of terms M ⊗ M, which are merged where they are nearly
   dependent: a ResNet-18 needs a dozen of them, not a matrix of 1024 × 1024 numbers. */
"use strict";

NADLAB_PARTS.push(function recursion(NADLAB) {
  const RELU = 1 / 2; // E[φ'²] for a symmetric input
  const LOST = 1e-11; // α below this share of its mean is rounding
  const MERGED = 1e-8; // size of a merged term, relative to the largest, below which it is left out

  NADLAB.PRESETS = {
    lenet: { name: "LeNet", text: "32 c5.1.0 m2.2 c5.1.0 m2.2" },
    vgg11: { name: "VGG-11", text: `32 c3.1.1 m2.2 c3.1.1 m2.2${" c3.1.1 c3.1.1 m2.2".repeat(3)}` },
    resnet18: {
      name: "ResNet-18",
      text: `32 c3.1.1${" s2 c3.1.1 c3.1.1".repeat(2)}${" s2 c3.2.1 c3.1.1 s2 c3.1.1 c3.1.1".repeat(3)} g`,
    },
    plain: { name: "No pooling", text: "32 c5.1.0 c5.1.0" },
    strides: { name: "Strides instead", text: "32 c5.2.0 c5.2.0" },
    blur: { name: "Blur before stride", text: "32 c5.1.0 a2.1 a2.2 c5.1.0 a2.1 a2.2" },
  };

  /* An architecture as text, which fits into an address: the image's size, then for each layer a letter and its numbers.
     c5.1.0 is a convolution of kernel 5, stride 1 and padding 0; m2.2 and a2.2 are max and average pooling of size 2 and
     stride 2; s2 is a shortcut over the next two layers; g is the global average, which can only come last. */
  NADLAB.parse = function (text) {
    const [size, ...words] = text.trim().split(/[\s+]+/);
    const layers = words.map((word) => {
      const [, letter, numbers] = /^([cmasg])((?:\d+(?:\.\d+)*)?)$/.exec(word) || [];
      const [a, b, c] = (numbers || "").split(".").map(Number);
      if (letter === "c") return { kind: "convolution", kernel: a, stride: b, padding: c };
      if (letter === "m" || letter === "a") return { kind: letter === "m" ? "max" : "average", kernel: a, stride: b };
      if (letter === "s") return { kind: "shortcut", over: a };
      if (letter === "g") return { kind: "global" };
      throw new Error(`“${word}” is no layer`);
    });
    return { size: Number(size), layers };
  };

  NADLAB.format = function ({ size, layers }) {
    const words = layers.map((layer) => ({
      convolution: () => `c${layer.kernel}.${layer.stride}.${layer.padding}`,
      max: () => `m${layer.kernel}.${layer.stride}`,
      average: () => `a${layer.kernel}.${layer.stride}`,
      shortcut: () => `s${layer.over}`,
      global: () => "g",
    })[layer.kind]());
    return [size, ...words].join(" ");
  };

  /* What each layer makes of the size of the map, or what is wrong with the architecture. */
  NADLAB.sizes = function ({ size, layers }) {
    if (!(Number.isInteger(size) && size > 0 && size <= 64)) throw new Error("the image has no size up to 64");
    const sizes = [size];
    const open = []; // shortcuts, from the outermost to the innermost
    layers.forEach((layer, index) => {
      const before = sizes[index];
      let after = before;
      if (layer.kind === "shortcut") {
        const end = index + layer.over;
        if (!(layer.over > 0) || end >= layers.length) throw new Error(`the shortcut in place ${index + 1} reaches beyond the last layer`);
        if (open.length && open[open.length - 1].end < end) throw new Error(`the shortcut in place ${index + 1} leaves the one around it`);
        if (!layers.slice(index + 1, end + 1).some(({ kind }) => kind === "convolution")) throw new Error(`the shortcut in place ${index + 1} needs a convolution beside it`);
        open.push({ index, end, size: before, stride: strideOf(layers.slice(index + 1, end + 1)) });
      } else if (layer.kind === "global") {
        if (index < layers.length - 1) throw new Error("the global average can only come last");
        after = 1;
      } else {
        const { kernel, stride, padding = 0 } = layer;
        if (!(kernel > 0 && stride > 0 && padding >= 0 && padding < kernel)) throw new Error(`layer ${index + 1} is no layer`);
        after = Math.floor((before + 2 * padding - kernel) / stride) + 1;
        if (!(before + 2 * padding >= kernel)) throw new Error(`after layer ${index} the map has ${before} × ${before} pixels, too few for the next`);
      }
      sizes.push(after);
      while (open.length && open[open.length - 1].end === index) {
        const { size: entering, stride, index: at } = open.pop();
        if (layer.kind === "global" || after !== Math.floor((entering - 1) / stride) + 1) {
          throw new Error(`the shortcut in place ${at + 1} needs layers that keep the size, or halve it: use padding`);
        }
      }
    });
    return sizes;
  };

  const strideOf = (layers) => layers.reduce((product, { stride = 1 }) => product * stride, 1);

  /* The covariance at the image, scaled so that its mean over all directions is 1: { size, terms }, each term an M. */
  NADLAB.covariance = function (architecture) {
    const { layers } = architecture;
    const sizes = NADLAB.sizes(architecture);
    const end = layers.length;
    const pooled = end && layers[end - 1].kind === "global";
    const n = sizes[pooled ? end - 1 : end];
    const start = new Float64Array(n * n);
    if (pooled) start.fill(1 / n ** 2);
    else for (let p = 0; p < n; p++) start[p * n + p] = 1; // independent output weights on a flattened map
    const terms = backwards([start], layers, sizes, 0, pooled ? end - 1 : end);
    const trace = terms.reduce((sum, term) => sum + traceOf(term, sizes[0]) ** 2, 0);
    const scale = Math.sqrt(sizes[0] ** 2 / trace);
    return { size: sizes[0], terms: terms.map((term) => term.map((x) => x * scale)) };
  };

  /* Through the layers from index `to` − 1 down to `from`. */
  function backwards(terms, layers, sizes, from, to) {
    const blocks = [];
    for (let index = from; index < to;) {
      const layer = layers[index];
      const next = layer.kind === "shortcut" ? index + layer.over + 1 : index + 1;
      blocks.push([index, next]);
      index = next;
    }
    for (const [index, next] of blocks.reverse()) {
      const layer = layers[index];
      const [before, after] = [sizes[index], sizes[index + 1]];
      if (layer.kind === "convolution") {
        terms = terms.map((term) => convolution(term, after, before, layer));
      } else if (layer.kind === "shortcut") {
        const inside = layers.slice(index + 1, next);
        const branch = backwards(terms, layers, sizes, index + 1, next);
        const weaker = Math.sqrt(RELU ** activationsOf(inside));
        const stride = strideOf(inside);
        // A shortcut that changes the size, or the image's one channel, is a convolution with kernel 1 and the block's stride.
        const bare = stride === 1 && layers.slice(0, index).some(({ kind }) => kind === "convolution");
        const direct = bare ? terms : terms.map((term) => convolution(term, sizes[next], before, { kernel: 1, stride, padding: 0 }));
        terms = merged([...direct, ...branch.map((term) => term.map((x) => x * weaker))], before);
      } else {
        terms = terms.map((term) => pooling(term, after, before, layer));
      }
    }
    return terms;
  }

  /* Inside a branch ReLU follows each convolution but the last one, whose ReLU comes after the sum, and each sum. */
  function activationsOf(inside) {
    let count = 0;
    for (let index = 0; index < inside.length; index++) {
      const { kind, over } = inside[index];
      if (kind === "shortcut") index += over;
      if (kind === "shortcut" || (kind === "convolution" && inside.slice(index + 1).some((layer) => layer.kind === "convolution"))) count += 1;
    }
    return count;
  }

  /* G_in(p, p') = gain Σ_o G_out(q, q') over the offsets o with p = s q + o − padding and p' = s q' + o, on one axis. The gain
     is PyTorch's: weights of variance 1/(3 n_in k²). Widths cancel; the root is taken because there are two axes. */
  function convolution(term, after, before, { kernel, stride, padding }) {
    const result = new Float64Array(before * before);
    const gain = Math.sqrt(1 / (3 * kernel ** 2));
    for (let o = 0; o < kernel; o++) {
      for (let q = 0, p = o - padding; q < after; q++, p += stride) {
        if (p < 0 || p >= before) continue;
        for (let r = 0, s = o - padding; r < after; r++, s += stride) {
          if (s >= 0 && s < before) result[p * before + s] += gain * term[q * after + r];
        }
      }
    }
    return result;
  }

  /* Average pooling spreads both sides over their windows. Max pooling counts as average pooling. */
  function pooling(term, after, before, { kernel, stride }) {
    const half = new Float64Array(after * before); // one side spread
    for (let q = 0; q < after; q++) {
      for (let r = 0; r < after; r++) {
        for (let o = 0; o < kernel; o++) half[q * before + r * stride + o] += term[q * after + r] / kernel;
      }
    }
    const result = new Float64Array(before * before);
    for (let q = 0; q < after; q++) {
      for (let o = 0; o < kernel; o++) {
        for (let s = 0; s < before; s++) result[(q * stride + o) * before + s] += half[q * before + s] / kernel;
      }
    }
    return result;
  }

  /* Fewer terms with the same sum. Σ_t M_t ⊗ M_t, rearranged, is Σ_t m_t m_tᵀ with m_t all entries of M_t in a column: so any
     rotation of the terms gives the same sum, and the eigenvectors of their Gram matrix give the fewest. */
  function merged(terms, n) {
    const count = terms.length;
    const gram = new Float64Array(count * count);
    for (let s = 0; s < count; s++) {
      for (let t = 0; t <= s; t++) {
        let sum = 0;
        for (let i = 0; i < n * n; i++) sum += terms[s][i] * terms[t][i];
        gram[s * count + t] = gram[t * count + s] = sum;
      }
    }
    const { values, vectors } = NADLAB.eigh(gram, count);
    return vectors.filter((_, k) => values[k] > MERGED * values[0]).map((weights) => {
      const sum = new Float64Array(n * n);
      for (let t = 0; t < count; t++) {
        const [weight, term] = [weights[t], terms[t]];
        for (let i = 0; i < n * n; i++) sum[i] += weight * term[i];
      }
      return sum;
    });
  }

  function traceOf(term, n) {
    let sum = 0;
    for (let p = 0; p < n; p++) sum += term[p * n + p];
    return sum;
  }

  /* α(v) = vᵀ G v for all waves. `mean` is the average of the cosine's and the sine's, at [i * n + j] for the frequency
     (i, j) modulo n; α(frequency, phase) is exact for any phase. With f = exp(2πi(i r + j c)/n), a wave of phase φ has
     ½ (f†Gf + Re e^(−2iφ) fᵀGf), divided by its squared norm. */
  NADLAB.alignment = function ({ size: n, terms }) {
    const real = new Float64Array(terms.length * n); // a†Ma
    const cosine = new Float64Array(terms.length * n); // aᵀMa
    const sine = new Float64Array(terms.length * n);
    terms.forEach((term, t) => {
      const differences = new Float64Array(n);
      const sums = new Float64Array(n);
      for (let p = 0; p < n; p++) {
        for (let q = 0; q < n; q++) {
          differences[(p - q + n) % n] += term[p * n + q];
          sums[(p + q) % n] += term[p * n + q];
        }
      }
      for (let f = 0; f < n; f++) {
        for (let d = 0; d < n; d++) {
          const angle = (2 * Math.PI * ((f * d) % n)) / n;
          real[t * n + f] += differences[d] * Math.cos(angle);
          cosine[t * n + f] += sums[d] * Math.cos(angle);
          sine[t * n + f] += sums[d] * Math.sin(angle);
        }
      }
    });
    const mean = new Float64Array(n * n);
    for (let t = 0; t < terms.length; t++) {
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < n; j++) mean[i * n + j] += (real[t * n + i] * real[t * n + j]) / n ** 2;
      }
    }
    const wrapped = (f) => ((f % n) + n) % n;
    const alpha = ([row, column], phase) => {
      const [i, j] = [wrapped(row), wrapped(column)];
      if ((2 * i) % n === 0 && (2 * j) % n === 0) return mean[i * n + j]; // only the cosine exists
      let [re, im] = [0, 0];
      for (let t = 0; t < terms.length; t++) {
        const [a, b, c, d] = [cosine[t * n + i], sine[t * n + i], cosine[t * n + j], sine[t * n + j]];
        re += a * c - b * d;
        im += a * d + b * c;
      }
      return mean[i * n + j] + (Math.cos(2 * phase) * re + Math.sin(2 * phase) * im) / n ** 2;
    };
    const lost = Uint8Array.from(mean, (value) => (value < LOST ? 1 : 0));
    return { size: n, mean, alpha, lost };
  };

  /* The first eigenvectors, as images in rows, and all eigenvalues. With shortcuts there are none of either beyond 32 × 32: they
     would take a matrix of 4096 × 4096 numbers. */
  NADLAB.nads = function (covariance, count = 24) {
    if (covariance.terms.length === 1) return ofChain(covariance, count);
    return covariance.size <= 32 ? ofSum(covariance, count) : { eigenvalues: new Float64Array(0), vectors: [] };
  };

  function ofChain({ size: n, terms: [matrix] }, count) {
    const { values, vectors } = NADLAB.eigh(matrix, n);
    const products = Float64Array.from({ length: n * n }, (_, k) => Math.max(0, values[Math.floor(k / n)]) * Math.max(0, values[k % n]));
    const order = Array.from(products.keys()).sort((one, other) => products[other] - products[one]);
    return {
      eigenvalues: Float64Array.from(order, (k) => products[k]),
      vectors: order.slice(0, count).map((k) => outer(vectors[Math.floor(k / n)], vectors[k % n])),
    };
  }

  /* G maps symmetric images to symmetric ones, and antisymmetric ones to antisymmetric: two problems of half the size. */
  function ofSum(covariance, count) {
    const found = [1, -1].flatMap((sign) => {
      const { matrix, rows, unpack } = sector(covariance, sign);
      const { values, vectors } = NADLAB.leading(matrix, rows.length, count);
      return Array.from(values, (value, k) => ({ value: Math.max(0, value), vector: () => unpack(vectors[k]) }));
    });
    found.sort((one, other) => other.value - one.value);
    return {
      eigenvalues: Float64Array.from(found, ({ value }) => value),
      vectors: found.slice(0, count).map(({ vector }) => vector()),
    };
  }

  /* The matrix of G over symmetric (sign 1) or antisymmetric (−1) images, in the basis of (e_p e_qᵀ ± e_q e_pᵀ)/√2. */
  function sector({ size: n, terms }, sign) {
    const length = (n * (n + sign)) / 2;
    const [rows, columns, weights] = [new Int32Array(length), new Int32Array(length), new Float64Array(length)];
    for (let p = 0, k = 0; p < n; p++) {
      for (let q = 0; q < p + (1 + sign) / 2; q++, k++) {
        rows[k] = p;
        columns[k] = q;
        weights[k] = p === q ? Math.SQRT1_2 : 1;
      }
    }
    const matrix = new Float64Array(length * length);
    for (const term of terms) {
      for (let k = 0; k < length; k++) {
        const [p, q] = [rows[k] * n, columns[k] * n];
        for (let l = 0, at = k * length; l <= k; l++, at++) {
          const [r, s] = [rows[l], columns[l]];
          matrix[at] += term[p + r] * term[q + s] + sign * term[p + s] * term[q + r];
        }
      }
    }
    for (let k = 0; k < length; k++) {
      for (let l = 0; l <= k; l++) {
        matrix[k * length + l] *= weights[k] * weights[l];
        matrix[l * length + k] = matrix[k * length + l];
      }
    }
    const unpack = (packed) => {
      const image = new Float64Array(n * n);
      packed.forEach((x, k) => {
        image[rows[k] * n + columns[k]] += x * (rows[k] === columns[k] ? 1 : Math.SQRT1_2);
        if (rows[k] !== columns[k]) image[columns[k] * n + rows[k]] = sign * x * Math.SQRT1_2;
      });
      return image;
    };
    return { matrix, rows, unpack };
  }

  function outer(a, b) {
    const result = new Float64Array(a.length * b.length);
    a.forEach((x, p) => b.forEach((y, q) => { result[p * b.length + q] = x * y; }));
    return result;
  }
});
