/**
 * `davit completion`: a script by which a shell completes davit's commands and options. It is made of the commands' own
 * tables, so that a new option is in it at once.
 */

import { optionText } from "../options/parsing.ts";
import type { CliCommand, ListedCommand } from "./core/host.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** @param commands every command. */
export function completion(commands: readonly ListedCommand[]): CliCommand {
  return {
    endsAtOnce: true,
    run: async (args, host) => {
      const [word, ...others] = args;
      if (word === "--help" || word === "-h") {
        host.write(help);
        return 0;
      }
      const shell = shells.find((each) => each === word);
      if (shell === undefined || others.length > 0) {
        host.writeError(`Name one shell: ${shells.join(", ")}\nSee davit completion --help\n`);
        return 2;
      }
      host.write(scriptOf[shell](await describe(commands)));
      return 0;
    },
  };
}

const help = `Usage: davit completion bash|zsh|fish

Prints a script that completes davit's commands and options. Load it where your shell starts:
  bash    source <(davit completion bash)
  zsh     source <(davit completion zsh)
  fish    davit completion fish | source
`;

export interface DescribedCommand {
  /** One word or two. */
  readonly name: string;
  readonly summary: string;
  readonly options: readonly DescribedOption[];
}

interface DescribedOption {
  readonly flag: string;
  /** The placeholder of the value; undefined for a switch. */
  readonly value: string | undefined;
  readonly help: string;
}

/** Returns every command with its options. */
export async function describe(commands: readonly ListedCommand[]): Promise<readonly DescribedCommand[]> {
  const described: DescribedCommand[] = [];
  for (const { name, summary, load } of commands) {
    const { help, parts = [] } = await load();
    const options = Object.values(help?.options ?? {}).map((option) => {
      return { flag: option.flag, value: option.value, help: optionText(option) };
    });
    described.push({ name, summary, options }, ...(await describe(parts)));
  }
  return described;
}

/** The words that a value may have; empty for any other value. */
function choicesOf({ value = "" }: DescribedOption): readonly string[] {
  return /^[A-Za-z-]+(\|[A-Za-z-]+)+$/.test(value) && value !== value.toUpperCase() ? value.split("|") : [];
}

/** True for a value that is the path of a file or a directory. */
function isPath({ value = "" }: DescribedOption): boolean {
  return /^(FILE|DIR|PATH)/.test(value);
}

const scriptOf: Readonly<Record<Shell, (commands: readonly DescribedCommand[]) => string>> = {
  bash: (commands) => `${bashFunction(commands)}complete -o filenames -F _davit davit\n`,
  zsh: (commands) => `autoload -U +X bashcompinit && bashcompinit\n${inZsh(scriptOf.bash(commands))}`,
  fish: fishScript,
};

/** Commands whose names have two words, by the first one. */
function partsOf(commands: readonly DescribedCommand[]): ReadonlyMap<string, readonly string[]> {
  const pairs = commands.map(({ name }) => name.split(" ")).filter(({ length }) => length === 2);
  return new Map(
    [...Map.groupBy(pairs, ([first = ""]) => first)].map(([first, all]) => [
      first,
      all.map(([, second = ""]) => second),
    ]),
  );
}

function firstWords(commands: readonly DescribedCommand[]): readonly string[] {
  return commands.map(({ name }) => name).filter((name) => !name.includes(" "));
}

/** What bash does behind an option. */
function bashValue(option: DescribedOption): string {
  const choices = choicesOf(option);
  if (choices.length > 0) return `mapfile -t COMPREPLY < <(compgen -W '${choices.join(" ")}' -- "$cur"); return`;
  if (isPath(option)) return 'mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return';
  return option.value === undefined ? ":" : "return";
}

function bashFunction(commands: readonly DescribedCommand[]): string {
  const parts = partsOf(commands);
  const values = commands.flatMap(({ name, options }) =>
    options.map((option) => `    '${name} --${option.flag}') ${bashValue(option)} ;;`),
  );
  const lists = commands.map(({ name, options }) => {
    const flags = [...options.map(({ flag }) => `--${flag}`), "--help", ...(parts.get(name) ?? [])];
    return `    '${name}') words='${flags.join(" ")}' ;;`;
  });
  const two = [...parts.keys()].map((name) => `'${name}'`).join("|");
  return `_davit() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" command words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '${firstWords(commands).join(" ")}' -- "$cur")
    return
  fi
  command="\${COMP_WORDS[1]}"
  case "$command" in
    ${two === "" ? "''" : two}) [ "$COMP_CWORD" -gt 2 ] && command="$command \${COMP_WORDS[2]}" ;;
  esac
  case "$command $prev" in
${values.join("\n")}
  esac
  case "$command" in
${lists.join("\n")}
    *) words='' ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
`;
}

/** zsh has no `mapfile`. */
function inZsh(script: string): string {
  return script.replaceAll(/mapfile -t COMPREPLY < <(\(compgen .*? -- "\$cur"\))/g, "COMPREPLY=($$$1)");
}

/** How fish completes the value of an option. */
function fishValue(option: DescribedOption): string {
  if (option.value === undefined) return "";
  const choices = choicesOf(option);
  if (choices.length > 0) return ` -x -a '${choices.join(" ")}'`;
  return isPath(option) ? " -r -F" : " -x";
}

function fishScript(commands: readonly DescribedCommand[]): string {
  const parts = partsOf(commands);
  const lines = commands.flatMap(({ name, summary, options }) => {
    const [first = "", second] = name.split(" ");
    const isFirst = second === undefined;
    const seen = (words: string) => `__fish_seen_subcommand_from ${words}`;
    const before = isFirst
      ? "__fish_use_subcommand"
      : `${seen(first)}; and not ${seen((parts.get(first) ?? []).join(" "))}`;
    const inside = isFirst ? seen(first) : `${seen(first)}; and ${seen(second)}`;
    return [
      `complete -c davit -n '${before}' -f -a ${isFirst ? first : second} -d '${quoted(summary)}'`,
      ...options.map((option) => {
        const { flag, help: text } = option;
        return `complete -c davit -n '${inside}' -l ${flag}${fishValue(option)} -d '${quoted(text)}'`;
      }),
    ];
  });
  return `complete -c davit -f\n${lines.join("\n")}\n`;
}

function quoted(text: string): string {
  return text.replaceAll(/[\\']/g, "\\$&");
}
