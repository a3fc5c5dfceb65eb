// Uses the MCP server as a program would, with the official SDK for TypeScript, and prints
// what it got.
// usage: node mcp.mjs MODULES stdio COMMAND ARGUMENT…
//        node mcp.mjs MODULES URL TOKEN
const [modules, how, ...rest] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(modules + "/@modelcontextprotocol/client/dist/index.mjs");
let transport;
if (how === "stdio") {
  const { StdioClientTransport } = await import(modules + "/@modelcontextprotocol/client/dist/stdio.mjs");
  transport = new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env });
} else {
  transport = new StreamableHTTPClientTransport(new URL(how), { requestInit: { headers: { Authorization: "Bearer " + rest[0] } } });
}
const client = new Client({ name: "interop", version: "1" });
await client.connect(transport);
const text = (r) => r.content.filter((c) => c.type === "text").map((c) => c.text).join("\n");
const { tools } = await client.listTools();
const found = await client.callTool({ name: "search", arguments: { query: "planks" } });
const { resources } = await client.listResources();
const read = await client.readResource({ uri: resources[0].uri });
const session = resources[0].uri.split("/").pop();
const image = await client.callTool({ name: "get_image", arguments: { session, image: "1" } });
const note = await client.callTool({ name: "append_note", arguments: { session, text: "noted by the TypeScript SDK" } });
const prompt = await client.getPrompt({ name: "hand_over", arguments: { session } });
const none = await client.callTool({ name: "read_session", arguments: { session: "no such session" } });
console.log(JSON.stringify({
  tools: tools.map((t) => t.name), search: text(found), read: read.contents[0].text,
  image: image.content.find((c) => c.type === "image")?.mimeType, note: note.structuredContent?.entry,
  prompt: prompt.messages[0].content.text, failed: none.isError,
}));
await client.close();
