// WordPress behind several nodes that share what they store: each page is made once for all, and an edit whose purge goes to
// one of them shows on all at the next request.
import { check, part, sum } from '../browser/checks.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';
import { beginPurges, edit, purges } from './site.mjs';

beginPurges();

const nodes = process.env.LAB_NODES.split(' ');
const path = '/post-130/';
const others = ['/post-131/', '/post-132/', '/post-133/', '/post-134/'];
const ask = (node, target) => new Visitor({}, node).get(target);

// Each node's answers to a page, once all have it stored.
async function stored(target) {
  const answers = [];
  for (const node of nodes) {
    let answer = await ask(node, target);
    for (let tries = 0; !answer.hit && tries < 50; tries++) answer = await ask(node, target);
    answers.push(answer);
  }
  return answers;
}

await part('nodes', async () => {
  for (const target of [path, ...others]) {
    const answers = await stored(target);
    check(`${target} is stored on all nodes`, answers.every((answer) => answer.hit), seen(...answers));
    const stamps = new Set(answers.map((answer) => answer.stamp));
    check(`${target} was made once for all of them`, stamps.size === 1, [...stamps].join(' '));
  }
  for (let round = 1; round <= 10; round++) {
    const kept = [];
    for (const other of others) kept.push((await stored(other))[0]);
    await stored(path);
    const title = `Told ${round}`;
    edit('post-130', title);
    const answers = [];
    for (const node of nodes) answers.push(await ask(node, path));
    const shows = answers.every((answer) => answer.status === 200 && answer.text.includes(title));
    check(`round ${round}: all nodes show the new title at the next request`, shows, seen(...answers));
    for (const [at, other] of others.entries()) {
      for (const node of nodes) {
        const again = await ask(node, other);
        check(`round ${round}: ${other} is still stored`, isHit(again, kept[at]), seen(again));
      }
    }
  }
  const sent = purges();
  const refused = sent.filter((line) => !line.endsWith(': 200'));
  check('every purge was answered with 200', sent.length > 30 && !refused.length, [sent.length, ...refused]);
});
sum('WordPress, visited by way of three nodes');
