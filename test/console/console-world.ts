/** davit beside an API server, with machines in every state and something to see on every screen. */

import { setTimeout } from "node:timers/promises";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { screens } from "../../src/http/console/html/layout.ts";
import { openChromium } from "../../tools/generate/browser.ts";
import { Rack } from "../cluster/rack.ts";
import { type Account, type ConsoleCluster, startConsoleCluster } from "./console-cluster.ts";
import { newPerson, type Person, signIn } from "./people.ts";

/** The text of the Secret, which no page may show. */
export const secretText = "correct horse battery staple";
/** What a machine without a Group says its name is. */
export const hostileName = "<img src=x onerror=alert(document.domain)>";

/** The machines by what becomes of them. */
export const macs = {
  working: "52:54:00:00:00:01",
  secret: "52:54:00:00:00:02",
  unapproved: "52:54:00:00:00:03",
  held: "52:54:00:00:00:04",
  hostile: "52:54:00:00:00:05",
  hostileWorking: "52:54:00:00:00:06",
  waiting: "52:54:00:00:00:07",
  installer: "52:54:00:00:00:08",
} as const;
export type MachineName = keyof typeof macs;

export class ConsoleWorld {
  readonly accounts: ConsoleCluster;
  readonly rack: Rack;
  readonly browser: Browser;

  private constructor(accounts: ConsoleCluster, rack: Rack, browser: Browser) {
    this.accounts = accounts;
    this.rack = rack;
    this.browser = browser;
  }

  static async start(): Promise<ConsoleWorld> {
    const accounts = await startConsoleCluster();
    await accounts.cluster.apply(objects);
    const [rack, browser] = await Promise.all([Rack.start({ kubeconfig: accounts.kubeconfig }), openChromium()]);
    const world = new ConsoleWorld(accounts, rack, browser);
    await world.untilAsked("working", 200);
    await world.untilAsked("secret", 200, "/generic");
    for (const name of ["unapproved", "waiting", "held", "installer"] as const) await world.untilAsked(name, 503);
    expect(await world.ask("hostile", "/ipxe", { hostname: hostileName, serial: hostileName })).toBe(404);
    expect(await world.ask("hostileWorking", "/ipxe", { hostname: hostileName })).toBe(200);
    return world;
  }

  get opsUrl(): string {
    return this.rack.davit.opsUrl;
  }

  /** Asks as a machine does. @returns the status. */
  async ask(machine: MachineName, path = "/ipxe", labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const query = new URLSearchParams({ mac: macs[machine], ...labels });
    const answer = await fetch(`${this.rack.davit.bootUrl}${path}?${query}`);
    await answer.text();
    return answer.status;
  }

  /** Asks until the answer has this status. */
  async untilAsked(machine: MachineName, status: number, path = "/ipxe"): Promise<void> {
    const endMs = Date.now() + 30_000;
    for (;;) {
      const got = await this.ask(machine, path);
      if (got === status) return;
      if (Date.now() > endMs) throw new Error(`${machine} got ${got} for ${path}, not ${status}`);
      await setTimeout(100);
    }
  }

  /** Opens a browser, in which an account is signed in. */
  async person(account: Account, options: BrowserContextOptions = {}): Promise<Person> {
    const person = await newPerson(this.browser, options);
    await signIn(person.page, this.opsUrl, this.accounts.tokens[account]);
    return person;
  }

  /** The paths of every screen, of each machine's page, and of pages that find nothing. */
  get paths(): readonly string[] {
    const machines = [
      "default/unapproved",
      "default/held",
      macs.working,
      macs.secret,
      macs.hostile,
      macs.hostileWorking,
    ];
    return [
      ...screens.map(({ path }) => path),
      "/console/objects/Profile/default/work",
      `/console/try?labels=mac%3D${macs.secret}&machine=${macs.hostile}`,
      ...machines.map((name) => `/console/machines/${name}`),
      "/console/machines/nobody",
      "/console/sign-in",
    ];
  }

  /** Opens a page, whose text is that of a whole page. */
  async open(page: Page, path: string): Promise<string> {
    const answer = await page.goto(`${this.opsUrl}${path}`);
    return (await answer?.text()) ?? "";
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.rack.stop();
    await this.accounts.stop();
  }
}

const apiVersion = "davit.dev/v1alpha1";

function group(name: string, profile: string, selected: readonly MachineName[], more: object = {}): object {
  const selector = { matchExpressions: [{ key: "mac", operator: "In", values: selected.map((each) => macs[each]) }] };
  return { apiVersion, kind: "Group", metadata: { name }, spec: { profileRef: { name: profile }, selector, ...more } };
}

function machine(name: MachineName, spec: object = {}): object {
  const identity = { macs: [macs[name]] };
  return { apiVersion, kind: "Machine", metadata: { name }, spec: { identity, ...spec } };
}

/** The Profile of working machines, with this cloud-config. */
export function workProfile(cloudConfig = "hostname: {{hostname}}"): object {
  const spec = {
    boot: { kernel: "/assets/vmlinuz", args: ["console=ttyS0"] },
    metadata: { hostname: "worker" },
    cloudConfig: { inline: `#cloud-config\n${cloudConfig}\n` },
  };
  return { apiVersion, kind: "Profile", metadata: { name: "work" }, spec };
}

const objects = JSON.stringify({
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "keys", labels: { "davit.dev/allow-template": "true" } },
      stringData: { text: `password: ${secretText}\n` },
    },
    workProfile(),
    {
      apiVersion,
      kind: "Profile",
      metadata: { name: "secret" },
      spec: {
        boot: { kernel: "/assets/vmlinuz" },
        generic: { templateFrom: { secretKeyRef: { name: "keys", key: "text" } } },
      },
    },
    {
      apiVersion,
      kind: "Profile",
      metadata: { name: "wipe" },
      spec: { effect: "Install", install: { then: "exit" }, boot: { kernel: "/assets/installer" } },
    },
    group("work", "work", ["working", "hostileWorking"]),
    group("secret", "secret", ["secret"]),
    group("approved", "work", ["unapproved", "waiting"], { approval: "Required" }),
    group("held", "work", ["held"]),
    group("wipe", "wipe", ["installer"]),
    machine("unapproved"),
    machine("waiting"),
    machine("held", { hold: true }),
  ],
});
