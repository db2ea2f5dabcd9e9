// From the package to a site that answers, by the README's command and then by the guide's file, typed by somebody who has
// PHP-FPM and MariaDB from Debian and WordPress in a folder.
import fs from 'node:fs';

import { check, part, sum } from '../browser/checks.mjs';
import { Page } from './page.mjs';
import { begin, booted, file, inside, until } from './room.mjs';

const readme = new Page('README.md');
const guide = new Page('docs/guide/wordpress.md');
const get = (url, more = '') => inside(`curl --silent --include --max-time 20 ${more} ${url}`).out;

await part('the README: the package', async () => {
  const both = readme.command('sh', 'make package &&');
  const install = both.replace('make package && ', '');
  const done = inside(install);
  check(`"${install}"`, done.good, done.good ? '' : done.all.slice(-600));
  if (!booted) inside('systemctl start larder');
});

await part('the README: a WordPress site, without a file', async () => {
  const commands = readme.commands('sh', '--preset wordpress').map(({ command }) => command);
  const serve = commands.pop();
  for (const command of commands) {
    const done = inside(command);
    check(`"${command}"`, done.good, done.all.trim());
  }
  const larder = begin(serve);
  const setup = await until(() => /^HTTP\/1\.1 302[^]*^Location: .*setup-config\.php/im.exec(get('http://example.com/')));
  check(`"${serve}": PHP answers`, setup, setup ? '' : larder.said());
  const page = get('http://example.com/wp-admin/setup-config.php');
  check("WordPress's installer is shown", page.includes('Setup Configuration File'), page.split('\r\n')[0]);
  const style = get('http://example.com/wp-includes/css/buttons.css');
  check('a style sheet is from the disk', /^HTTP\/1\.1 200/.test(style) && /^content-type: text\/css/im.test(style) && !/x-origin-request/i.test(style));
  const asks = await until(() => /acme: ordering a certificate for example\.com/.test(larder.said()));
  check('it asks the authority for a certificate', asks, asks ? '' : larder.said());
  await larder.end();
  const reloaded = inside('systemctl reload larder');
  check('the service, which ran beside it, is as before', reloaded.good && get('http://localhost:8780/').includes('Larder runs'), reloaded.all.trim());
  // The guide says it again.
  for (const command of commands) inside(command.replace('usermod -aG www-data larder', 'gpasswd --delete larder www-data'));
});

await part('the guide: a file', async () => {
  const text = guide.block('toml', '[[site]]');
  const [place] = /\/\S+\.toml/.exec(text);
  // All that is not as in the page is the authority.
  const asked = process.env.LAB_DIRECTORY
    ? text.replace('email = "you@example.com"', `$&, directory = "${process.env.LAB_DIRECTORY}", ca = "/etc/lab-authority.pem"`)
    : text.replace(/^acme = .*$/m, 'cert = "/etc/cert.pem"\nkey = "/etc/key.pem"');
  fs.writeFileSync(file(place), asked);
  console.log(`the file of the page; other than there: ${asked.split('\n').filter((line) => !text.includes(`${line}\n`)).join(' / ')}`);
  for (const { command } of [...guide.commands('sh', 'usermod'), ...guide.commands('sh', 'systemctl restart')]) {
    const done = inside(command);
    check(`"${command}"`, done.good, done.all.trim());
  }
  const groups = inside('id --name --groups larder').out.trim();
  check("Larder's user is in the group of PHP-FPM's socket", groups.split(' ').includes('www-data'), groups);
  const answer = await until(() => /^HTTP\/2 302[^]*^location: https:.*setup-config\.php/im.exec(get('https://example.com/')));
  check('the site answers over HTTPS, with a certificate that is trusted', answer, answer ? '' : inside('curl -sSI https://example.com/').all);
  // A host is sent there once it has its certificate.
  const sent = await until(() => /^HTTP\/1\.1 308[^]*^location: https:\/\/www\.example\.com\/\r$/im.test(get('http://www.example.com/')));
  check('plain HTTP is sent there', sent, sent ? '' : get('http://www.example.com/').split('\r\n\r\n')[0].replaceAll('\r\n', ' '));
});

sum("WordPress's start, as README and guide have it");
