/**
 * `/machines` lists the machines that objects or the ledger name, `/machines/<machine>` shows one of them, and
 * `/ledger` shows the ledger. A machine is named by its MAC address, its uuid, or `namespace/name` of its Machine.
 */

import { Readable } from "node:stream";
import type { FastifyPluginAsync, FastifyReply } from "fastify";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { isOwnUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { identity as identityText } from "../../model/objects/machine.ts";
import { jsonText } from "../../render/core/rendered.ts";
import { RequestError } from "../errors.ts";
import type { MachineBook } from "./machine-book.ts";
import {
  grantJson,
  ledgerJson,
  type MachineSubject,
  machineDetailsJson,
  machineJson,
  subjectOf,
  subjectsOf,
} from "./machine-report.ts";
import { rawQueryOf } from "./server.ts";

export interface MachineRoutesOptions {
  readonly book: MachineBook;
}

/** How many machines are described before other work gets its turn: about 5 ms. */
const sliceMachines = 200;

export const machineRoutes: FastifyPluginAsync<MachineRoutesOptions> = async (app, { book }) => {
  const method = ["GET", "HEAD"];
  app.route({
    method,
    url: "/machines",
    handler: (request, reply) => {
      // A HEAD request has no body to make.
      const body = request.method === "HEAD" ? "" : Readable.from(listText(book));
      return withHeaders(reply).send(body);
    },
  });
  app.route<{ Params: { "*": string } }>({
    method,
    url: "/machines/*",
    handler: (request, reply) => {
      const subject = findMachine(book, request.params["*"]);
      if (subject === undefined) throw new RequestError("noSuchMachine");
      return sendJson(reply, machineDetailsJson(book, subject));
    },
  });
  app.route({
    method,
    url: "/ledger",
    handler: async (request, reply) => {
      const key = new URLSearchParams(rawQueryOf(request)).get("grant");
      const grant = key === null ? undefined : await grantDetails(book, key);
      return sendJson(reply, { ...ledgerJson(book.ledger), grant });
    },
  });
};

/** Finds the machine that a name means: its object, its entries, or both. */
export function findMachine(book: MachineBook, name: string): MachineSubject | undefined {
  const identity = identityOf(name);
  for (const object of book.machines()) {
    const isIt = identity === undefined ? object.name === name : object.document.spec.identities.includes(identity);
    if (isIt) return subjectOf(book, object);
  }
  return identity === undefined ? undefined : findWithoutObject(book, identity);
}

function findWithoutObject(book: MachineBook, identity: string): MachineSubject | undefined {
  // In the ledger, an identity has at most one entry.
  const [entry] = book.ledger.entriesOf([identity]);
  if (entry !== undefined) return { object: undefined, identities: entry.identities, entries: [entry] };
  for (const waiting of book.pending?.() ?? []) {
    const { identities } = waiting;
    if (identities.includes(identity)) return { object: undefined, identities, entries: [], pending: waiting };
  }
  return undefined;
}

/** Returns the ledger's name of a MAC address or uuid in any form; undefined for any other text. */
export function identityOf(name: string): string | undefined {
  const mac = normalizeMac(name);
  if (mac !== undefined) return identityText("mac", mac);
  const uuid = name.toLowerCase();
  return isOwnUuid(uuid) ? identityText("uuid", uuid) : undefined;
}

/** Yields the list's text. It makes the list while the client reads it, so a long list needs little memory. */
async function* listText(book: MachineBook): AsyncGenerator<string> {
  const slices = new Slices(sliceMachines);
  yield `{"ledger":${JSON.stringify(book.ledger.id ?? null)},"machines":[`;
  let lines: string[] = [];
  let mark = "\n";
  for (const subject of subjectsOf(book)) {
    lines.push(mark, JSON.stringify(machineJson(book, subject)));
    mark = ",\n";
    if (!slices.isOver(1)) continue;
    yield lines.join("");
    lines = [];
    await nextTurn();
  }
  yield `${lines.join("")}\n]}\n`;
}

/** The highest generation of a grant that the ledger has seen, and the object's grant. */
async function grantDetails(book: MachineBook, key: string): Promise<object> {
  const { ledger } = book;
  const slices = new Slices(sliceMachines * 50);
  let highest = ledger.endedGeneration(key);
  for (const { spent } of ledger.entries.values()) {
    highest = Math.max(highest, Object.hasOwn(spent, key) ? (spent[key] ?? 0) : 0);
    if (slices.isOver(1)) await nextTurn();
  }
  const found = book.grantOf(key);
  const grant = found.kind === "object" ? found.grant : undefined;
  return {
    key,
    isKnown: found.kind === "object",
    spentGeneration: highest,
    object: grant && grantJson(ledger, { key, grant }),
  };
}

function withHeaders(reply: FastifyReply): FastifyReply {
  return reply.headers({
    "content-type": jsonText,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
}

function sendJson(reply: FastifyReply, value: object): FastifyReply {
  // A Buffer, because Fastify would add a charset to the type of a JSON text.
  return withHeaders(reply).send(Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`));
}
