// People who write in a WordPress.

// The block editor's welcome has pictures from wordpress.org.
export const EDITOR_PICTURES = / https:\/\/s\.w\.org\/images\//;

export async function logIn(person, login, password) {
  await person.open('/wp-login.php');
  // The page takes the focus to this field a while after it is loaded: what is typed elsewhere by then would end here.
  await person.page.waitForFunction(() => document.activeElement?.id === 'user_login');
  await person.page.fill('#user_login', login);
  await person.page.fill('#user_pass', password);
  await person.page.click('#wp-submit');
  await person.page.waitForURL('**/wp-admin/**');
}

// Runs what is done in the block editor. Its welcome covers it, and may come back once what the editor knows of the person
// has arrived.
async function inEditor(page, run) {
  const welcome = page.locator('.components-guide');
  await page.addLocatorHandler(welcome, (guide) => guide.getByRole('button', { name: 'Close dialog' }).click());
  const result = await run();
  await page.removeLocatorHandler(welcome);
  return result;
}

const paragraph = (page) => page.locator('p[data-type="core/paragraph"]');

// Writes a post and publishes it; the result is the editor's link to it.
export async function write(person, title, text) {
  const { page } = person;
  await person.open('/wp-admin/post-new.php');
  return inEditor(page, async () => {
    await page.getByRole('textbox', { name: 'Add title' }).fill(title);
    await page.getByRole('textbox', { name: 'Add title' }).press('Enter');
    // Keys that come while the editor makes its first block are lost on a busy machine: the text comes at once.
    await paragraph(page).fill(text);
    await paragraph(page).filter({ hasText: text }).waitFor();
    await person.shot('block-editor');
    await page.getByRole('button', { name: 'Publish', exact: true }).click();
    await page.locator('.editor-post-publish-panel').getByRole('button', { name: 'Publish', exact: true }).click();
    const link = page.locator('.post-publish-panel__postpublish-buttons').getByRole('link', { name: 'View Post' });
    await link.waitFor();
    return link;
  });
}

// Opens a post in the editor, gives its first paragraph this text, and saves it.
export async function rewrite(person, id, text) {
  const { page } = person;
  await person.open(`/wp-admin/post.php?post=${id}&action=edit`);
  await inEditor(page, async () => {
    await paragraph(page).first().fill(text);
    await paragraph(page).filter({ hasText: text }).waitFor();
    await page.getByRole('button', { name: 'Update', exact: true }).click();
    await page.getByText('Post updated.').first().waitFor();
    await person.shot('updated');
  });
}
