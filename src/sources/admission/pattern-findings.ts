/** What davit says of a text that does not fit a pattern of the CRDs. */

import type { FindingCode } from "../../model/objects/findings.ts";

interface PatternFinding {
  readonly code: FindingCode;
  readonly text: string;
}

const bothEnds = "with a letter or digit at both ends";

/** The finding for each pattern of the CRDs. A test compares this table with the CRD files. */
export const patternFindings: Readonly<Record<string, PatternFinding>> = {
  "^[^\\x00-\\x1f\\x7f]+$": {
    code: "control-character",
    text: "has a control character, such as a line break: remove it",
  },
  "^[^\\x00-\\x08\\x0b-\\x1f\\x7f]+$": {
    code: "control-character",
    text: "has a control character other than line feed and tab, such as the carriage return of a Windows line end",
  },
  "^#!ipxe(\\n[^\\x00-\\x08\\x0b-\\x1f\\x7f]*)?$": {
    code: "invalid-script",
    text: "is no script: begin it with the line #!ipxe, and write no control character other than line feed and tab",
  },
  "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": {
    code: "invalid-name",
    text: `is no name of an object: write lower-case letters, digits, hyphens and dots, ${bothEnds}`,
  },
  "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": {
    code: "invalid-name",
    text: `is no namespace: write lower-case letters, digits and hyphens, ${bothEnds}`,
  },
  "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$": {
    code: "invalid-name",
    text: `is no name of a part: write lower-case letters, digits, hyphens and dots, ${bothEnds}`,
  },
  "^[-._a-zA-Z0-9]+$": {
    code: "invalid-key",
    text: "is no key: write letters, digits, hyphens, underscores and dots",
  },
  "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$": {
    code: "invalid-name",
    text: `is no name of a label: write letters, digits, hyphens, underscores and dots, ${bothEnds}`,
  },
  "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$": {
    code: "broken-rule",
    text: 'is no UUID: write one such as "4c4c4544-0042-3510-8052-b4c04f4e4a32"',
  },
  [[
    "^([0-9A-Fa-f]{2}((:[0-9A-Fa-f]{2}){5}|(:[0-9A-Fa-f]{2}){7}|(:[0-9A-Fa-f]{2}){19}",
    "|(-[0-9A-Fa-f]{2}){5}|(-[0-9A-Fa-f]{2}){7}|(-[0-9A-Fa-f]{2}){19})",
    "|[0-9A-Fa-f]{4}(([.][0-9A-Fa-f]{4}){2}|([.][0-9A-Fa-f]{4}){3}|([.][0-9A-Fa-f]{4}){9})",
    "|[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16})$",
  ].join("")]: { code: "broken-rule", text: 'is no MAC address: write one such as "52:54:00:a1:9c:ae"' },
  "^(24h(0m0s)?|([1-9]|1[0-9]|2[0-3])h([1-5]?[0-9]m(0s)?)?|([1-9][0-9]{0,2}|1[0-3][0-9]{2}|14[0-3][0-9]|1440)m(0s)?)$":
    { code: "broken-rule", text: "is no duration of 1m to 24h: write hours and minutes, such as 2h, 90m or 1h30m" },
  "^([1-9][0-9]{0,3}h([1-5]?[0-9]m(0s)?)?|[1-9][0-9]{0,4}m(0s)?)$": {
    code: "broken-rule",
    text: "is no duration of 1m to 9999h59m: write hours and minutes, such as 720h or 90m",
  },
  "^[0-9a-f]{8}$": {
    code: "broken-rule",
    text: "is no id of a ledger: write 8 hexadecimal digits in quotes, as the condition Permitted shows them",
  },
  [[
    "^20[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)",
    "|02-(0[1-9]|1[0-9]|2[0-9]))",
    "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$",
  ].join("")]: { code: "broken-rule", text: 'is no time of RFC 3339: write one such as "2026-12-01T18:00:00Z"' },
};
