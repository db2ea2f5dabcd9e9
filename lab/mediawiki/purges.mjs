// A page that is edited is new for everybody at once: MediaWiki purges what an edit changes, by itself
// ($wgCdnServers). Edits here are those of its maintenance script.
import { execFileSync } from 'node:child_process';

import { check, part, sum } from '../browser/checks.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';

const edit = (title, input) => {
  const script = '/usr/share/mediawiki/maintenance/edit.php';
  execFileSync('php', [script, '--summary', 'changed', title], { input, timeout: 60_000 });
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
sum('MediaWiki: purges');
