/**
 * A small terminal: takes what a program writes, and knows what its screen shows. It understands what firmware, iPXE,
 * Linux and davit's log send: colours, the cursor's moves, and erasing. Anything else is left out.
 */

/** Letters of one colour. */
export interface Run {
  readonly text: string;
  /** `bold` and `colour3`, with spaces between; empty for plain text. */
  readonly style: string;
}

interface Cell {
  readonly letter: string;
  readonly style: string;
}

const blank: Cell = { letter: " ", style: "" };

// The sign for ESC stands for it, as a pattern may not hold the character.
const parts = /␛(?:c|\[([?0-9;]*)([A-Za-z]))|[\r\n\b\t]|\P{Cc}/gu;

export class Terminal {
  readonly #columns: number;
  readonly #height: number;
  #cells: Cell[][] = [[]];
  #row = 0;
  #column = 0;
  #wraps = true;
  #bold = false;
  #colour = "";
  /** The beginning of an escape sequence whose rest is still to come. */
  #unfinished = "";

  constructor(columns: number, height: number) {
    this.#columns = columns;
    this.#height = height;
  }

  write(text: string): void {
    const all = this.#unfinished + text.replaceAll("\u001b", "␛");
    const [unfinished = ""] = /␛(?:\[[?0-9;]*)?$/.exec(all) ?? [];
    this.#unfinished = unfinished;
    for (const [part, numbers, letter] of all.slice(0, all.length - unfinished.length).matchAll(parts)) {
      if (letter !== undefined) this.#control(letter, numbers ?? "");
      else if (part === "␛c") this.#clear();
      else this.#take(part);
    }
  }

  /** The rows of the screen, without blanks at their ends. */
  rows(): readonly (readonly Run[])[] {
    return this.#cells.map(runsOf);
  }

  #take(part: string): void {
    if (part === "\r") this.#column = 0;
    else if (part === "\n") this.#newLine();
    else if (part === "\b") this.#column = Math.max(0, this.#column - 1);
    else if (part === "\t") this.#column = Math.min(this.#columns - 1, (Math.floor(this.#column / 8) + 1) * 8);
    else this.#put(part);
  }

  #put(letter: string): void {
    if (this.#column === this.#columns && this.#wraps) {
      this.#column = 0;
      this.#newLine();
    }
    const column = Math.min(this.#column, this.#columns - 1);
    const style = `${this.#bold ? "bold " : ""}${this.#colour}`.trim();
    const line = this.#line();
    while (line.length < column) line.push(blank);
    line[column] = { letter, style };
    this.#column = column + 1;
  }

  #newLine(): void {
    this.#row += 1;
    if (this.#row < this.#height) return;
    this.#row = this.#height - 1;
    this.#cells.push([]);
    this.#cells.shift();
  }

  #line(): Cell[] {
    while (this.#cells.length <= this.#row) this.#cells.push([]);
    return this.#cells[this.#row] ?? [];
  }

  #clear(): void {
    this.#cells = [[]];
    this.#row = 0;
    this.#column = 0;
  }

  #control(letter: string, numbers: string): void {
    if (letter === "m") for (const each of numbers.split(";")) this.#paint(Number(each));
    else if (letter === "J") this.#clear();
    else if (letter === "K") this.#line().splice(this.#column);
    else if (letter === "H") this.#moveTo(numbers);
    else if (numbers === "?7") this.#wraps = letter === "h";
  }

  #moveTo(numbers: string): void {
    const [row = 1, column = 1] = numbers.split(";").map((each) => Number(each) || 1);
    this.#row = Math.min(row, this.#height) - 1;
    this.#column = Math.min(column, this.#columns) - 1;
  }

  #paint(number: number): void {
    if (number === 0) this.#bold = false;
    if (number === 0 || number === 39) this.#colour = "";
    if (number === 1) this.#bold = true;
    if (number >= 30 && number <= 37) this.#colour = `colour${number - 30}`;
    if (number === 90) this.#colour = "dim";
  }
}

function runsOf(cells: readonly Cell[]): readonly Run[] {
  const last = cells.findLastIndex(({ letter }) => letter !== " ");
  const runs: { text: string; style: string }[] = [];
  for (const { letter, style } of cells.slice(0, last + 1)) {
    const run = runs.at(-1);
    if (run !== undefined && (run.style === style || letter === " ")) run.text += letter;
    else runs.push({ text: letter, style });
  }
  return runs;
}
