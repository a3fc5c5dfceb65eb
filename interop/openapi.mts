// Reads the newest session of a server with the types that openapi-typescript made of its
// document, and prints what it got.
// usage: node openapi.mts URL TOKEN
import type { paths } from "./coppice.d.ts";

declare const process: { argv: string[] };
const [url, token] = process.argv.slice(2);

type List = paths["/v1/sessions"]["get"];
type Read = paths["/v1/sessions/{session}/entries"]["get"];
type Piece = Read["responses"]["200"]["content"]["application/x-ndjson"];
type Problem = List["responses"]["4XX"]["content"]["application/problem+json"];

const ask = (path: keyof paths | string, key = token) => fetch(url + path, { headers: { Authorization: "Bearer " + key } });

const query: List["parameters"]["query"] = { limit: 1 };
const list: List["responses"]["200"]["content"]["application/json"] = await (await ask("/v1/sessions?limit=" + query.limit)).json();
const session: string = list.sessions[0].id;
const texts: string[] = [];
for (const line of (await (await ask(`/v1/sessions/${session}/entries`)).text()).trim().split("\n")) {
  const piece: Piece = JSON.parse(line);
  if (piece.event) texts.push(JSON.stringify(piece.event));
}
const refused: Problem = await (await ask("/v1/sessions", "wrong")).json();
console.log(JSON.stringify({ session, texts, refused: refused.kind }));
