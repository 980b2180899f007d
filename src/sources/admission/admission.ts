/**
 * Checks one document as the API server checks an object. The verdict accepts the document as a typed object, refuses
 * it with its mistakes, or ignores it because it does not concern davit.
 *
 * The verdict on a refused Group has a stand-in if the selector can be read. The stand-in makes the Group's machines
 * wait. Without it, a mistake in another field would give these machines to a less specific Group.
 */

import { assert, unreachable } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, objectOf, textEntries } from "../../model/json.ts";
import { isUnmet } from "../../model/labels/expression.ts";
import type { GroupSpec } from "../../model/objects/group.ts";
import type { ProfileCaution } from "../../model/objects/profile.ts";
import {
  allowTemplateLabel,
  fileUid,
  type GroupObject,
  type MachineObject,
  type ObjectKind,
  type ObjectName,
  type SourceObject,
} from "../../model/objects/source.ts";
import { namesMachine } from "../../model/selection/specificity.ts";
import { type Check, compileCheck, type SchemaFinding } from "./check.ts";
import { configMapSchema, documentSchema, isObjectName, readSecretData, secretSchema } from "./core-kinds.ts";
import { expressionFindings, hasOnlyGoodValues, readablePart } from "./expressions.ts";
import { identify, toObjectName } from "./identity.ts";
import {
  machineFindings,
  machineStandIn,
  mayDemandTls,
  mayHold,
  toCaution,
  toGroupSpec,
  toMachineSpec,
  toProfileSpec,
} from "./objects.ts";
import { readKindSchemas, type SchemaNode, toSchemaNode } from "./schema.ts";

type AdmissionVerdict =
  | { readonly kind: "ignored" }
  | { readonly kind: "accepted"; readonly object: SourceObject }
  | RefusedDocument;

export interface RefusedDocument {
  readonly kind: "refused";
  readonly findings: readonly SchemaFinding[];
  /** Undefined if the document has no valid name or no valid namespace. */
  readonly name?: ObjectName;
  /** The valid parts of a Group whose selector can be read, or of a Machine with an identity that can be read. */
  readonly standIn?: StandIn;
  /** For a Group: its selector may name machines that davit cannot read, see `Refusal.hidesMachines`. */
  readonly hidesMachines?: true;
  /** For a Profile: what takes effect of the refused version, because it only makes machines safer. */
  readonly caution?: ProfileCaution;
}

/** What counts of a refused object. */
type StandIn = Pick<GroupObject, "kind" | "spec"> | Pick<MachineObject, "kind" | "spec">;

/** Facts about a document from the code that read it. */
interface DocumentPlace {
  readonly origin: string;
  /** Mistakes that the reader found. One is enough to refuse the document. */
  readonly findings: readonly SchemaFinding[];
  /** From the API server; absent for files. */
  readonly meta?: { readonly uid: string; readonly generation: number };
}

interface KindAdmission {
  readonly schema: SchemaNode;
  readonly check: Check;
}

/** Judges documents by the CRDs. */
export class Admission {
  readonly #kinds: ReadonlyMap<string, KindAdmission>;
  readonly #selector: SchemaNode;
  readonly #checkSelector: Check;

  /**
   * Throws if davit cannot enforce a CRD in full, which is a bug in davit.
   * @param crds the texts of the CRD files.
   */
  constructor(crds: readonly string[]) {
    const specs = new Map(crds.flatMap(readKindSchemas).map(({ kind, spec }) => [kind, spec]));
    const kinds = {
      Profile: documentSchema(specs.get("Profile") ?? null),
      Group: documentSchema(specs.get("Group") ?? null),
      Machine: documentSchema(specs.get("Machine") ?? null),
    };
    const schemas = { ...kinds, ConfigMap: configMapSchema, Secret: secretSchema };
    this.#kinds = new Map(
      Object.entries(schemas).map(([kind, source]) => {
        const schema = toSchemaNode(source);
        return [kind, { schema, check: compileCheck(schema) }];
      }),
    );
    const selector = this.#kinds.get("Group")?.schema.properties.get("spec")?.properties.get("selector");
    assert(selector !== undefined, "The CRD of Group has a selector");
    this.#selector = selector;
    this.#checkSelector = compileCheck(selector);
  }

  /** Every JSON schema that this admission checks values by. The bundler compiles them. */
  get schemas(): readonly JsonObject[] {
    return [...[...this.#kinds.values()].map(({ schema }) => schema), this.#selector].map(({ json }) => json);
  }

  /**
   * Compiles every schema now. Otherwise the first document of each kind does, which takes up to 0.1 s of CPU. Call
   * this on a thread that answers machines.
   */
  prepare(): void {
    for (const { check } of this.#kinds.values()) check({});
    this.#checkSelector({});
  }

  /** Accepts, refuses or ignores a document. */
  admit(value: JsonValue, place: DocumentPlace): AdmissionVerdict {
    // An alias to its own ancestor makes an endless value. The reader has already reported it.
    const isCyclic = place.findings.some(({ code }) => code === "invalid-alias");
    const findings = [...place.findings, ...(isCyclic ? [] : shapeFindings(value, place))];
    const identity = identify(value);
    if (identity.kind === "foreign") return { kind: "ignored" };
    if (identity.kind === "unclear") {
      const { finding, meant } = identity;
      const name = meant && toObjectName(meant.objectKind, meant.document.metadata);
      return this.#refuse([finding, ...findings], name, meant?.document ?? {});
    }
    const { objectKind, document } = identity;
    const name = toObjectName(objectKind, document.metadata);
    const checked = this.#kind(objectKind).check(document);
    const all = [...findings, ...(checked.kind === "bad" ? checked.findings : [])];
    if (checked.kind === "bad" || name === undefined || all.length > 0) {
      return this.#refuse(all, name, document);
    }
    assert(isJsonObject(checked.value), "A checked document is an object");
    const made = makeObject(name, place, checked.value);
    return "findings" in made ? this.#refuse(made.findings, name, document) : { kind: "accepted", object: made };
  }

  /**
   * Returns the schema for a document's kind; undefined if davit does not know the kind. A reader uses the schema to
   * separate declared fields from names that users choose.
   */
  schemaOf(value: JsonValue): SchemaNode | undefined {
    const identity = identify(value);
    return identity.kind === "known" ? this.#kind(identity.objectKind).schema : undefined;
  }

  #kind(kind: ObjectKind): KindAdmission {
    const admission = this.#kinds.get(kind);
    assert(admission !== undefined, "Every kind has a schema");
    return admission;
  }

  #refuse(findings: readonly SchemaFinding[], name: ObjectName | undefined, document: JsonObject): RefusedDocument {
    const refused = { kind: "refused", findings, ...(name && { name }) } as const;
    const caution = name?.kind === "Profile" ? toCaution(document.spec) : undefined;
    if (caution !== undefined) return { ...refused, ...(Object.keys(caution).length > 0 && { caution }) };
    if (name?.kind === "Machine") {
      const machine = machineStandIn(document.spec);
      return { ...refused, ...(machine && { standIn: { kind: "Machine", spec: machine } }) };
    }
    return name?.kind === "Group" ? this.#refuseGroup(refused, document) : refused;
  }

  #refuseGroup(refused: RefusedDocument, document: JsonObject): RefusedDocument {
    const spec = objectOf(document.spec);
    const standIn = this.#standIn(spec);
    const isWhole = standIn !== undefined && (!isJsonObject(spec.selector) || hasOnlyGoodValues(spec.selector));
    const widest = isWhole ? standIn : this.#widest(spec);
    if (widest !== undefined) return { ...refused, standIn: { kind: "Group", spec: widest } };
    return { ...refused, ...(standIn && { standIn: { kind: "Group", spec: standIn } }), hidesMachines: true };
  }

  /**
   * Returns a stand-in that matches every machine that a refused Group may select. It has only the readable part of the
   * selector, so it may match more machines. Undefined unless this part names machines by an identity label.
   */
  #widest(spec: JsonObject): GroupSpec | undefined {
    if (!isJsonObject(spec.selector) || spec.matchAll) return undefined;
    const selector = readablePart(spec.selector, (part) => this.#checkSelector(part).kind === "good");
    const standIn = this.#standIn({ ...spec, selector });
    return namesMachine(standIn) ? standIn : undefined;
  }

  /**
   * Returns the valid parts of a refused Group. Undefined if its selector is not valid, or if it has both a selector
   * and `matchAll`, or neither.
   */
  #standIn({
    selector,
    matchAll,
    profileRef,
    priority,
    hold,
    approval,
    requireTls,
  }: JsonObject): GroupSpec | undefined {
    const checked = this.#checkSelector(selector ?? {});
    if (checked.kind === "bad" || !isJsonObject(checked.value)) return undefined;
    const { matchLabels, matchExpressions } = checked.value;
    if (matchExpressions === null) return undefined;
    const hasSelector = Object.keys(textEntries(matchLabels)).length > 0 || matchExpressions !== undefined;
    if (hasSelector === (matchAll === true)) return undefined;
    const profile = isJsonObject(profileRef) ? profileRef.name : undefined;
    const standIn = toGroupSpec({
      selector: checked.value,
      matchAll: matchAll === true,
      profileRef: { name: typeof profile === "string" && isObjectName(profile) ? profile : "" },
      priority: readPriority(priority ?? 0),
      hold: mayHold(hold),
      // Like an unreadable `hold`, an unreadable `approval` keeps machines waiting. An unreadable `requireTls` keeps
      // configs from HTTP.
      ...(approval !== undefined && approval !== null && { approval: "Required" }),
      requireTls: mayDemandTls(requireTls),
    });
    // `toGroupSpec` drops values that no machine can have. An expression that has no value left selects no machine.
    return standIn.expressions?.some(isUnmet) === true ? undefined : standIn;
  }
}

const highestPriority = 1_000;

/**
 * Returns the priority. An unreadable priority becomes the highest one: its author may have meant the Group to win over
 * all others.
 */
function readPriority(value: JsonValue): number {
  const isPriority = typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= highestPriority;
  return isPriority ? value : highestPriority;
}

// davit walks an object by recursion. The 10,000 levels that an API server allows could overflow the stack.
const maxDepth = 100;

/** Finds a value that is too deep or, in a file, too large. The API server has limited the size of its objects. */
function shapeFindings(value: JsonValue, { meta }: DocumentPlace): readonly SchemaFinding[] {
  if (!isDeeperThan(maxDepth, value)) return meta === undefined ? sizeFindings(value) : [];
  return [{ path: ["spec"], code: "too-deep", text: `is nested deeper than ${maxDepth} levels: write it flatter` }];
}

function isDeeperThan(levels: number, value: JsonValue): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((child) => isDeeperThan(levels - 1, child));
}

function findingsBeyondCrd(kind: ObjectKind, spec: JsonObject): readonly SchemaFinding[] {
  if (kind === "Machine") return machineFindings(spec);
  return kind === "Group" && isJsonObject(spec.selector) ? expressionFindings(spec.selector) : [];
}

type RefusedBy = { readonly findings: readonly SchemaFinding[] };

function makeObject(name: ObjectName, place: DocumentPlace, document: JsonObject): SourceObject | RefusedBy {
  const { kind, namespace } = name;
  const { uid, generation } = place.meta ?? { uid: fileUid(name), generation: 1 };
  const meta = { namespace, name: name.name, uid, generation, origin: place.origin };
  const spec = objectOf(document.spec);
  const findings = findingsBeyondCrd(kind, spec);
  if (findings.length > 0) return { findings };
  switch (kind) {
    case "Profile":
      return { kind, ...meta, spec: toProfileSpec(spec) };
    case "Group":
      return { kind, ...meta, spec: toGroupSpec(spec) };
    case "Machine":
      return { kind, ...meta, spec: toMachineSpec(spec) };
    case "ConfigMap":
      return { kind, ...meta, data: textEntries(document.data) };
    case "Secret": {
      const secret = readSecretData(document);
      if (secret.kind === "bad") return secret;
      const { labels } = objectOf(document.metadata);
      const allowsTemplate = textEntries(labels)[allowTemplateLabel] === "true";
      return { kind, ...meta, data: secret.data, allowsTemplate };
    }
    default:
      return unreachable(kind);
  }
}

/**
 * The largest object as JSON, which is how a cluster stores it: what etcd takes in one request unless it is configured
 * otherwise. The text of a file does not show this size: aliases of YAML repeat a value as often as they like, and the
 * store and its followers would get each copy.
 */
const maxObjectBytes = 1.5 * 1024 * 1024;

/** Finds an object of a file that no cluster would store. The value must be free of cycles, and not too deep. */
function sizeFindings(value: JsonValue): readonly SchemaFinding[] {
  if (!isLargerThan(maxObjectBytes, value)) return [];
  const text = "is larger than 1.5 MiB as JSON, which no cluster stores: shorten it, or split it";
  return [{ path: [], code: "oversized-object", text }];
}

function isLargerThan(bytes: number, value: JsonValue): boolean {
  let leftBytes = bytes;
  const take = (part: JsonValue): boolean => {
    leftBytes -= typeof part === "object" && part !== null ? 2 : scalarBytes(part);
    if (leftBytes < 0) return false;
    if (Array.isArray(part)) return part.every((item) => take(item) && takeSeparators(1));
    if (typeof part !== "object" || part === null) return true;
    return Object.entries(part).every(([key, child]) => take(key) && take(child) && takeSeparators(2));
  };
  const takeSeparators = (count: number) => {
    leftBytes -= count;
    return leftBytes >= 0;
  };
  return !take(value);
}

function scalarBytes(value: string | number | boolean | null): number {
  return typeof value === "string" ? Buffer.byteLength(JSON.stringify(value)) : String(value).length;
}
