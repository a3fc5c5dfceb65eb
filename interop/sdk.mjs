// Prints what Claude's Agent SDK lists and reads of a session.
// usage: node sdk.mjs SDK SESSION
const { listSessions, getSessionMessages, listSubagents, getSubagentMessages } = await import(process.argv[2]);
const id = process.argv[3];
const info = (await listSessions({})).find((s) => s.sessionId === id) ?? null;
const messages = await getSessionMessages(id, {});
const subs = {};
for (const agent of await listSubagents(id, {})) subs[agent] = await getSubagentMessages(id, agent, {});
console.log(JSON.stringify({ info, messages, subs }));
