// The charts. Each has its numbers beside it as text, for screen readers.
/* global uPlot */
import { byId, el, text } from './dom.js';
import { bytes, duration, percent, rate, span, time } from './format.js';
import { History } from './history.js';

// The shortest range that is shown: a single reading has no width.
const LEAST_S = 2;

// The cache's part in answers, from the lowest layer of a chart to the highest.
const PARTS = ['hits', 'stale', 'revalidated', 'misses', 'passes'];
// Answers by the first digit of their status, likewise.
const STATUSES = ['successes', 'redirects', 'client_errors', 'errors'];
const COLOURS = ['ink', 'quiet', 'grid', 'bad', 'bad-ground', ...PARTS.flatMap((name) => [name, `${name}-fill`])];
const dark = matchMedia('(prefers-color-scheme: dark)');

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const FONT = '11px system-ui, "DejaVu Sans", sans-serif';
// Pixels to the right of a chart.
const PADDING = 8;

// Steps of a scale of time, in seconds, and how their marks are written.
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600, 43_200,
  86_400];

function onAxis(seconds, step) {
  const then = new Date(seconds * 1000);
  if (step >= 86_400) return then.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' });
  return then.toTimeString().slice(0, step < 60 ? 8 : 5);
}

// Whether a mark has room before the chart's right edge.
function fits(u, seconds, step) {
  const { min, max } = u.scales.x;
  const room = PADDING + ((max - seconds) / (max - min)) * (u.bbox.width / devicePixelRatio);
  return room >= (step < 60 ? 27 : 16);
}

// Steps of a scale of bytes, which goes by powers of two.
const BYTE_STEPS = Array.from({ length: 45 }, (_, n) => 2 ** n);

// Ranges of the scale upwards: from nothing, a share of all, and powers of ten around what there is.
const FROM_NOTHING = { range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1] };
const SHARE = { range: () => [0, 1.02] };
const LOGARITHMIC = {
  distr: 3,
  range: (u, low, high) => {
    const [from, to] = low > 0 ? [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))] : [1, 4];
    return [10 ** from, 10 ** Math.max(to, from + 1)];
  },
};

function axes(c, format, incrs) {
  const common = { font: FONT, stroke: c.quiet, grid: { stroke: c.grid, width: 1 }, ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, size: 22, gap: 4, space: 70,
      values: (u, splits, axis, space, step) => splits.map((s) => (fits(u, s, step) ? onAxis(s, step) : '')),
      incrs: TIME_STEPS },
    { ...common, size: 58, gap: 6, space: 34, values: (_, splits) => splits.map((value) => (value === null ? '' : format(value))), ...(incrs && { incrs }) },
  ];
}

// A chart of figures over time. `lines`: { name, label, swatch, make(of), value?(of), stroke, fill, dash }, the highest of
// a stack first; `value` is what the legend tells where that is not the line's own height.
class Rates {
  constructor(place, history, { title, unit, format, incrs, lines, scale = FROM_NOTHING }) {
    Object.assign(this, { history, unit, format, incrs, lines, title, scale });
    this.values = lines.map(() => el('b', {}, '–'));
    // The lowest of a stack is the first that one reads about.
    const legend = el('ul', { class: 'legend' }, ...lines.map((line, n) => el('li', {},
      el('span', { class: `swatch ${line.swatch}`, 'aria-hidden': 'true' }), line.label, this.values[n])).reverse());
    this.words = el('p', { class: 'unseen' });
    this.plot = el('div', { class: 'plot', 'aria-hidden': 'true' });
    const heading = el('h3', {}, title, ' ', el('span', { class: 'quiet' }, unit));
    place.append(el('figure', { class: 'chart card' }, el('figcaption', {}, heading, legend, this.words), this.plot));
    this.index = null;
  }

  draw() {
    this.chart?.destroy();
    const c = colours();
    const stack = this.lines.map((line) => ({
      stroke: c[line.stroke], fill: line.fill && c[line.fill], width: 1.5, dash: line.dash, points: { show: false },
    }));
    this.chart = new uPlot({
      width: this.plot.clientWidth, height: this.plot.clientHeight, legend: { show: false }, padding: [8, PADDING, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: () => this.#between() },
        y: this.scale,
      },
      axes: axes(c, this.format, this.incrs),
      series: [{}, ...stack],
      hooks: { setCursor: [(u) => { this.index = u.cursor.idx; this.#tell(); }] },
    }, this.history.series(...this.lines.map((line) => line.make)), this.plot);
  }

  // What is shown: the range, or as much of it as is known.
  #between() {
    const [first, last] = this.history.between();
    return [Math.min(first, last - LEAST_S), last];
  }

  fill() {
    this.chart?.setData(this.history.series(...this.lines.map((line) => line.make)));
    this.#tell();
  }

  // The figures beside the lines: now, or where the pointer is.
  #tell() {
    const values = this.history.series(...this.lines.map((line) => line.value ?? line.make));
    const at = this.index ?? values[0].length - 1;
    const told = this.lines.map((_, n) => values[n + 1][at]);
    told.forEach((value, n) => text(this.values[n], value === null || value === undefined ? '–' : this.format(value)));
    const peak = this.format(this.history.peak(this.lines[0].make));
    text(this.words, `${this.title}, ${this.unit}: the highest in ${span(this.history.range_s)} was ${peak}.`);
  }

  size() {
    this.chart?.setSize({ width: this.plot.clientWidth, height: this.plot.clientHeight });
  }
}

const QUANTILES = [['p50_us', 'p50'], ['p90_us', 'p90'], ['p99_us', 'p99']];
const DECADES = ['1 µs', '10 µs', '100 µs', '1 ms', '10 ms', '100 ms', '1 s', '10 s'];

// How long requests take: hits above, all others below, each on a scale of its own.
class Latency {
  constructor(place) {
    this.parts = [['hits', 'Hits', 'hits'], ['others', 'All others', 'misses']].map(([name, label, colour], n) => {
      const values = QUANTILES.map(() => el('b', {}, '–'));
      const legend = el('ul', { class: 'legend', 'aria-label': `${label}: quantiles of times` },
        el('li', {}, el('span', { class: `swatch ${colour}`, 'aria-hidden': 'true' }), label),
        ...QUANTILES.map(([, word], q) => el('li', {}, word, values[q])));
      const plot = el('div', { class: n ? 'plot low scaled' : 'plot low', 'aria-hidden': 'true' });
      return { name, colour, values, legend, plot, scaled: n === 1 };
    });
    place.append(el('figure', { class: 'chart card with-ring' },
      el('figcaption', {}, el('h3', {}, 'Time to answer now ', el('span', { class: 'quiet' }, 'requests/s by time, logarithmic'))),
      ...this.parts.flatMap(({ legend, plot }) => [legend, plot])));
    this.data = undefined;
  }

  draw() {
    const c = colours();
    for (const part of this.parts) {
      part.chart?.destroy();
      const axis = { font: FONT, stroke: c.quiet, ticks: { show: false } };
      part.chart = new uPlot({
        width: part.plot.clientWidth, height: part.plot.clientHeight, legend: { show: false },
        padding: [6, 8, part.scaled ? 0 : 8, 0], cursor: { show: false },
        scales: {
          x: { time: false, range: [-0.5, 79.5] },
          y: { range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1] },
        },
        axes: [
          { ...axis, show: part.scaled, size: 24, gap: 4, grid: { stroke: c.grid, width: 1 },
            splits: () => DECADES.map((_, n) => n * 10 - 0.5),
            values: (u) => DECADES.map((word, n) => (u.width < 420 && n % 2 ? '' : word)) },
          { ...axis, size: 58, gap: 6, space: 28, grid: { stroke: c.grid, width: 1 },
            values: (_, splits) => splits.map(rate) },
        ],
        series: [{}, {
          fill: c[part.colour], width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.8, 40] }),
        }],
      }, this.#series(part.name), part.plot);
    }
  }

  #series(name) {
    const columns = this.data?.[name] ?? new Array(80).fill(0);
    return [columns.map((_, n) => n), columns.map((height) => (height > 0 ? height : null))];
  }

  fill(latency) {
    this.data = latency;
    for (const part of this.parts) {
      part.chart?.setData(this.#series(part.name));
      const quantiles = latency[`${part.name}_quantiles`];
      QUANTILES.forEach(([key], n) => text(part.values[n], time(quantiles[key])));
    }
  }

  size() {
    for (const { chart, plot } of this.parts) {
      chart?.setSize({ width: plot.clientWidth, height: plot.clientHeight });
    }
  }
}

// The choice of how far the charts reach back.
class Ranges {
  constructor(history, chosen) {
    Object.assign(this, { history, chosen, place: byId('ranges'), known: byId('known') });
  }

  // One button for each time there is; the one that was chosen stays, or the longest before it.
  offer() {
    const ranges = this.history.ranges();
    if (ranges.join() === this.offered) return;
    this.offered = ranges.join();
    const fits = ranges.filter((seconds) => seconds <= this.history.range_s);
    this.history.range_s = fits.at(-1) ?? ranges[0];
    this.buttons = ranges.map((seconds) => {
      const button = el('button', { type: 'button', class: 'small' }, span(seconds));
      button.addEventListener('click', () => {
        this.history.range_s = seconds;
        this.#press(ranges);
        this.chosen();
      });
      return button;
    });
    this.place.replaceChildren(...this.buttons);
    this.#press(ranges);
  }

  #press(ranges) {
    this.buttons.forEach((button, n) => button.setAttribute('aria-pressed', String(ranges[n] === this.history.range_s)));
  }

  // Less history than was chosen is noted.
  tell() {
    const [first, last] = this.history.between();
    text(this.known, last - first < this.history.range_s * 0.95 ? `${duration(last - first)} so far` : '');
  }
}

export class Charts {
  constructor(place) {
    this.history = new History();
    this.ranges = new Ranges(this.history, () => this.#fill());
    const upTo = (parts, name) => (of) => parts.slice(0, parts.indexOf(name) + 1).reduce((sum, part) => sum + of(part), 0);
    const layer = (name, label) => ({
      label, swatch: name, stroke: name, fill: `${name}-fill`, make: upTo(PARTS, name), value: (of) => of(name),
    });
    const answers = (name, label, colour, fill = `${colour}-fill`) => ({
      label, swatch: colour, stroke: colour, fill, make: upTo(STATUSES, name), value: (of) => of(name),
    });
    const quantile = (kind, colour, part, dash) => ({
      label: `${kind} ${part}`, swatch: colour, stroke: colour, dash, make: (of) => of(`${kind}_${part}_us`),
    });
    this.rates = [
      new Rates(place, this.history, {
        title: 'Requests', unit: 'per second', format: rate,
        lines: [
          layer('passes', 'passed'), layer('misses', 'misses'), layer('revalidated', 'revalidated'),
          layer('stale', 'stale'), layer('hits', 'hits'),
        ],
      }),
      new Rates(place, this.history, {
        title: 'Hit ratio', unit: 'of what could be stored or was passed', format: percent, scale: SHARE,
        lines: [{ label: 'hits', swatch: 'hits', stroke: 'hits', fill: 'hits-fill',
          make: (of) => (of('judged') > 0 ? of('from_store') / of('judged') : null) }],
      }),
      new Rates(place, this.history, {
        title: 'Answers by status', unit: 'per second', format: rate,
        lines: [
          answers('errors', '5xx', 'bad', 'bad-ground'), answers('client_errors', '4xx', 'misses'),
          answers('redirects', '3xx', 'stale'), answers('successes', '2xx', 'hits'),
        ],
      }),
      new Rates(place, this.history, {
        title: 'Time to answer', unit: 'percentiles, logarithmic', format: time, scale: LOGARITHMIC,
        lines: [['others', 'misses'], ['hits', 'hits']].flatMap(([kind, colour]) => [
          quantile(kind, colour, 'p99', [2, 3]), quantile(kind, colour, 'p90', [7, 3]), quantile(kind, colour, 'p50'),
        ]),
      }),
    ];
    this.latency = new Latency(place);
    this.rates.push(
      new Rates(place, this.history, {
        title: 'Sent to clients', unit: 'bytes per second', format: bytes, incrs: BYTE_STEPS,
        lines: [{ label: 'sent', swatch: 'hits', stroke: 'hits', fill: 'hits-fill', make: (of) => of('bytes_out') }],
      }),
      new Rates(place, this.history, {
        title: 'Origins', unit: 'per second', format: rate,
        lines: [
          { label: 'requests to origins', swatch: 'misses', stroke: 'misses', fill: 'misses-fill',
            make: (of) => of('origin_requests') },
          { label: 'errors (5xx)', swatch: 'bad', stroke: 'bad', make: (of) => of('errors') },
        ],
      }),
      new Rates(place, this.history, {
        title: 'Origins were spared', unit: 'seconds of work per second', format: rate,
        lines: [{ label: 'spared', swatch: 'hits', stroke: 'hits', fill: 'hits-fill', make: (of) => of('spared_s') }],
      }),
    );
    // Drawn on a canvas, colours have to be looked up again.
    dark.addEventListener('change', () => this.draw());
    new ResizeObserver(() => this.#all().forEach((chart) => chart.size())).observe(place);
  }

  #all() {
    return [...this.rates, this.latency];
  }

  // Once the place is visible: a chart needs to know its width.
  draw() {
    this.#all().forEach((chart) => chart.draw());
  }

  start(history) {
    this.history.start(history);
    this.ranges.offer();
    this.#fill();
  }

  #fill() {
    this.rates.forEach((chart) => chart.fill());
    this.ranges.tell();
  }

  // Figures that arrive while paused are kept, and not shown.
  add(figures, shown) {
    this.history.add(figures.time_ms, figures.rates);
    if (!shown) return;
    this.#fill();
    if (figures.ring) this.latency.fill(figures.ring.latency);
  }
}
