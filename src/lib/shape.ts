/**
 * Decoders of JSON that another process wrote. A shape checks a value and returns it with its type, without the members
 * that it does not know. Its error names the place and never quotes the value, which may be a secret:
 *
 *   const address = object({ host: text, port: whole, names: optional(list(text)) });
 *   address(value)             throws `ShapeError`: "names[2] is no text"
 *   parsed(address, json)      undefined for a text that is no JSON of this shape
 */

/** @throws {ShapeError} for a value of another shape. */
export type Decoder<Value> = (value: unknown) => Value;

/** The value of a shape. */
type Decoded<Any> = Any extends Decoder<infer Value> ? Value : never;

export class ShapeError extends Error {
  override readonly name = "ShapeError";
  /** Such as `names[2]`; `it` for the whole value. */
  readonly place: string;
  readonly #problem: string;

  /** @param problem such as "is no text". */
  constructor(problem: string, place = "it") {
    super(`${place} ${problem}`);
    this.#problem = problem;
    this.place = place;
  }

  /** The same error, for the value that holds this one. @param member a name, or an index in brackets. */
  in(member: string): ShapeError {
    const dot = this.place.startsWith("[") ? "" : ".";
    return new ShapeError(this.#problem, this.place === "it" ? member : `${member}${dot}${this.place}`);
  }
}

/** A value that passes a check. @param problem such as "is no text". */
export function where<Value>(check: (value: unknown) => value is Value, problem: string): Decoder<Value> {
  return (value) => {
    if (!check(value)) throw new ShapeError(problem);
    return value;
  };
}

export const text = where((value) => typeof value === "string", "is no text");
export const number = where((value) => typeof value === "number", "is no number");
export const flag = where((value) => typeof value === "boolean", "is neither true nor false");
/** A whole number from 0: an index, a time or a generation. */
export const whole = where(isWhole, "is no whole number from 0");

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

export function oneOf<Text extends string>(texts: readonly Text[]): Decoder<Text> {
  return where((value): value is Text => texts.some((each) => each === value), `is none of ${texts.join(", ")}`);
}

export function list<Value>(each: Decoder<Value>): Decoder<readonly Value[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new ShapeError("is no list");
    return value.map((one: unknown, at) => within(`[${at}]`, each, one));
  };
}

/** An object with any names. */
export function record<Value>(each: Decoder<Value>): Decoder<Record<string, Value>> {
  return (value) => {
    const pairs = Object.entries(membersOf(value));
    return Object.fromEntries(pairs.map(([name, one]) => [name, within(name, each, one)]));
  };
}

type Decoders = Readonly<Record<string, Decoder<unknown>>>;
type OptionalNames<All extends Decoders> = {
  [Name in keyof All]: undefined extends Decoded<All[Name]> ? Name : never;
}[keyof All];
type ObjectOf<All extends Decoders> = {
  readonly [Name in Exclude<keyof All, OptionalNames<All>>]: Decoded<All[Name]>;
} & { readonly [Name in OptionalNames<All>]?: Exclude<Decoded<All[Name]>, undefined> };

/** An object. Its members have the order of the shape. */
export function object<All extends Decoders>(members: All): Decoder<ObjectOf<All>> {
  const shapes = Object.entries(members);
  return (value) => {
    const found = membersOf(value);
    const read: Record<string, unknown> = {};
    for (const [name, shape] of shapes) {
      const one = within(name, shape, Object.hasOwn(found, name) ? found[name] : undefined);
      if (one !== undefined) read[name] = one;
    }
    return read as ObjectOf<All>;
  };
}

type VariantOf<Tag extends string, All extends Readonly<Record<string, Decoder<object>>>> = {
  [Kind in keyof All]: { readonly [Name in Tag]: Kind } & Decoded<All[Kind]>;
}[keyof All];

/** An object whose member `tag` names its shape. */
export function variant<Tag extends string, All extends Readonly<Record<string, Decoder<object>>>>(
  tag: Tag,
  shapes: All,
): Decoder<VariantOf<Tag, All>> {
  return (value) => {
    const kind = membersOf(value)[tag];
    const shape = typeof kind === "string" && Object.hasOwn(shapes, kind) ? shapes[kind] : undefined;
    if (shape === undefined) throw new ShapeError("is of no known kind", tag);
    return { [tag]: kind, ...shape(value) } as VariantOf<Tag, All>;
  };
}

/** A member that an object may lack. */
export function optional<Value>(shape: Decoder<Value>): Decoder<Value | undefined> {
  return (value) => (value === undefined ? undefined : shape(value));
}

/** A member that counts as missing if it has another shape. */
export function lenient<Value>(shape: Decoder<Value>): Decoder<Value | undefined> {
  return (value) => attempt(() => shape(value));
}

/** Parses a text; undefined unless it is JSON of this shape. */
export function parsed<Value>(shape: Decoder<Value>, json: string): Value | undefined {
  return attempt(() => shape(JSON.parse(json)));
}

function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ShapeError) && !(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new ShapeError("is no object");
  return value as Readonly<Record<string, unknown>>;
}

function within<Value>(member: string, shape: Decoder<Value>, value: unknown): Value {
  try {
    return shape(value);
  } catch (error) {
    throw error instanceof ShapeError ? error.in(member) : error;
  }
}
