import { describe, expect, it } from "vitest";
import { isDataToGrub } from "../../../src/trust/sign/grub-reading.ts";
import { grubAttacks, traced } from "../../helpers/grub-attacks.ts";

/** True if a text with the request's parts between `«` and `»` is data. */
function isData(marked: string): boolean {
  let text = "";
  const ofRequest: number[] = [];
  for (const piece of marked.split(/([«»])/)) {
    if (piece === "«" || piece === "»") ofRequest.push(text.length);
    else text += piece;
  }
  return isDataToGrub(text, ofRequest);
}

describe("isDataToGrub", () => {
  it.each([
    ["a JSON value that is not first on its line", '{\n  "uuid": "«a; reboot & b = {c} #\'»",\n}'],
    ["a JSON value with its own quotes", '{\n  "query": «"a=b&c=d"»\n}'],
    ["JSON in one line, which GRUB drops", '{"«reboot»":"«x»"}\n'],
    ["a JSON value behind a name without a blank", '"a": {\n"uuid":"«reboot»"}'],
    ["a word of an argument", "hostname: «node7.example»\nserial: «VMware-56 4d»\n"],
    ["an escaped quote", '"note": "«a \\" ; reboot»"'],
    ["escapes of its own", '"note": «"a \\" ; reboot \\\\"»'],
    ["single quotes", "echo '«a; $(b) \"»'"],
    ["a comment", "# for «reboot»; x\n  # «reboot»\n"],
    ["what comes behind a syntax error", "a & «reboot; x»\n} a «reboot; x»\n"],
    ["a value of /metadata", "MAC=«52:54:00:a1:9c:ae»\nREQUEST_QUERY_X=«'it'\\''s; reboot'»\n"],
    ["the raw query of /metadata", "REQUEST_RAW_QUERY=«mac=a&reboot=b&c»\n"],
    ["a line break of the template in a quote", 'a "«x»\nb «y»"\n'],
    ["nothing", "reboot; a=b\n"],
    ["an empty text of the request", "«»reboot\n"],
  ])("%s is data", (_name, marked) => expect(isData(marked)).toBe(true));

  it.each([
    ["a command", "«reboot»\n"],
    ["a part of a command", "re«boot»\n"],
    ["a quoted command", '[\n"«reboot»"\n]'],
    ["a command behind a separator", "a; «reboot»\n"],
    ["a command in a block", 'menuentry "a" {\n  «reboot»\n}\n'],
    ["a command in a function", "function f\n{ «reboot»\n}\n"],
    ["a command behind words", "if true; then «reboot»; fi\n"],
    ["a command behind !", "! «reboot»\n"],
    ["a command behind a variable that may be empty", "$x «reboot»\n"],
    ["a command behind an empty word", '"" «reboot»\n'],
    ["a separator of its own", "a «b; reboot»\n"],
    ["a line break of its own", 'a "«b\nreboot»"\n'],
    ["a carriage return of its own", 'a "«b\r»"\n'],
    ["a quote that the template opened", 'a "«"; reboot; "»"\n'],
    ["a quote that the template closes", 'a «"» b"\n'],
    ["a quote that another value closes", 'a «"»«"; reboot; "»\n'],
    ["a backslash before the template's quote", 'a "«b\\»"; c\n'],
    ["a variable", 'a "«$b»"\n'],
    ["the name of a variable", "a $«b»\n"],
    ["a block", "menuentry «{ reboot»\n"],
    ["a comment of its own", "a «#» b\n"],
    ["an assignment", "root=«x»\n"],
    ["the name of an assignment", "«x»=root\n"],
    ["an assignment by set", 'set root="«x»"\n'],
    ["a script of eval", 'eval "«x»"\n'],
    ["an address in an assignment", "root=http:«x»\n"],
    ["the other side of a quote that an earlier line opens", "a=it's\nb '«; reboot;»'\n"],
    ["the other side of a quote behind comments", 'a "\n#"\n" b "«; reboot;»"\n'],
    ["a start of a line in a quote, which may be a start", 'a "\n«reboot»"\n'],
    ["a continued line", "a; \\\n«reboot»\n"],
  ])("%s is not", (_name, marked) => expect(isData(marked)).toBe(false));

  it("skips the carriage returns of a template", () => {
    expect(isData('{\r\n"a": "«reboot»"\r\n}\r\n')).toBe(true);
    expect(isData('[\r\n"«reboot»"\r\n]\r\n')).toBe(false);
  });

  it("reads a long text in time that grows with its length", () => {
    const line = `  - 'it''s "a" $x \\' {\n`;
    const text = `${line.repeat(20_000)}a: x`;
    expect(isDataToGrub(text, [text.length - 1, text.length])).toBe(true);
  });
});

// What machines and their firmware send, and what their Profiles make of it.
const queries = [
  "uuid=a1b2c3d4-0000-4000-8000-00000000abcd&mac=52-54-00-a1-9c-ae&domain=lab.test&hostname=node1&serial=",
  "mac=52:54:00:a1:9c:ae&uuid=a1b2c3d4-0000-4000-8000-00000000abcd&os=installed&foo=some-param&bar=b",
  "uuid=564d1f3c&mac=52-54-00-a1-9c-ae&serial=VMware-56%204d%201f&hostname=it%27s&os=installed&note=a+%22b%22;c",
];
const label = (name: string) => `{{lookup request.query "${name}"}}`;
const configs = [
  `{"uuid": "${label("uuid")}", "mac": "${label("mac")}", "rawQuery": {{json request.raw_query}} }`,
  `{\n  "uuid": "${label("uuid")}",\n  "mac": "${label("mac")}",\n  "osInstalled": {{eq (lookup request.query "os") "installed"}},\n  "rawQuery": {{json request.raw_query}}\n}\n`,
  `{\n  "rawQuery": "{{request.raw_query}}",\n  "machine": {"uuid":"${label("uuid")}","serial":{{json (lookup request.query "serial")}} }\n}\n`,
  '{"mac": {{json request.query.mac}}, "installed": {{eq (lookup request.query "os") "installed"}} }',
  `{"ignition": {"version": "3.4.0"}, "storage": {"files": [\n  {"path": "/etc/hostname", "contents": {"source": "data:,${label("hostname")}"}},\n  {"path": "/etc/query", "contents": {"source": "data:;base64,{{base64 request.raw_query}}"}}\n]}}\n`,
  `#cloud-config\n# for {{request.query.mac}}\nhostname: ${label("uuid")}\nfqdn: "${label("hostname")}"\nwrite_files:\n  - path: /etc/query\n    content: {{json request.raw_query}}\nruncmd:\n  - [curl, "http://192.0.2.1/report?{{request.raw_query}}"]\n`,
  `d-i netcfg/get_hostname string ${label("uuid")}\nd-i preseed/late_command string curl 'http://192.0.2.1/?{{macBare request.query.mac}}'\n`,
];

it("signs realistic configs", () => {
  const refused = queries.flatMap((query) =>
    configs.filter((config) => {
      const { text, ofRequest } = traced(config, query);
      return !isDataToGrub(text, ofRequest);
    }),
  );
  expect(refused).toEqual([]);
});

it("signs some of what an attacker makes, and not most", () => {
  const attacks = [...grubAttacks(1, 2_000)];
  const signed = attacks.filter(({ text, ofRequest }) => isDataToGrub(text, ofRequest));
  expect(signed.length).toBeGreaterThan(100);
  expect(signed.length).toBeLessThan(1_000);
});
