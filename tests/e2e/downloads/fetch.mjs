// fetch.mjs URL: prints what Node's own fetch gets, whole, in part, and unchanged.
import { createHash } from "node:crypto";

const [url] = process.argv.slice(2);
const whole = await fetch(url);
const bytes = Buffer.from(await whole.arrayBuffer());
const etag = whole.headers.get("etag");
const part = await fetch(url, { headers: { Range: "bytes=10-19", "If-Range": etag } });
const same = await fetch(url, { headers: { "If-None-Match": etag } });
console.log(
  JSON.stringify({
    status: [whole.status, part.status, same.status],
    sha256: createHash("sha256").update(bytes).digest("hex"),
    part: Buffer.from(await part.arrayBuffer()).toString("hex"),
    disposition: whole.headers.get("content-disposition"),
  }),
);
