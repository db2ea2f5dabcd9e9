// A page that is kept once for all, with the cart of whoever looks in it: WordPress makes the cart a fragment (ESI).
import { check, part, sum } from '../browser/checks.mjs';
import { Person, openBrowser, traces } from '../browser/people.mjs';
import { Visitor, isHit, seen } from '../browser/visitor.mjs';

const browser = await openBrowser();
const enter = (name) => Person.enter(browser, name);
const OWN = ['Rita Reader', 'wpadminbar', 'logged-in'];

async function cart(person) {
  const page = await person.open('/shop/');
  return { ...page, cart: await person.page.locator('#cart p').textContent() };
}

await part('the shop', async () => {
  const [anna, bert, rita] = [await enter('Anna'), await enter('Bert'), await enter('Rita, with a cart')];
  const first = await cart(anna);
  check('a stranger has an empty cart', first.cart === 'Cart of nobody: 0', first.cart);
  check('no instruction is left in the page', !first.html.includes('esi:'));
  await rita.open('/wp-login.php');
  await rita.page.waitForFunction(() => document.activeElement?.id === 'user_login');
  await rita.page.fill('#user_login', 'rita');
  await rita.page.fill('#user_pass', 'rita-password');
  await rita.page.click('#wp-submit');
  await rita.page.waitForURL('**/wp-admin/**');
  const empty = await cart(rita);
  check("Rita's page is the stored one", isHit(empty, first), `${empty.hit} ${empty.stamp} ${first.stamp}`);
  check('with her cart in it', empty.cart === 'Cart of Rita Reader: 0', empty.cart);
  for (const count of [1, 2]) {
    await rita.page.getByRole('button', { name: 'Add one' }).click();
    await rita.page.getByText(`Cart of Rita Reader: ${count}`).waitFor();
  }
  // The answer to her POST sends her back to the page, which is new for all with that (RFC 9111 4.4).
  const renewed = await cart(rita);
  const full = await cart(rita);
  check('her cart is filled, the page the stored one', full.cart === 'Cart of Rita Reader: 2' && isHit(full, renewed), full.cart);
  await rita.shot('cart');
  const other = await cart(bert);
  const found = traces(other.html, OWN);
  check('the next stranger sees the stored page, and nothing of hers',
    isHit(other, renewed) && other.cart === 'Cart of nobody: 0' && found.length === 0, `${other.cart} ${found}`);
  for (const person of [anna, bert, rita]) await person.leave();
});

await part('codings', async () => {
  const ask = (coding) => new Visitor().get('/shop/', { fields: coding ? { 'Accept-Encoding': coding } : {} });
  const plain = await ask('');
  check('a client without a coding reads it', plain.text.includes('Cart of nobody: 0'), seen(plain));
  const zipped = await ask('gzip');
  const { gunzipSync } = await import('node:zlib');
  const coding = zipped.headers['content-encoding'];
  check('in gzip it is the same page', coding === 'gzip' && gunzipSync(zipped.bytes).equals(plain.bytes), coding);
});

await browser.close();
sum('WordPress, visited by people with a cart');
