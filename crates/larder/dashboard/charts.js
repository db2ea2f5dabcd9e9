// The pictures. Each has its numbers beside it as text, for whoever does not see it.
/* global uPlot */
import { el, text } from './dom.js';
import { bytes, rate, time } from './format.js';

const MINUTES = 10;
const POINTS = 600;
// The time that is shown even when less is known.
const LEAST_S = 120;
// Longer without a reading than this is a gap: while nobody looks there is one in ten seconds.
const GAP_S = 25;

const COLOURS = ['ink', 'quiet', 'grid', 'bad', 'hits', 'hits-fill', 'misses', 'misses-fill', 'passes', 'passes-fill'];
const dark = matchMedia('(prefers-color-scheme: dark)');

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// Rates over the last minutes, as rows of numbers behind their time.
export class History {
  constructor() {
    this.start([], []);
  }

  start(columns, rows) {
    this.columns = columns;
    this.rows = rows.slice(-POINTS);
  }

  add(time_ms, rates) {
    this.rows.push(this.columns.map((name) => (name === 'time_ms' ? time_ms : rates[name] ?? 0)));
    while (this.rows.length > POINTS) this.rows.shift();
  }

  // For uPlot: seconds, then one list for each of `makes`, with holes where nothing was noted.
  series(...makes) {
    const at = Object.fromEntries(this.columns.map((name, n) => [name, n]));
    const lists = [[], ...makes.map(() => [])];
    let last;
    for (const row of this.rows) {
      const seconds = row[0] / 1000;
      if (last && seconds - last > GAP_S) {
        lists[0].push(last + 1);
        for (const list of lists.slice(1)) list.push(null);
      }
      lists[0].push(seconds);
      makes.forEach((make, n) => lists[n + 1].push(make((name) => row[at[name]] ?? 0)));
      last = seconds;
    }
    return lists;
  }

  // The mean of one rate over the last `seconds`.
  mean(name, seconds) {
    const at = this.columns.indexOf(name);
    const now = this.rows.at(-1)?.[0] ?? 0;
    const late = this.rows.filter((row) => now - row[0] < seconds * 1000);
    return late.length ? late.reduce((sum, row) => sum + row[at], 0) / late.length : 0;
  }

  peak(make) {
    const [, values] = this.series(make);
    return Math.max(0, ...values.filter((value) => value !== null));
  }
}

const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

// Steps of a scale of bytes, which goes by powers of two.
const BYTE_STEPS = Array.from({ length: 45 }, (_, n) => 2 ** n);

function axes(c, format, incrs) {
  const common = { font: FONT, stroke: c.quiet, grid: { stroke: c.grid, width: 1 }, ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, size: 22, gap: 4, space: 70,
      values: (_, splits) => splits.map((s) => new Date(s * 1000).toTimeString().slice(0, 5)),
      incrs: [60, 120, 180, 300] },
    { ...common, size: 58, gap: 6, space: 34, values: (_, splits) => splits.map(format), ...(incrs && { incrs }) },
  ];
}

// A chart of rates over time. `lines`: { name, label, swatch, make(of), value?(of), stroke, fill, dash }, the highest of
// a stack first; `value` is what the legend tells where that is not the line's own height.
class Rates {
  constructor(place, history, { title, unit, format, incrs, lines }) {
    Object.assign(this, { history, unit, format, incrs, lines, title });
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
      width: this.plot.clientWidth, height: this.plot.clientHeight, legend: { show: false }, padding: [8, 8, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: (u, low, high) => [Math.max(high - MINUTES * 60, Math.min(low, high - LEAST_S)), high] },
        y: { range: (u, low, high) => [0, high > 0 ? high * 1.08 : 1] },
      },
      axes: axes(c, this.format, this.incrs),
      series: [{}, ...stack],
      hooks: { setCursor: [(u) => { this.index = u.cursor.idx; this.#tell(); }] },
    }, this.history.series(...this.lines.map((line) => line.make)), this.plot);
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
    text(this.words, `${this.title}, ${this.unit}: the highest in ten minutes was ${peak}.`);
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
      el('figcaption', {}, el('h3', {}, 'Time to answer ', el('span', { class: 'quiet' }, 'requests/s by time, logarithmic'))),
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

export class Charts {
  constructor(place) {
    this.history = new History();
    const missed = (of) => of('hits') + of('misses');
    this.rates = [
      new Rates(place, this.history, {
        title: 'Requests', unit: 'per second', format: rate,
        lines: [
          { label: 'passed', swatch: 'passes', stroke: 'passes', fill: 'passes-fill',
            make: (of) => missed(of) + of('passes'), value: (of) => of('passes') },
          { label: 'misses', swatch: 'misses', stroke: 'misses', fill: 'misses-fill', make: missed,
            value: (of) => of('misses') },
          { label: 'hits', swatch: 'hits', stroke: 'hits', fill: 'hits-fill', make: (of) => of('hits') },
        ],
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

  start({ columns, rows }) {
    this.history.start(columns, rows);
    this.rates.forEach((chart) => chart.fill());
  }

  // What came while figures are paused is kept, and not shown.
  add(figures, shown) {
    this.history.add(figures.time_ms, figures.rates);
    if (!shown) return;
    this.rates.forEach((chart) => chart.fill());
    if (figures.ring) this.latency.fill(figures.ring.latency);
  }
}
