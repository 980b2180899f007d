/**
 * `/machines` lists the machines that objects or the ledger name, or that the history has seen. `/machines/<machine>`
 * shows one of them, and `/ledger` shows the ledger. A machine is named by its MAC address, its uuid, its serial
 * number, or its Machine's name, with or without the namespace.
 */

import { Readable } from "node:stream";
import type { FastifyPluginAsync, FastifyReply } from "fastify";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { kindOf } from "../../model/permits/permit.ts";
import type { History } from "../../records/history/history.ts";
import type { HistoryView } from "../../records/history/history-view.ts";
import { jsonText } from "../../render/core/rendered.ts";
import { joinedJson, joinedMachines, namedMachineJson, seenMachines } from "./every-machine.ts";
import type { MachineBook } from "./machine-book.ts";
import { grantJson, ledgerJson } from "./machine-report.ts";
import { rawQueryOf } from "./server.ts";

export interface MachineRoutesOptions {
  readonly book: MachineBook;
  /** Has the machines that were seen. */
  readonly history: Pick<History, "current">;
}

/** How many machines are described before other work gets its turn: about 5 ms. */
const sliceMachines = 200;

export const machineRoutes: FastifyPluginAsync<MachineRoutesOptions> = async (app, { book, history }) => {
  const method = ["GET", "HEAD"];
  app.route({
    method,
    url: "/machines",
    handler: async (request, reply) => {
      // A HEAD request has no body to make.
      const body = request.method === "HEAD" ? "" : Readable.from(listText(book, await history.current()));
      return withHeaders(reply).send(body);
    },
  });
  app.route<{ Params: { "*": string } }>({
    method,
    url: "/machines/*",
    handler: async (request, reply) => {
      const view = await history.current();
      return sendJson(reply, namedMachineJson(book, view, request.params["*"]));
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

/** Yields the list's text. It makes the list while the client reads it, so a long list needs little memory. */
async function* listText(book: MachineBook, view: HistoryView): AsyncGenerator<string> {
  const slices = new Slices(sliceMachines);
  const reading = seenMachines(view);
  let read = reading.next();
  for (; read.done !== true; read = reading.next()) if (slices.isOver(1)) await nextTurn();
  yield `{"ledger":${JSON.stringify(book.ledger.id ?? null)},"machines":[`;
  let lines: string[] = [];
  let mark = "\n";
  for (const joined of joinedMachines(book, read.value)) {
    lines.push(mark, JSON.stringify(joinedJson(book, joined)));
    mark = ",\n";
    if (!slices.isOver(1)) continue;
    yield lines.join("");
    lines = [];
    await nextTurn();
  }
  yield `${lines.join("")}\n]}\n`;
}

/**
 * The object's grant, and the highest generation that the ledger has seen of a grant of this kind: a machine may come
 * from another Group, and spends no generation twice.
 */
async function grantDetails(book: MachineBook, key: string): Promise<object> {
  const { ledger } = book;
  const slices = new Slices(sliceMachines * 50);
  let highest = ledger.endedGeneration(key);
  for (const { spent } of ledger.entries.values()) {
    const ofKind = Object.entries(spent).filter(([other]) => other.startsWith(kindOf(key)));
    highest = Math.max(highest, ...ofKind.map(([, generation]) => generation));
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
