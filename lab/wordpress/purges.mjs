// A post that is saved is new for everybody at once, where a plugin purges: purge.php sends what Proxy Cache Purge
// sends. The pages are kept for minutes here, so that nothing else could make them new.
import { check, part, sum } from '../browser/checks.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';
import { beginPurges, edit, php, purges } from './site.mjs';

beginPurges();

const path = '/post-120/';
const others = ['/post-121/', '/post-122/'];

await part('purges', async () => {
  const stored = async (target) => {
    const first = await new Visitor().get(target);
    const second = await new Visitor().get(target);
    check(`${target} is stored`, isHit(second, first), seen(first, second));
    return second;
  };
  for (const round of [1, 2]) {
    await stored(path);
    const kept = [];
    for (const other of others) kept.push(await stored(other));
    const title = `Changed ${round}`;
    edit('post-120', title);
    const after = await new Visitor().get(path);
    check(`round ${round}: the next visitor sees the new title`, !after.hit && after.text.includes(title), seen(after));
    for (const [at, other] of others.entries()) {
      const again = await new Visitor().get(other);
      check(`round ${round}: ${other} is still stored`, isHit(again, kept[at]), seen(again));
    }
  }
  const sent = purges();
  check('every purge was answered with 200', sent.length > 6 && sent.every((line) => line.endsWith(': 200')), sent);
  php(`do_action('switch_theme');`);
  for (const target of [path, ...others]) {
    const after = await new Visitor().get(target);
    check(`a new theme: ${target} is made anew`, after.status === 200 && !after.hit, seen(after));
  }
});
sum('WordPress: purges');
