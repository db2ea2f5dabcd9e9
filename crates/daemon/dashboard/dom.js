// Elements of the page. Text from a request arrives here as a text node and never as markup.

// The attributes that may be set; none that runs code or links elsewhere.
const ATTRIBUTES = new Set([
  'class', 'for', 'id', 'type', 'name', 'value', 'scope', 'role', 'tabindex', 'title', 'min', 'max',
  'aria-label', 'aria-labelledby', 'aria-describedby', 'aria-hidden', 'data-action',
]);

export const byId = (id) => document.getElementById(id);

// An element with attributes; children are elements or texts.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (!ATTRIBUTES.has(name)) throw new Error(`no attribute ${name} here`);
    if (value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

// Sets a text only where it changed, so that readers and selections are left in peace.
export function text(element, value) {
  const next = String(value);
  if (element.textContent !== next) element.textContent = next;
}

export function show(element, shown) {
  element.hidden = !shown;
}

// Shows the outcome of an action, or its failure.
export function answer(element, words, bad = false) {
  element.classList.toggle('bad', bad);
  text(element, words);
}

// Confirms a large change; resolves to true if it is wanted.
export function confirmed(title, words, yes) {
  const dialog = byId('confirm');
  text(byId('confirm-title'), title);
  text(byId('confirm-text'), words);
  text(byId('confirm-yes'), yes);
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}
