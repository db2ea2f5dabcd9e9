// Rates over the time before, as rows of numbers behind their time: the last readings, and means of minutes that reach
// back further.

const POINTS = 600;
// Times that one may choose from, as far as the daemon reaches back.
const RANGES_S = [600, 3_600, 21_600, 86_400];
// A longer time without a row is a gap: without viewers there is a reading every ten seconds.
const GAP_S = 25;
const MINUTE_GAP_S = 150;
// Rows closer than this are of one reading: the second covers no time.
const LEAST_MS = 500;
// Points that a chart has room for, of rows that are means themselves.
const POINTS_OF_MEANS = 300;

// Readings for which rates without a column are kept.
const LATE = 60;

const minuteOf = (row) => Math.floor(row[0] / 60_000);

// One row for many: their means, at the time of the last. Where there was nothing to tell a time of, there is no number.
function meanOf(rows) {
  const mean = (at) => {
    const told = rows.map((row) => row[at]).filter((value) => value !== null);
    return told.length ? told.reduce((sum, value) => sum + value, 0) / told.length : null;
  };
  return rows.at(-1).map((value, at) => (at === 0 ? value : mean(at)));
}

export class History {
  constructor() {
    this.range_s = RANGES_S[0];
    this.start({ columns: [], rows: [], minutes: [], reach_s: this.range_s });
  }

  // Columns have their names, the first is `time_ms`.
  start({ columns, rows, minutes, reach_s }) {
    Object.assign(this, { columns, minutes, reach_s, rows: rows.slice(-POINTS) });
    const last = minutes.at(-1)?.[0] ?? 0;
    // Rows of the minute that is not over.
    this.minute = rows.filter(([time]) => time > last);
    // What the last rows of this look have besides their columns.
    this.late = [];
  }

  add(time_ms, rates) {
    if (time_ms - (this.rows.at(-1)?.[0] ?? 0) < LEAST_MS) return;
    const row = [time_ms, ...this.columns.slice(1).map((name) => (rates[name] === undefined ? 0 : rates[name]))];
    this.rows.push(row);
    while (this.rows.length > POINTS) this.rows.shift();
    this.late.push([time_ms, rates]);
    while (this.late.length > LATE) this.late.shift();
    this.minute.push(row);
    if (minuteOf(row) === minuteOf(this.minute[0])) return;
    this.minutes.push(meanOf(this.minute));
    this.minute = [];
    while (this.minutes.length > this.reach_s / 60) this.minutes.shift();
  }

  // The ranges to choose from, in seconds: the usual ones, and the daemon's whole history.
  ranges() {
    return [...RANGES_S.filter((seconds) => seconds < this.reach_s), this.reach_s];
  }

  // The first and the last second that are shown: the range, or as much of it as is known.
  between() {
    const { rows } = this.#shown();
    const last = (this.rows.at(-1)?.[0] ?? 0) / 1000;
    return [Math.max(last - this.range_s, (rows[0]?.[0] ?? 0) / 1000), last];
  }

  // The finest rows that reach back as far as is asked for, or as anything is known; longer between two is a gap.
  #shown() {
    const wanted = (this.rows.at(-1)?.[0] ?? 0) - this.range_s * 1000;
    const first = this.rows[0]?.[0] ?? 0;
    const before = this.minutes.some(([time]) => time > wanted && time < first - 60_000);
    if (!before) return { rows: this.rows.filter(([time]) => time >= wanted), gap_s: GAP_S };
    const rows = this.minutes.filter(([time]) => time >= wanted);
    if (this.minute.length) rows.push(meanOf(this.minute));
    const minutes = Math.ceil(this.range_s / 60 / POINTS_OF_MEANS);
    return { rows, gap_s: MINUTE_GAP_S * minutes, minutes };
  }

  // As many as there is room for: means of several minutes where these are many.
  #drawn() {
    const { rows, gap_s, minutes = 1 } = this.#shown();
    if (minutes === 1) return { rows, gap_s };
    const groups = new Map();
    for (const row of rows) {
      const at = Math.floor(minuteOf(row) / minutes);
      if (groups.has(at)) groups.get(at).push(row);
      else groups.set(at, [row]);
    }
    return { rows: [...groups.values()].map(meanOf), gap_s };
  }

  // For uPlot: seconds, then one list for each of `makes`, with holes where nothing was noted. Each makes a value of a
  // row, which is asked for a figure by its name; null stands for none.
  series(...makes) {
    const at = Object.fromEntries(this.columns.map((name, n) => [name, n]));
    const lists = [[], ...makes.map(() => [])];
    const { rows, gap_s } = this.#drawn();
    let last;
    for (const row of rows) {
      const seconds = row[0] / 1000;
      if (last && seconds - last > gap_s) {
        lists[0].push(last + 1);
        for (const list of lists.slice(1)) list.push(null);
      }
      lists[0].push(seconds);
      makes.forEach((make, n) => lists[n + 1].push(make((name) => (at[name] === undefined ? 0 : row[at[name]]))));
      last = seconds;
    }
    return lists;
  }

  // The mean of one rate over the last `seconds`; of one without a column, since this page looks.
  mean(name, seconds) {
    const at = this.columns.indexOf(name);
    const now = this.rows.at(-1)?.[0] ?? 0;
    const late = (at < 0 ? this.late : this.rows).filter(([time]) => now - time < seconds * 1000);
    const sum = late.reduce((sum, row) => sum + (at < 0 ? row[1][name] ?? 0 : row[at]), 0);
    return late.length ? sum / late.length : 0;
  }

  // The highest of the shown values.
  peak(make) {
    const at = Object.fromEntries(this.columns.map((name, n) => [name, n]));
    return this.#shown().rows.reduce((most, row) => Math.max(most, make((name) => row[at[name]] ?? 0)), 0);
  }
}
