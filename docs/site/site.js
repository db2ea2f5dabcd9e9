// Wide tables scroll. The keyboard can scroll them only if they take the focus; they are wrapped after the page has loaded.
new MutationObserver(() => {
  for (const wrap of document.querySelectorAll('.md-typeset__scrollwrap:not([tabindex])')) wrap.tabIndex = 0;
}).observe(document.documentElement, { childList: true, subtree: true });
