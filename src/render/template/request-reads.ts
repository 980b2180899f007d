/** What a template reads of its request. */

/** Records what a template reads of its request, and where it prints it. */
export class RequestReads {
  readonly #noted: (() => void) | undefined;
  readonly #parts: number[] = [];
  #isAny = false;
  #textCount = 0;

  /** @param noted called synchronously at each read. */
  constructor(noted?: () => void) {
    this.#noted = noted;
  }

  /** True after any read. A result without reads is the same for every request. */
  get isAny(): boolean {
    return this.#isAny;
  }

  /** How many reads there were of what the request says. */
  get textCount(): number {
    return this.#textCount;
  }

  /** The start and end of each part of the result that prints something of the request. */
  get parts(): readonly number[] {
    return this.#parts;
  }

  /** Records a read. */
  note({ isText = true } = {}): void {
    this.#isAny = true;
    if (isText) this.#textCount++;
    this.#noted?.();
  }

  /**
   * Records a part of the result, in UTF-16 units. A value that depends on the request in any way is of the request.
   */
  printed(start: number, length: number): void {
    if (length > 0) this.#parts.push(start, start + length);
  }
}
