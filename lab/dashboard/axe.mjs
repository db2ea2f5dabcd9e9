// A page as axe-core sees it: what makes it hard to use for some.
import fs from 'node:fs';

import { check } from '../browser/checks.mjs';

const axe = fs.readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

export async function look(page, what) {
  const found = await page.evaluate(`${axe}; axe.run(document)`);
  const bad = found.violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  const others = found.violations.filter((violation) => !bad.includes(violation));
  check(`${what}: nothing serious by axe-core`, bad.length === 0 && found.passes.length > 10,
    bad.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ target }) => target).join(' ')}`).join('; '));
  if (others.length) console.log(`        ${what}, less: ${others.map(({ id }) => id).join(', ')}`);
}
