// A page of many parts: images, scripts that count themselves, styles. It says when all of them are there.
export const IMAGES = 60;
export const SCRIPTS = 20;
export const STYLES = 3;

const each = (count, text) => Array.from({ length: count }, (_, n) => text(n + 1)).join('\n');

export function page() {
  return Buffer.from(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Parts</title><link rel="icon" href="data:,">
<script>window.ran = 0</script>
${each(STYLES, (n) => `<link rel="stylesheet" href="/page/style-${n}.css">`)}
</head><body>
${each(IMAGES, (n) => `<img src="/page/image-${n}.svg" width="32" height="32" alt="${n}">`)}
${each(SCRIPTS, (n) => `<script src="/page/script-${n}.js"></script>`)}
<p id="ran"></p><script>document.querySelector('#ran').textContent = window.ran + ' scripts ran'</script>
</body></html>
`);
}

// The type and text of one part.
export function pageFile(name) {
  const [, kind, n] = /^(\w+)-(\d+)\./.exec(name) ?? [];
  if (kind === 'image') {
    const picture = `<rect width="32" height="32" fill="hsl(${n * 6} 80% 50%)"/><!-- ${'.'.repeat(n * 500)} -->`;
    return ['image/svg+xml', Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32">${picture}</svg>`)];
  }
  if (kind === 'script') return ['text/javascript', Buffer.from(`window.ran += 1; // ${'.'.repeat(n * 1000)}\n`)];
  return ['text/css', Buffer.from(`body { --style-${n}: ${n} } /* ${'.'.repeat(2000)} */\n`)];
}
