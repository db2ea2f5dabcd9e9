// A page that is edited is new for everybody at once: MediaWiki purges what an edit changes, by itself
// ($wgCdnServers, or in datagrams $wgHTCPRouting). Edits here are those of its maintenance script.
import { execFileSync } from 'node:child_process';

import { check, part, sum } from '../browser/checks.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';

const edit = (title, input, by = 'http') => {
  const script = '/usr/share/mediawiki/maintenance/edit.php';
  const env = { ...process.env, LAB_PURGES_BY: by };
  execFileSync('php', [script, '--summary', 'changed', title], { input, env, timeout: 60_000 });
};

await part('purges', async () => {
  for (const round of [1, 2, 3]) {
    // Both may be hits already; what counts is that the second is the first one's page.
    const before = await new Visitor().get('/wiki/Gamma');
    const stored = await new Visitor().get('/wiki/Gamma');
    check(`round ${round}: the page is stored`, isHit(stored, before), seen(before, stored));
    edit('Gamma', `Changed for the ${round}th time.`);
    const after = await new Visitor().get('/wiki/Gamma');
    const fresh = !after.hit && after.text.includes(`Changed for the ${round}th time.`);
    check(`round ${round}: the next visitor sees the edit`, after.status === 200 && fresh, seen(after));
    const again = await new Visitor().get('/wiki/Gamma');
    check(`round ${round}: and it is stored again`, isHit(again, after), seen(again));
  }
});
await part('purges by HTCP', async () => {
  for (const round of [1, 2, 3]) {
    const before = await new Visitor().get('/wiki/Delta');
    const stored = await new Visitor().get('/wiki/Delta');
    check(`round ${round}: the page is stored`, isHit(stored, before), seen(before, stored));
    edit('Delta', `Told of the ${round}th time.`, 'htcp');
    // Nobody answers a datagram: it may be under way yet.
    let after;
    for (let tries = 0; tries < 50; tries++) {
      after = await new Visitor().get('/wiki/Delta');
      if (after.text.includes(`Told of the ${round}th time.`)) break;
      await new Promise((done) => setTimeout(done, 20));
    }
    const fresh = after.text.includes(`Told of the ${round}th time.`);
    check(`round ${round}: a visitor sees the edit`, after.status === 200 && fresh, seen(after));
  }
});
sum('MediaWiki: purges');
