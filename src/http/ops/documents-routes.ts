/**
 * `POST /documents`: the documents by which machines are answered, and the machines that davit knows, in one answer for
 * `davit diff`. It shows nothing that is made from the text of a Secret: no digest either, because a digest of a short
 * password is as good as the password. To have texts compared, the client sends its own digests, one for each template.
 * So it learns of a text only whether it is the one that it has already, and davit limits how often it may ask.
 */

import { Readable } from "node:stream";
import type { FastifyPluginAsync } from "fastify";
import { BootError } from "../../boot/core/boot-error.ts";
import { mergedLabels } from "../../boot/core/known-machines.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { Clock } from "../../lib/clock.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import type { Feed } from "../../model/feed.ts";
import { isJsonObject, type JsonObject, objectOf } from "../../model/json.ts";
import type { Labels } from "../../model/labels/labels.ts";
import { davitRoot, documentAddress } from "../../model/objects/documents.ts";
import { clearReader, type SecretReader } from "../../model/objects/secret-texts.ts";
import { RequestError } from "../errors.ts";
import { jsonBodies, show } from "./server.ts";
import { type ComparedDigests, digestOf, withoutSecrets } from "./without-secrets.ts";

export interface DocumentsRoutesOptions {
  readonly version: string;
  /** Undefined if there is none. */
  readonly adminNamespace: () => string | undefined;
  readonly store: Feed;
  readonly index: Pick<BootIndex, "isReady" | "ledger" | "soleMachineOf">;
  /** Returns the machines that davit has seen, some of them twice; undefined while it stops. */
  readonly machines: () => Promise<Iterable<ListedMachine> | undefined>;
  readonly clock: Clock;
  /** Absent if there is no key: then no encrypted text is compared. */
  readonly secretReader?: SecretReader | undefined;
}

/** A machine that davit has seen. */
interface ListedMachine {
  readonly labels: Labels;
  /** `namespace/name` of the Group that it last got. */
  readonly group: string | undefined;
}

/** How many characters are written before other work gets its turn: about 2 ms. */
const sliceLength = 256 * 1024;
/** Digests for about 25,000 templates. */
const maxBodyBytes = 4 * 1024 * 1024;
/** A pipeline with many jobs may ask at once. Guesses of one text are limited to 86,400 a day. */
const rate = { perSecond: 1, burst: 10 };

const shownKinds: ReadonlySet<string | undefined> = new Set(["profile", "group", "machine"]);

export const documentsRoutes: FastifyPluginAsync<DocumentsRoutesOptions> = async (app, options) => {
  const questions = new TokenBucket({ clock: options.clock, ...rate });
  jsonBodies(app, maxBodyBytes);
  app.post("/documents", async (request, reply) => {
    const digests = digestsIn(request.body);
    const machines = await options.machines();
    if (!options.index.isReady || machines === undefined) throw new BootError("notReady");
    if (!questions.tryTake()) throw new RequestError("tooManyDiffs", { "retry-after": "2" });
    return show(reply, { json: () => Readable.from(textOf(options, { digests, machines })) });
  });
};

/** Reads the body: `{"secrets": {"racks/web/ignition": "<SHA-256>"}}`. @throws {RequestError} */
function digestsIn(body: unknown): JsonObject {
  const { secrets, ...others } = objectOf(body);
  if (!isJsonObject(secrets) || Object.keys(others).length > 0) throw new RequestError("diffQuestion");
  return secrets;
}

interface Asked {
  readonly digests: JsonObject;
  readonly machines: Iterable<ListedMachine>;
}

/** Yields the answer's text while the client reads it, so that a long list needs little memory. */
async function* textOf(options: DocumentsRoutesOptions, { digests, machines }: Asked): AsyncGenerator<string> {
  const { version, adminNamespace, store, index, secretReader = clearReader } = options;
  const { objects, secrets } = documentsIn(store);
  const known: ComparedDigests = { digests, digestAt: (path) => digestOf(path, secrets.get(path), secretReader) };
  yield `{"version":${JSON.stringify(version)},"adminNamespace":${JSON.stringify(adminNamespace() ?? null)}`;
  yield ',"documents":[';
  yield* lines(objects, ([path, text]) => JSON.stringify([path, withoutSecrets(path, text, known)]));
  yield '],"machines":[';
  yield* lines(machines, (machine) => machineText(machine, index));
  yield "]}\n";
}

interface DocumentsAndSecrets {
  readonly objects: readonly (readonly [path: string, text: string])[];
  /** What the store has of texts of Secrets, by path. */
  readonly secrets: ReadonlyMap<string, string>;
}

/** Returns the documents of all objects, and the texts of their Secrets, at one time. */
function documentsIn(store: Feed): DocumentsAndSecrets {
  let found: (readonly [path: string, text: string])[] = [];
  const unfollow = store.follow(davitRoot, {
    replaced: (documents) => {
      found = [...documents];
    },
    changed: () => undefined,
  });
  unfollow();
  const kindOf = (path: string) => documentAddress(path)?.kind;
  return {
    objects: found.filter(([path]) => shownKinds.has(kindOf(path))),
    secrets: new Map(found.filter(([path]) => kindOf(path) === "secret")),
  };
}

async function* lines<Item>(items: Iterable<Item>, lineOf: (item: Item) => string): AsyncGenerator<string> {
  const slices = new Slices(sliceLength);
  let written = "\n";
  let mark = "";
  for (const item of items) {
    const line = `${mark}${lineOf(item)}`;
    mark = ",\n";
    written += line;
    if (!slices.isOver(line.length)) continue;
    yield written;
    written = "";
    await nextTurn();
  }
  yield written;
}

/** A machine with the labels that it has reported. Those of its Machine are in the documents. */
function machineText({ labels, group }: ListedMachine, index: DocumentsRoutesOptions["index"]): string {
  const listed = index.soleMachineOf(labels).machine?.document.spec.identities;
  const merged = mergedLabels(labels, undefined, index.ledger?.reportedLabels(labels, listed));
  return JSON.stringify({ labels: Object.fromEntries(merged), group });
}
