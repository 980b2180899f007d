/** Who is let in by a token, what a reader may not do, and what another page cannot do in a reader's browser. */

import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, servedPort, startDavit } from "../../tools/davit-process.ts";
import { openChromium } from "../../tools/generate/browser.ts";
import { installObjects } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";
import { faultsOf, newPerson, signIn } from "./people.ts";

const tokens = { view: "view-token-0123456789", admin: "admin-token-0123456789" };
const mac = "52:54:00:00:00:01";
const machinePath = `/console/machines/${mac}`;
const hostname = "confidential-name";

describe.skipIf(missing("chromium"))("the console with token files", { timeout: 120_000 }, () => {
  let folder: string;
  let davit: DavitProcess;
  let browser: Browser;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-console-"));
    const at = (name: string) => join(folder, name);
    await writeFile(at("view"), `${tokens.view}\n`, { mode: 0o600 });
    await writeFile(at("admin"), `${tokens.admin}\n`, { mode: 0o600 });
    const manifests = await mkdtemp(at("manifests-"));
    await writeFile(join(manifests, "objects.yaml"), installObjects(undefined));
    const args = ["--ops-token-file", at("view"), "--ops-admin-token-file", at("admin")];
    [davit, browser] = await Promise.all([startDavit({ manifests, dataDir: at("data"), args }), openChromium()]);
    await (await fetch(`${davit.bootUrl}/ipxe?mac=${mac}&role=lab&hostname=${hostname}`)).text();
  });
  afterAll(async () => {
    await browser?.close();
    await davit?.stop();
    await rm(folder, { recursive: true });
  });

  /** A form of a machine's page: what it sends besides the action. */
  async function formTokenOf(page: Page): Promise<string> {
    return (await page.locator('input[name="form"]').first().getAttribute("value")) ?? "";
  }

  it("shows the sign-in page and nothing else for a wrong token", async () => {
    const { page } = await newPerson(browser, { extraHTTPHeaders: { authorization: "Bearer wrong-token-0123456789" } });
    for (const path of ["/console/", machinePath, "/console/waiting"]) {
      const answer = await page.goto(`${davit.opsUrl}${path}`);
      expect(answer?.status()).toBe(401);
      expect(await page.locator("h1").textContent()).toBe("Sign in");
      const source = await page.content();
      for (const secret of [mac, hostname, "default/wipe"]) expect(source).not.toContain(secret);
      expect(await page.getByRole("navigation").count()).toBe(0);
      expect(await faultsOf(page)).toEqual([]);
    }
    const { page: other } = await newPerson(browser);
    await other.goto(`${davit.opsUrl}/console/sign-in`);
    await other.getByLabel("Token").fill("wrong-token-0123456789");
    await other.getByRole("button", { name: "Sign in" }).click();
    expect(await other.getByRole("alert").textContent()).toBe("This token is not known.");
    expect(await other.context().cookies()).toEqual([]);
    expect((await other.goto(`${davit.opsUrl}/console/`))?.status()).toBe(401);
  });

  it("shows no button that changes something to a reader, whose POST is refused", async () => {
    const { page } = await newPerson(browser);
    await signIn(page, davit.opsUrl, tokens.view);
    for (const path of ["/console/", "/console/waiting", machinePath]) {
      await page.goto(`${davit.opsUrl}${path}`);
      expect(await page.locator('form[action="/console/actions"]').count()).toBe(0);
      const buttons = await page.getByRole("button").allTextContents();
      expect(buttons.filter((text) => !["Filter", "Sign out"].includes(text))).toEqual([]);
    }
    const form = await formTokenOf(page);
    for (const action of ["adopt", "forget", "approve", "hold", "release"]) {
      const body = new URLSearchParams({ form, action, machine: mac, back: "/console/" }).toString();
      const send = `fetch("/console/actions", { method: "POST", body: new URLSearchParams(${JSON.stringify(body)}) })`;
      expect(await page.evaluate(`${send}.then(({ status }) => status)`), action).toBe(403);
    }
  });

  it("refuses a form of another page, also with the form token of a session that may change", async () => {
    const { page } = await newPerson(browser);
    await signIn(page, davit.opsUrl, tokens.admin);
    await page.goto(`${davit.opsUrl}${machinePath}`);
    const form = await formTokenOf(page);
    const fields = Object.entries({ form, action: "adopt", machine: mac, back: "/console/" });
    const inputs = fields.map(([name, value]) => `<input name="${name}" value="${value}">`).join("");
    // The same host, so the browser sends the session's cookie.
    const evil = createServer((_request, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<form method="post" action="${davit.opsUrl}/console/actions">${inputs}<button>Win</button></form>`);
    }).listen(0, "127.0.0.1");
    await once(evil, "listening");
    try {
      await page.goto(`http://127.0.0.1:${servedPort(evil.address())}/`);
      const sent = page.waitForRequest((request) => request.method() === "POST");
      await page.getByRole("button", { name: "Win" }).click();
      const request = await sent;
      expect((await request.allHeaders()).cookie).toContain("davit-session=");
      expect((await request.response())?.status()).toBe(403);
    } finally {
      evil.close();
      evil.closeAllConnections();
    }
    expect(await phaseOf()).toBe("");
    // The page of davit itself may do it.
    await page.goto(`${davit.opsUrl}${machinePath}`);
    await page.getByRole("button", { name: "Count as installed" }).click();
    await page.getByText("counts as installed").waitFor();
    expect(await phaseOf()).toBe("Installed");
  });

  /** What the fleet shows as the machine's phase. */
  async function phaseOf(): Promise<string> {
    const { page } = await newPerson(browser, { extraHTTPHeaders: { authorization: `Bearer ${tokens.view}` } });
    await page.goto(`${davit.opsUrl}/console/`);
    const phase = await page.getByRole("row").filter({ hasText: hostname }).getByRole("cell").nth(4).textContent();
    await page.context().close();
    return phase ?? "";
  }

  it("ends the session of a token that is removed, and says so on the open page", async () => {
    const { page } = await newPerson(browser);
    await signIn(page, davit.opsUrl, tokens.view);
    await page.getByText(hostname).first().waitFor();
    await writeFile(join(folder, "view"), "another-token-0123456789\n", { mode: 0o600 });
    await page.getByText("This page does not change any more").waitFor({ timeout: 60_000 });
    expect((await page.reload())?.status()).toBe(401);
    expect(await page.content()).not.toContain(hostname);
  });
});
