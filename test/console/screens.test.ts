/** What people see on the screens of the console in a cluster, and what they never see. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { ConsoleWorld, hostileName, macs, secretText, workProfile } from "./console-world.ts";
import { faultsOf } from "./people.ts";

const startMs = 180_000;

describe.skipIf(missing("chromium", "kube-apiserver", "kubectl"))(
  "the console in a browser",
  { timeout: 120_000 },
  () => {
    let world: ConsoleWorld;
    beforeAll(async () => {
      world = await ConsoleWorld.start();
    }, startMs);
    afterAll(() => world?.stop());

    it("turns the machines of a broken Profile failed, with the field and the line", async () => {
      const { page, troubles } = await world.person("viewer");
      await world.open(page, "/console/?text=work");
      const row = page.getByRole("row").filter({ hasText: macs.working });
      await row.getByText("booting").waitFor();
      await world.accounts.cluster.apply(JSON.stringify(workProfile("hostname: {{host|name}}")));
      await row.getByText("failed", { exact: true }).waitFor();
      await row.getByText("Profile default/work: spec.cloudConfig: line 2, column").waitFor();
      await world.accounts.cluster.apply(JSON.stringify(workProfile()));
      await row.getByText("booting").waitFor();
      expect(troubles).toEqual([]);
    });

    it("keeps what a machine sends as text on every screen", async () => {
      const { page, troubles } = await world.person("approver");
      const seen: string[] = [];
      for (const path of world.paths) {
        await world.open(page, path);
        expect(await page.locator("img").count(), path).toBe(0);
        if ((await page.locator("main").textContent())?.includes(hostileName)) seen.push(path);
      }
      const machines = [macs.hostile, macs.hostileWorking].map((mac) => `/console/machines/${mac}`);
      expect(seen).toEqual(expect.arrayContaining(["/console/", "/console/waiting", ...machines]));
      // The page of a machine that nobody knows.
      expect(troubles.filter((trouble) => !trouble.includes("404 (Not Found)"))).toEqual([]);
    });

    it("shows the text of a Secret on no page, and in no event", async () => {
      const { page } = await world.person("approver");
      for (const path of world.paths) {
        const source = await world.open(page, path);
        expect(source, path).toContain("<!doctype html>");
        expect(source, path).not.toContain(secretText);
        // The live content has arrived by then.
        expect(await page.content(), path).not.toContain(secretText);
      }
      await world.open(page, `/console/machines/${macs.secret}`);
      expect(await page.locator("main").textContent()).toContain("From a Secret: not shown.");
    });

    it("shows what a pasted manifest changes, and keeps its text as text", async () => {
      const { page } = await world.person("viewer");
      await world.open(page, "/console/try");
      const form = page.locator('form[method="post"][action="/console/try"]');
      await form.getByLabel("Labels of a machine").fill(`mac=${macs.working}\nhostname=${hostileName}`);
      await form.getByLabel("Manifest").fill(`# ${hostileName}\n${JSON.stringify(workProfile("hostname: tried"))}`);
      await form.getByRole("button", { name: "Try the manifest" }).click();
      const main = page.locator("main");
      expect(await main.textContent()).toContain("Profile/default/work replaces the present one");
      expect(await page.getByRole("row").filter({ hasText: "/cloud" }).textContent()).toContain("differs");
      expect(await form.getByLabel("Manifest").inputValue()).toContain(hostileName);
      expect(await page.locator("img").count()).toBe(0);
      expect(await faultsOf(page)).toEqual([]);
    });

    it("shows no button that changes something to an account that may only look, and the API server refuses it", async () => {
      const { page } = await world.person("viewer");
      for (const path of ["/console/waiting", "/console/machines/default/unapproved"]) {
        await world.open(page, path);
        expect(await page.locator('[name="action"], [name="machine"]').count(), path).toBe(0);
      }
      const form = await page.locator('input[name="form"]').first().getAttribute("value");
      const sent = { form: form ?? "", action: "approve", machine: "default/unapproved none 1", back: "/console/" };
      const body = JSON.stringify(new URLSearchParams(sent).toString());
      const post = `fetch("/console/actions", { method: "POST", body: new URLSearchParams(${body}) })`;
      const answer = await page.evaluate(`${post}.then((answer) => answer.text())`);
      expect(answer).toContain("is not changed: your account may not patch machines.davit.dev");
      expect(await world.ask("unapproved")).toBe(503);
    });

    it("works without JavaScript: pages, filters and actions", async () => {
      const { page } = await world.person("approver", { javaScriptEnabled: false });
      await page.getByLabel("Text").fill(macs.held);
      await page.getByRole("button", { name: "Filter" }).click();
      expect(await page.locator("#found").textContent()).toMatch(/^1 of \d+ machines$/);
      await page.getByRole("link", { name: macs.held }).click();
      await page.getByRole("button", { name: "Release" }).click();
      expect(await page.locator("#outcomes").textContent()).toContain("default/held is released");
      await expect.poll(() => world.ask("held")).toBe(200);
      await page.getByRole("link", { name: "Back" }).click();
      await page.getByRole("button", { name: "Hold" }).click();
      expect(await page.locator("#outcomes").textContent()).toContain("default/held is held");
      await expect.poll(() => world.ask("held")).toBe(503);
      await page.getByRole("button", { name: "Sign out" }).click();
      expect(await page.locator("h1").textContent()).toBe("Sign in");
      // davit's own computer may look without a token, but change no object.
      await world.open(page, "/console/machines/default/held");
      expect(await page.locator(".who").textContent()).toContain("this computer");
      expect(await page.getByRole("button", { name: "Release" }).count()).toBe(0);
    });
  },
);
