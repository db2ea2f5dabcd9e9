// Numbers as the dashboard writes them, and what its charts show of the time before.
import fs from 'node:fs';
import path from 'node:path';

import { check, part, sum } from '../browser/checks.mjs';

// Outside of a browser a module has to be called one.
async function load(name) {
  const copy = path.join(process.env.LAB_WORK, `${name}.mjs`);
  fs.copyFileSync(new URL(`../../crates/daemon/dashboard/${name}.js`, import.meta.url), copy);
  return import(copy);
}
const format = await load('format');
const { History } = await load('history');

await part('numbers', async () => {
  for (const [name, rows] of Object.entries({
    count: [[0, '0'], [1_234_567, '1,234,567']],
    rate: [[0, '0'], [0.01, '<0.1'], [0.25, '0.3'], [9.94, '9.9'], [9.96, '10'], [1234.4, '1,234'], [99_940, '99,940'],
      [123_456, '123 k'], [999_700, '1.0 M'], [2_500_000, '2.5 M']],
    bytes: [[0, '0 B'], [999, '999 B'], [1000, '1.0 KiB'], [1536, '1.5 KiB'], [150 * 1024, '150 KiB'], [2 ** 30, '1.0 GiB'],
      [2 ** 51, '2,048 TiB']],
    time: [[null, '–'], [56, '56 µs'], [999.6, '1.0 ms'], [44_668, '44.7 ms'], [501_187, '501 ms'], [999_600, '1.00 s'],
      [12_345_678, '12.35 s']],
    percent: [[null, '–'], [NaN, '–'], [0, '0.0 %'], [0.934, '93.4 %'], [0.99951, '>99.9 %'], [1, '100.0 %']],
    span: [[600, '10 minutes'], [3_600, '1 hour'], [21_600, '6 hours'], [86_400, '1 day'], [129_600, '36 hours'], [90, '90 seconds']],
    duration: [[5.9, '5 s'], [65, '1 min'], [3_700, '1 h 1 min'], [93_784, '1 d 2 h']],
  })) {
    for (const [given, wanted] of rows) check(`${name}(${given})`, format[name](given) === wanted, format[name](given));
  }
});

await part('means of what has no past', async () => {
  const made = new History();
  made.start({ columns: ['time_ms', 'hits'], reach_s: 600, minutes: [], rows: [[1_000, 7]] });
  check('0 before the first look', made.mean('client_errors', 5) === 0, made.mean('client_errors', 5));
  for (const [time, errors] of [[2_000, 50], [10_000, 2], [11_000, 4]]) made.add(time, { hits: 1, client_errors: errors });
  check('of the last five seconds', made.mean('client_errors', 5) === 3, made.mean('client_errors', 5));
  check('as those with a past', made.mean('hits', 5) === 1, made.mean('hits', 5));
});

// A daemon that is as old as `minutes`, of whose last ten minutes each second is known.
function history(minutes, reach_s = 86_400) {
  const end = 1_700_000_000_000 - (1_700_000_000_000 % 60_000);
  const row = (time) => [time, 5];
  const given = {
    columns: ['time_ms', 'hits'], reach_s,
    rows: Array.from({ length: Math.min(600, minutes * 60) }, (_, n) => row(end - n * 1_000)).reverse(),
    minutes: Array.from({ length: Math.min(minutes, reach_s / 60) }, (_, n) => row(end - n * 60_000)).reverse(),
  };
  const made = new History();
  made.start(given);
  return { made, end };
}

await part('the time before', async () => {
  const told = ({ made }, range_s) => {
    made.range_s = range_s;
    const [times, values] = made.series((of) => of('hits'));
    return { points: times.length, holes: values.includes(null), seconds: times.at(-1) - times[0], known: made.between()[1] - made.between()[0] };
  };
  const day = history(2_000);
  for (const [range_s, points] of [[600, 600], [3_600, 61], [21_600, 181], [86_400, 288]]) {
    const { points: are, holes, seconds } = told(day, range_s);
    check(`${range_s} s: ${points} points`, Math.abs(are - points) <= 1, are);
    check(`${range_s} s: as long as that, without a hole`, !holes && seconds > range_s * 0.97, seconds);
  }
  const young = history(3);
  for (const range_s of [600, 86_400]) {
    const { points, known } = told(young, range_s);
    check(`three minutes old, ${range_s} s: every second that is known`, points === 180 && known === 179, [points, known]);
  }
  for (const [reach_s, ranges] of [[600, '600'], [7_200, '600,3600,7200'], [86_400, '600,3600,21600,86400'],
    [172_800, '600,3600,21600,86400,172800']]) {
    check(`choices of ${reach_s} s`, history(5, reach_s).made.ranges().join() === ranges, history(5, reach_s).made.ranges());
  }
  // While somebody looks the page makes the rows of minutes by itself.
  const { made, end } = history(1_440);
  for (let second = 1; second <= 3_600; second += 1) made.add(end + second * 1_000, { hits: second <= 1_800 ? 10 : 20 });
  made.range_s = 3_600;
  const [times, values] = made.series((of) => of('hits'));
  check('an hour later: an hour of minutes', times.length === 61, times.length);
  check('each is the mean of its minute', values[15] === 10 && values.at(-5) === 20, values);
  check('no more than a day is kept', made.minutes.length === 1_440 && made.rows.length === 600, made.minutes.length);
});

sum('the dashboard, its numbers');
