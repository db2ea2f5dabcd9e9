// Links without index.php, set where their owner sets them: the permalinks page of a new WordPress offers them, as it
// finds a server that it knows. A site that has links with index.php is cached as others are.
import { check, part, sum } from '../browser/checks.mjs';
import { BASE, Visitor, neverHit, secondIsHit } from '../browser/visitor.mjs';
import { logIn } from './site.mjs';

const PAGE = '/wp-admin/options-permalink.php';
const edith = await logIn('edith');

// What the page's form sends when this structure is chosen or typed.
async function choose(selection, structure) {
  const { text } = await edith.get(PAGE);
  const [, nonce] = /name="_wpnonce" value="([^"]+)"/.exec(text);
  const form = {
    _wpnonce: nonce, _wp_http_referer: PAGE, selection, permalink_structure: structure, category_base: '', tag_base: '',
    submit: 'Save Changes',
  };
  const answer = await edith.ask('POST', PAGE, { form });
  check(`${structure} is taken`, answer.status === 302 && /settings-updated=true/.test(answer.headers.location),
    `${answer.status} ${answer.headers.location}`);
  // As a browser does: that page puts the new rules in force.
  await edith.get(answer.headers.location.replace(BASE.origin, ''));
}

await part('permalinks', async () => {
  await neverHit('a new WordPress, links by query', new Visitor(), '/?p=1');
  const { text } = await edith.get(PAGE);
  const offered = [...text.matchAll(/name="selection"[^>]*\svalue="([^"]*)"/g)].map((found) => found[1]);
  check('links without index.php are offered', offered.includes('/%postname%/'), offered);
  check('and none with it', !offered.some((one) => one.includes('index.php')), offered);
  await choose('custom', '/index.php/%postname%/');
  const old = await secondIsHit('a post by index.php', '/index.php/post-78/');
  check('it is the post', old.text.includes('About post 78.'));
  await neverHit('the REST API by index.php', new Visitor(), '/index.php/wp-json/wp/v2/posts');
  await choose('/%postname%/', '/%postname%/');
  const pretty = await secondIsHit('a post without it', '/post-78/');
  check('it is the post, too', pretty.text.includes('About post 78.'));
});

sum('WordPress: permalinks');
