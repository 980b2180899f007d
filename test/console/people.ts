/** People at browsers: each with cookies of their own, and a record of what must not happen on a page. */

import axe from "axe-core";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

export interface Person {
  readonly page: Page;
  /** Dialogs, errors of scripts, and what the browser's console complains about. */
  readonly troubles: readonly string[];
}

/** A person who opens a browser. */
export async function newPerson(browser: Browser, options: BrowserContextOptions = {}): Promise<Person> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => troubles.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") troubles.push(`console: ${message.text()}`);
  });
  return { page, troubles };
}

/** A line for each fault of the page that axe finds, with the first element that has it. */
export async function faultsOf(page: Page): Promise<readonly string[]> {
  // Not as a script of the page, which its policy would refuse.
  await page.evaluate(axe.source);
  const run = "axe.run(document, { resultTypes: ['violations'] })";
  const { violations } = (await page.evaluate(run)) as Pick<axe.AxeResults, "violations">;
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html}: ${nodes[0]?.failureSummary}`);
}

/** Signs in by the page for it. */
export async function signIn(page: Page, opsUrl: string, token: string): Promise<void> {
  await page.goto(`${opsUrl}/console/sign-in`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${opsUrl}/console/`);
}
