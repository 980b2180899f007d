/**
 * Turns one file's bytes into definitions (accepted and refused objects) and problems. It runs in the worker thread and
 * does no I/O. The result is plain data that can be sent to another thread. No message quotes values of the file.
 */

import type { Position } from "../../lib/text/position.ts";
import { isJsonObject, type JsonValue } from "../../model/json.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import type { ProfileCaution } from "../../model/objects/profile.ts";
import {
  fileUid,
  type GroupObject,
  type MachineObject,
  type ObjectName,
  type SourceObject,
} from "../../model/objects/source.ts";
import type { Admission, RefusedDocument } from "../admission/admission.ts";
import type { SchemaFinding } from "../admission/check.ts";
import { decodeUtf8 } from "../admission/core-kinds.ts";
import { foreignKey } from "../admission/identity.ts";
import type { SchemaNode } from "../admission/schema.ts";
import { type FileProblem, wholeProblem } from "./list-files.ts";
import { formatOf, readDocuments, type TextDocument, type TextStart, textBegin } from "./yaml-documents.ts";

/** A document that names an object. */
export type Definition =
  | { readonly kind: "accepted"; readonly object: SourceObject; readonly place: ItemPlace }
  | {
      readonly kind: "refused";
      readonly name: ObjectName;
      readonly origin: string;
      /** The mistake, in one sentence. */
      readonly text: string;
      readonly place: ItemPlace;
      /** For a Group or a Machine: its readable part, if that names machines. */
      readonly standIn?: GroupObject | MachineObject;
      /** As in `RefusedDocument`. */
      readonly hidesMachines?: true;
      /** As in `RefusedDocument`. */
      readonly caution?: ProfileCaution;
    };

/** The place of an object in a file. */
export interface ItemPlace {
  /** The file's name in messages. */
  readonly file: string;
  readonly at: Position;
  /** The number of the document that has the object. */
  readonly document: number;
  /** The object's path within a `kind: List`; empty if the object is the whole document. */
  readonly path: readonly string[];
}

/** What a file holds. */
export interface FileContent {
  readonly definitions: readonly Definition[];
  readonly problems: readonly FileProblem[];
  /** Documents of API groups that davit does not read. */
  readonly ignored: readonly IgnoredDocument[];
  /** Advice on the file, which is separate from its problems. */
  readonly advice?: readonly FileProblem[];
}

export interface IgnoredDocument {
  /** `document 2 (line 14)` */
  readonly place: string;
  /** Identifies the document within its file. It quotes the file, so compare it but never show it. */
  readonly key: string;
}

/** A larger file is refused: it is probably no manifest, and would occupy the parser for seconds. */
export const maxFileBytes = 8 * 1024 * 1024;

// Each mark (`markCount`) can become a node of about 1 KB. This many need about a quarter of the thread's memory.
const maxMarks = 500_000;

// One mistake, such as a wrong indentation, can make a finding for every field below it. The first ones are enough.
const maxFindingsPerDocument = 8;

/** Returns the content of a file that cannot be used at all. */
export function unusableFile(file: string, code: FindingCode, message: string): FileContent {
  return withProblem(wholeProblem(file, code, message));
}

/** Returns the content of a file that has only this problem. */
export function withProblem(problem: FileProblem): FileContent {
  return { definitions: [], problems: [problem], ignored: [] };
}

/** Counts the characters that begin or separate values in YAML and JSON. The parser makes about one node for each. */
export function markCount(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) if (marks.has(text.charCodeAt(at))) count++;
  return count;
}

const marks: ReadonlySet<number> = new Set([..."\n,:[{-&*?|>"].map((mark) => mark.charCodeAt(0)));

/**
 * Reads a file's bytes.
 * @param path the file's name in messages; its ending selects JSON or YAML.
 */
export function readFileBytes(path: string, bytes: Uint8Array, admission: Admission): FileContent {
  const text = decodeUtf8(bytes);
  if (text === undefined || text.includes("\0")) {
    return unusableFile(
      path,
      "not-text",
      "The file is not UTF-8 text: save it as UTF-8, or move it out of the directory",
    );
  }
  const read = readText({ path, text, start: textBegin }, admission);
  // A failed shell redirection or a crashed editor can leave a file without documents. kubectl refuses it, too.
  if (read === undefined) {
    return unusableFile(path, "no-document", "The file holds no document: remove the file if that is meant");
  }
  return text.endsWith("\n") ? read : { ...read, advice: [unendedProblem(path)] };
}

/** Returns the advice on a file without a final newline. davit cannot know whether the file is half written. */
function unendedProblem(file: string): FileProblem {
  return wholeProblem(
    file,
    "unfinished-file",
    "The file lacks its final newline, as one that is half written: end it with a line break",
  );
}

/** A text, or a part of a text that begins where a document begins. */
interface SourceText {
  /** The file's name in messages; its ending selects JSON or YAML. */
  readonly path: string;
  readonly text: string;
  readonly start: TextStart;
}

/**
 * Reads a text.
 * @returns undefined if the text has no document.
 */
export function readText(source: SourceText, admission: Admission): FileContent | undefined {
  const { path, text } = source;
  if (markCount(text) > maxMarks) {
    return unusableFile(path, "too-large", `The file has more than ${maxMarks} lines and values: split it`);
  }
  try {
    return readWithin(source, admission);
  } catch (error) {
    // Nesting by thousands of brackets exhausts the parser's stack. That is a mistake in the file; other errors are
    // bugs in davit.
    if (!(error instanceof RangeError)) throw error;
    const message = "The file cannot be parsed: its values are nested too deeply, write them flatter";
    return unusableFile(path, "too-deep", message);
  }
}

function readWithin({ path, text, start }: SourceText, admission: Admission): FileContent | undefined {
  const documents = readDocuments(text, formatOf(path), start);
  if ("text" in documents) {
    const { number, line, column, code, text: what } = documents;
    return withProblem({
      origin: `${path}, document ${number} (line ${line})`,
      message: `The file cannot be read at line ${line}, column ${column}: ${what}`,
      code,
      file: path,
      at: { line, column },
      text: `The file cannot be read: ${what}`,
    });
  }
  const items = documents.flatMap(unfoldList);
  if (items.length === 0) return undefined;
  const found = items.map((item) => readItem(path, item, admission));
  return {
    definitions: found.flatMap(({ definition }) => (definition === undefined ? [] : [definition])),
    problems: found.flatMap(({ problems }) => problems),
    ignored: found.flatMap(({ ignored }) => (ignored === undefined ? [] : [ignored])),
  };
}

/** An object in a document: the document itself, or an item of a `kind: List`. */
interface Item {
  readonly document: TextDocument;
  readonly path: readonly string[];
  readonly value: JsonValue;
  /** The reader's findings about this object, with paths that begin at the object. */
  readonly findings: readonly SchemaFinding[];
}

interface ReadItem {
  readonly definition?: Definition;
  readonly problems: readonly FileProblem[];
  readonly ignored?: IgnoredDocument;
}

function unfoldList(document: TextDocument): readonly Item[] {
  const { value } = document;
  const isList = isJsonObject(value) && value.apiVersion === "v1" && value.kind === "List";
  if (!isList || !Array.isArray(value.items)) return [{ document, path: [], value, findings: document.findings() }];
  const inItems = document.findings().filter(({ path }) => path[0] === "items");
  const byItem = Map.groupBy(inItems, ({ path }) => path[1]);
  return value.items.map((item: JsonValue, index) => {
    const position = String(index);
    const findings = (byItem.get(position) ?? []).map((finding) => ({ ...finding, path: finding.path.slice(2) }));
    return { document, path: ["items", position], value: item, findings };
  });
}

function readItem(path: string, item: Item, admission: Admission): ReadItem {
  const { document, value } = item;
  const place = `document ${document.number} (line ${document.placeOf(item.path).line})`;
  const origin = `${path}, ${place}`;
  const verdict = admission.admit(value, { origin, findings: item.findings });
  switch (verdict.kind) {
    case "ignored":
      return { problems: [], ignored: { place, key: foreignKey(value) } };
    case "accepted":
      return { definition: { ...verdict, place: placeOf(path, item) }, problems: [] };
    case "refused": {
      const described = describe(verdict, item, admission.schemaOf(value));
      const problems = described.map((problem) => ({ origin, file: path, ...problem }));
      const definition = toDefinition(verdict, {
        origin,
        text: problems[0]?.message ?? "",
        place: placeOf(path, item),
      });
      return { ...(definition && { definition }), problems };
    }
  }
}

/** Returns a sentence for each wrong place: `Group default/web, spec.priority (line 9): must be 1000 or less`. */
function describe({ findings, name }: RefusedDocument, item: Item, schema: SchemaNode | undefined) {
  const who = name === undefined ? "Document" : `${name.kind} ${name.namespace}/${name.name}`;
  const places = new Map<string, { readonly finding: SchemaFinding; readonly at: Position }>();
  for (const finding of findings) {
    const key = finding.path.join("\0");
    // One finding for a place is enough. The reader's comes first, and explains those of the schema.
    if (places.has(key)) continue;
    places.set(key, { finding, at: item.document.placeOf([...item.path, ...finding.path]) });
  }
  const first = [...places.values()].toSorted((a, b) => a.at.line - b.at.line).slice(0, maxFindingsPerDocument);
  return first.map(({ finding, at }) => {
    const { code, text } = finding;
    const where = shownPath(finding, schema);
    const subject = `${who}${where && `, ${where}`}`;
    return { at, code, message: `${subject} (line ${at.line}): ${text}`, text: `${subject}: ${text}` };
  });
}

// Messages show keys of labels and data in this form, but no other names that users choose.
const shownKey = /^[-._a-zA-Z0-9]{1,63}$/;

/** Returns the path up to the first name that is no declared field, list position, or key of labels or data. */
function shownPath({ path, isUnknownField }: SchemaFinding, schema: SchemaNode | undefined): string {
  const shown: string[] = [];
  let node = schema;
  for (const segment of isUnknownField === true ? path.slice(0, -1) : path) {
    const child = node?.properties.get(segment) ?? (shownKey.test(segment) ? (node?.values ?? node?.items) : undefined);
    if (child === undefined && !(schema === undefined && envelopeFields.has(segment))) break;
    shown.push(segment);
    node = child;
  }
  return shown.join(".");
}

const envelopeFields: ReadonlySet<string> = new Set(["apiVersion", "kind", "items"]);

function placeOf(file: string, { document, path }: Item): ItemPlace {
  return { file, at: document.placeOf(path), document: document.number, path };
}

function toDefinition(
  { name, standIn, hidesMachines, caution }: RefusedDocument,
  { origin, text, place }: { readonly origin: string; readonly text: string; readonly place: ItemPlace },
): Definition | undefined {
  if (name === undefined) return undefined;
  const read = { ...(hidesMachines && { hidesMachines }), ...(caution && { caution }) };
  const refused = { kind: "refused", name, origin, text, place, ...read } as const;
  if (standIn === undefined) return refused;
  const meta = { namespace: name.namespace, name: name.name, uid: fileUid(name), generation: 1, origin };
  return { ...refused, standIn: { ...standIn, ...meta, refusal: text } };
}
