/** HTTPS for machines: which configs need it, and which of davit's two URLs is in the texts of a machine. */

import { BootError } from "./core/boot-error.ts";
import type { BootGroup, BootProfile } from "./core/known-documents.ts";

/** How a machine has sent its request. */
export type Transport = "http" | "https";

export interface DavitUrlOptions {
  /** `host:port` at which machines reach the boot service. It comes from the configuration, never from a request. */
  readonly authority: string;
  /** The same for HTTPS; undefined if davit does not listen for it. */
  readonly tlsAuthority?: string | undefined;
}

/** A Group and its Profile, if the Profile exists. */
interface Demanding {
  readonly group: BootGroup;
  readonly profile: BootProfile | undefined;
}

/** davit's URLs, such as `http://192.0.2.1:8080`. */
export class DavitUrls {
  readonly plain: string;
  readonly #tls: string | undefined;

  constructor({ authority, tlsAuthority }: DavitUrlOptions) {
    this.plain = `http://${authority}`;
    this.#tls = tlsAuthority && `https://${tlsAuthority}`;
  }

  /** Every URL of davit that a script may have, with and without a default port. */
  get own(): readonly string[] {
    const urls = [this.plain, ...(this.#tls === undefined ? [] : [this.#tls])];
    return [...new Set(urls.flatMap((url) => [url, new URL(url).origin]))];
  }

  /** Returns the URL for the texts of a machine: by HTTPS if it asks by HTTPS, or must. */
  for(machine: Demanding, transport: Transport | undefined): string {
    return (transport === "https" || demandsTls(machine) ? this.#tls : undefined) ?? this.plain;
  }

  /**
   * Refuses a config that davit sends only by HTTPS, if the machine asks by HTTP. A boot script may go by HTTP, because
   * most firmware has no HTTPS. But without an HTTPS listener the script would name configs that nobody can get.
   * @param transport undefined for a person's request, which davit does not refuse.
   * @throws {BootError} needsTls or noTls.
   */
  assertAllowed(machine: Demanding, { isScript, transport }: { isScript: boolean; transport: Transport | undefined }) {
    if (transport !== "http" || !demandsTls(machine)) return;
    const subject = { group: machine.group.id, ...(machine.profile && { profile: machine.profile.id }) };
    if (this.#tls === undefined) throw new BootError("noTls", subject);
    if (!isScript) throw new BootError("needsTls", subject);
  }
}

function demandsTls({ group, profile }: Demanding): boolean {
  return group.requiresTls || profile?.content.requireTls === true;
}
