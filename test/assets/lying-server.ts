/** Answers of servers that break off, lie, redirect or send something else. Each is for `startFileServer`. */

import type { Answer } from "./file-server.ts";

/** Announces more bytes than the file has, and closes after those. */
export const announcesMore =
  (content: Buffer): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-length": content.length + 10, etag: '"1"' });
    response.write(content, () => response.socket?.end());
  };

/** Announces and sends only the beginning, as if it were all. */
export const announcesLess =
  (content: Buffer, bytes: number): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-length": bytes, etag: '"1"' }).end(content.subarray(0, bytes));
  };

/** Ignores `Range`. */
export const ignoresRanges =
  (content: Buffer): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-length": content.length, etag: '"1"' }).end(content);
  };

/** Sends a part that begins elsewhere than the client asked for. */
export const sendsOtherPart =
  (content: Buffer): Answer =>
  (_request, response) => {
    const range = { "content-range": `bytes 5-${content.length - 1}/${content.length}` };
    response.writeHead(206, { "content-length": content.length - 5, ...range }).end(content.subarray(5));
  };

/** Sends the part that the client asked for, but of another file, whatever `If-Range` says. */
export const sendsPartOfOther =
  (other: Buffer, etag: string): Answer =>
  ({ headers }, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
    const range = { "content-range": `bytes ${start}-${other.length - 1}/${other.length}` };
    response.writeHead(206, { "content-length": other.length - start, etag, ...range }).end(other.subarray(start));
  };

/** Has no bytes after those that the client has. */
export const hasNoMore: Answer = (_request, response) => {
  response.writeHead(416, { "content-range": "bytes */5" }).end();
};

/** A list of the files of a directory, as a web server shows it. */
export const listing: Answer = (_request, response) => {
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end("<h1>Index of /</h1>\n");
};

/** Says that it has all, gives so many bytes, and falls silent. */
export const silentAfter =
  (content: Buffer, bytes: number): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-length": content.length, etag: '"1"' }).write(content.subarray(0, bytes));
  };

/** Never answers. */
export const silent: Answer = () => {};
