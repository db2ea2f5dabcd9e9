// Numbers as the dashboard writes them.
import fs from 'node:fs';
import path from 'node:path';

import { check, part, sum } from '../browser/checks.mjs';

// Outside of a browser a module has to be called one.
const copy = path.join(process.env.LAB_WORK, 'format.mjs');
fs.copyFileSync(new URL('../../crates/larder/dashboard/format.js', import.meta.url), copy);
const format = await import(copy);

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
    duration: [[5.9, '5 s'], [65, '1 min'], [3_700, '1 h 1 min'], [93_784, '1 d 2 h']],
  })) {
    for (const [given, wanted] of rows) check(`${name}(${given})`, format[name](given) === wanted, format[name](given));
  }
});

sum('the dashboard, its numbers');
