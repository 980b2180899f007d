/** The console for people who use no mouse, see little, want another colour, or have a small screen. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ConsoleWorld, macs } from "./console-world.ts";
import { faultsOf, newPerson } from "./people.ts";

const startMs = 180_000;
/** More stops than a page has. */
const maxStops = 200;

describe.skipIf(missing("chromium", "kube-apiserver", "kubectl"))("the console", { timeout: 120_000 }, () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await ConsoleWorld.start();
  }, startMs);
  afterAll(() => world?.stop());

  it.each(["light", "dark"] as const)("has no fault that axe finds, when it is %s", async (colorScheme) => {
    const { page } = await world.person("approver", { colorScheme });
    for (const path of world.paths) {
      await world.open(page, path);
      // Closed parts have content, too.
      await page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })");
      expect(await faultsOf(page), path).toEqual([]);
    }
  });

  it("fits a screen of 320 pixels: no page scrolls sideways", async () => {
    const { page } = await world.person("approver", { viewport: { width: 320, height: 640 } });
    for (const path of world.paths) {
      await world.open(page, path);
      expect(await page.evaluate(tooWide), path).toEqual([]);
      expect(await faultsOf(page), path).toEqual([]);
    }
  });

  it("needs only a keyboard: sign in, filter, look, hold, release, approve, sign out", async () => {
    const { page, troubles } = await newPerson(world.browser);
    await world.open(page, "/console/sign-in");
    await tabTo(page, "token");
    await page.keyboard.type(world.accounts.tokens.approver);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${world.opsUrl}/console/`);

    await tabTo(page, "text");
    await page.keyboard.type("default/held");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/console/?*text=default%2Fheld");
    await tabTo(page, macs.held);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/console/machines/default/held");
    await tabTo(page, "/ipxe", "SUMMARY");
    const part = page.locator("details").filter({ hasText: "/ipxe" }).last();
    const wasOpen = await part.evaluate((each) => each.hasAttribute("open"));
    await page.keyboard.press("Enter");
    expect(await part.evaluate((each) => each.hasAttribute("open"))).toBe(!wasOpen);

    await actByKeyboard(page, "Release", "default/held is released");
    await actByKeyboard(page, "Hold", "default/held is held");
    await tabTo(page, "Waiting room");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/console/waiting");
    await tabTo(page, "Choose default/unapproved");
    await page.keyboard.press("Space");
    await actByKeyboard(page, "Approve", "default/unapproved is approved");
    await expect.poll(() => world.ask("unapproved")).toBe(200);
    await tabTo(page, "Sign out");
    await page.keyboard.press("Space");
    await page.waitForURL("**/console/sign-in");
    expect(troubles).toEqual([]);
  });

  it("keeps what is typed, and the focus, when the first event comes", async () => {
    const { page } = await world.person("approver");
    const mayCome = Promise.withResolvers<void>();
    await page.route("**/console/", async (route) => {
      if (route.request().resourceType() === "eventsource") await mayCome.promise;
      await route.continue();
    });
    await world.open(page, "/console/");
    await page.getByLabel("Group").fill("racks");
    await page.getByLabel("Text").fill("node");
    mayCome.resolve();
    await page.waitForResponse((response) => response.headers()["content-type"] === "text/event-stream");
    for (const asks of ["held", "waiting"] as const) {
      await world.ask(asks);
      await expect.poll(() => page.locator("tbody th").first().textContent()).toContain(macs[asks]);
    }
    expect(await page.getByLabel("Group").inputValue()).toBe("racks");
    expect(await page.getByLabel("Text").inputValue()).toBe("node");
    expect(await focused(page)).toMatchObject({ name: "text" });
  });

  it("keeps the focus and the choice while rows change and move", async () => {
    const { page } = await world.person("approver");
    await world.open(page, "/console/waiting");
    await tabTo(page, "Choose default/waiting");
    await page.keyboard.press("Space");
    for (const asks of ["held", "waiting", "hostile", "waiting"] as const) {
      await world.ask(asks);
      // The row of the machine that asked last is the first one.
      await expect.poll(() => page.locator("tbody th").first().textContent()).toContain(macs[asks]);
      expect(await focused(page)).toMatchObject({ name: "Choose default/waiting" });
      expect(await page.getByLabel("Choose default/waiting").isChecked()).toBe(true);
    }
  });
});

/** What sticks out of the page, if the page scrolls sideways. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
  .filter((each) => each.getBoundingClientRect().right > innerWidth && each.closest(".scroll, pre") === null)
  .map(({ outerHTML }) => outerHTML.slice(0, 200))`;

interface Focus {
  readonly tag: string;
  readonly name: string;
  /** The style of the frame around it; `none` if a person cannot see where the focus is. */
  readonly outline: string;
}

async function focused(page: Page): Promise<Focus> {
  const script = `(() => {
    const at = document.activeElement;
    const name = at.getAttribute("aria-label") ?? (at.name || at.textContent || "").trim();
    return { tag: at.tagName, name: at.tagName === "BUTTON" ? at.textContent : name, outline: getComputedStyle(at).outlineStyle };
  })()`;
  return (await page.evaluate(script)) as Focus;
}

/** Presses Tab until the focus is on what has this name. Every stop on the way must be visible. */
async function tabTo(page: Page, name: string, tag = ""): Promise<void> {
  const stops: string[] = [];
  while (stops.length < maxStops) {
    await page.keyboard.press("Tab");
    const at = await focused(page);
    // After the last stop the focus leaves the page.
    if (at.tag !== "BODY") expect(at.outline, `${at.tag} ${at.name}`).not.toBe("none");
    if (at.name.startsWith(name) && at.tag.startsWith(tag)) return;
    stops.push(at.name);
  }
  throw new Error(`No Tab leads to ${name}, but to ${stops.join(", ")}`);
}

/** Presses a button, reads the outcome and goes back. */
async function actByKeyboard(page: Page, button: string, outcome: string): Promise<void> {
  await tabTo(page, button, "BUTTON");
  await page.keyboard.press("Enter");
  await page.getByText(outcome).waitFor();
  await tabTo(page, "Back");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1 }).filter({ hasNotText: "Done" }).waitFor();
}
