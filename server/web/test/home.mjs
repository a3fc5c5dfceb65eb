// A home with a demo, a conversation of 100,000 entries and one that attacks its reader, and a
// server for it.
import { execFileSync, spawn } from "node:child_process"
import { createServer, request } from "node:http"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const coppice = process.env.COPPICE ?? "coppice"

const line = (o) => JSON.stringify(o) + "\n"
const header = (id) => line({ type: "session", id, version: 1, timestamp: "2026-10-01T00:00:00.000Z", cwd: "/home/ada/" + id })
const message = (id, parent, i, role, content) =>
  line({ type: "message", id, parent_id: parent, timestamp: new Date(Date.UTC(2026, 9, 1) + i * 1000).toISOString(), message: { role, content } })
const text = (content) => ({ type: "text", text: { content } })

function long(n) {
  const out = [header("long")]
  for (let i = 0; i < n; i++) {
    const content = [
      text(`Question ${i}: what about *this*?`),
      { type: "tool_use", tool_use: { id: "call" + i, name: "bash", input: { command: `echo ${i}` } } },
      { type: "tool_result", tool_result: { tool_use_id: "call" + (i - 1), is_error: i % 1000 === 2, content: `line ${i}\n`.repeat(5) } },
      text(`Answer ${i}.\n\n${"Some words that fill a line or two. ".repeat(1 + i % 9)}\n\n\`\`\`go\nfunc f() int { return ${i} }\n\`\`\`\n`),
    ][i % 4]
    out.push(message("long-" + i, i ? "long-" + (i - 1) : null, i, ["user", "assistant", "tool", "assistant"][i % 4], [content]))
  }
  return out.join("")
}

/** bushy has n branches, each of which begins at the one before. */
function bushy(n) {
  const out = [header("bushy"), message("bushy-0", null, 0, "user", [text("The trunk")])]
  for (let i = 1; i <= n; i++) out.push(message(`bushy-${i}`, `bushy-${i - 1}`, i, "user", [text(`Trunk ${i}`)]), message(`side-${i}`, `bushy-${i - 1}`, i, "assistant", [text(`Side ${i}`)]))
  return out.join("")
}

// Texts that run a script, or fetch something, where a page is careless: after the lists of OWASP
// and html5sec.
export const attacks = [
  "<script>window.hit=1</script>", "<img src=x onerror=window.hit=2>", "<svg onload=window.hit=3>", "<svg><animate onbegin=window.hit=4 attributeName=x dur=1s>",
  "[x](javascript:window.hit=5)", "[x](JaVaScRiPt&colon;window.hit=6)", "![x](https://example.org/spy.png)", "<iframe srcdoc='<script>parent.hit=7</script>'>",
  "<a href='javascript:window.hit=8'>x</a>", "\"><img src=x onerror=window.hit=9>", "'-window.hit=10-'", "</textarea><script>window.hit=11</script>", "</details></div></article><script>window.hit=12</script>",
  "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=13>", "<noscript><p title=\"</noscript><img src=x onerror=window.hit=14>\">", "<style>*{display:none!important}</style>", "<link rel=stylesheet href=https://example.org/x.css>",
  "<base href=https://example.org/>", "<meta http-equiv=refresh content='0;url=https://example.org/'>", "<form action=https://example.org/><input name=x><button>x</button></form>", "<object data=https://example.org/x>", "<embed src=https://example.org/x>",
  "```html\n<script>window.hit=15</script>\n```", "`<img src=x onerror=window.hit=16>`", "|a|\n|-|\n|<img src=x onerror=window.hit=17>|", "<https://example.org/\"onmouseover=window.hit=18>", "[x](data:text/html,<script>window.hit=19</script>)", "\u202e<script>window.hit=20</script>", "{{constructor.constructor('window.hit=21')()}}", "${window.hit=22}",
]

function hostile() {
  const out = [header("hostile")]
  let i = 0, parent = null
  const add = (role, content) => { const id = "hostile-" + i; out.push(message(id, parent, i++, role, content)); parent = id }
  for (const attack of attacks) {
    add("user", [text(attack)])
    add("assistant", [text(attack), { type: "thinking", thinking: { content: attack } }, { type: "tool_use", tool_use: { id: "c" + i, name: attack.slice(0, 60), input: { command: attack, path: attack } } }])
    add("tool", [{ type: "tool_result", tool_result: { tool_use_id: "c" + (i - 1), content: attack } }])
  }
  out.push(line({ type: "label", id: "hostile-label", parent_id: parent, timestamp: "2026-10-01T01:00:00.000Z", label: { target_id: "hostile-0", label: attacks[1] } }))
  return out.join("")
}

// Secrets that open nothing, of the forms that real ones have.
export const secrets = ["ghp_", "glpat-"].map((form, i) => form + [..."Xq7Lm2Rt9Vz4Kp8Wn3Yc6Bf1Hd5Js0GaEuTw"].reverse().join("").slice(i, i + (i ? 20 : 36)))

/** busy is a conversation that went on for some days, with a response, an error now and then, and a compaction. */
export function busy(id, days, last) {
  const out = [header(id)], at = (d, minutes) => new Date(last - (days - d) * 864e5 + minutes * 6e4).toISOString()
  let parent = null
  const add = (d, minutes, o) => { const e = `${id}-${out.length}`; out.push(line({ id: e, parent_id: parent, timestamp: at(d, minutes), ...o })); parent = e }
  for (let d = 1; d <= days; d++) {
    add(d, 0, { type: "message", message: { role: "user", content: [text(`What about day ${d}?`)] } })
    const call = { type: "tool_use", tool_use: { id: "c" + d, name: d % 2 ? "bash" : "edit", input: { command: "make" } } }
    add(d, 1, { type: "message", message: { role: "assistant", provider: "openai", model: d % 3 ? "gpt-5" : "o3", content: [call], usage: { input: 2000, cache_read: 100 * (d % 50), output: 50 } } })
    add(d, 3, { type: "message", message: { role: "tool", content: [{ type: "tool_result", tool_result: { tool_use_id: "c" + d, is_error: d % 10 === 0, content: "out" } }] } })
    if (d === days - 5) add(d, 4, { type: "compaction", compaction: { summary: "All of that.", first_kept_entry_id: parent } })
  }
  return out.join("")
}

function leaky() {
  return header("leaky") + message("leaky-0", null, 0, "user", [text(`The token is ${secrets[0]}, and once more ${secrets[0]}.`)]) +
    message("leaky-1", "leaky-0", 1, "assistant", [text(`The other one is ${secrets[1]}.`)])
}

/** slow is what the model says if it is asked to speak slowly. */
export const slow = "## Slow words\n\nThis is **bold** and `code`. " + "Some more words of the answer. ".repeat(12) + "\n\n- one\n- two\n\nThat was all."

/** fakeModel is a model that runs a command or writes a file if it is asked to, and otherwise says
 * what it heard. */
async function fakeModel() {
  const server = createServer(async (req, res) => {
    let body = ""
    for await (const piece of req) body += piece
    const { messages } = JSON.parse(body), last = messages.at(-1)
    const said = typeof last.content === "string" ? last.content : last.content?.map((c) => c.text).join("") ?? ""
    res.writeHead(200, { "Content-Type": "text/event-stream" })
    const send = (delta, finish_reason = null) => res.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "fake", choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
    if (last.role === "user" && said.includes("please run")) {
      send({ role: "assistant", tool_calls: [{ index: 0, id: "call-" + messages.length, type: "function", function: { name: "bash", arguments: JSON.stringify({ command: "echo it-ran" }) } }] })
      send({}, "tool_calls")
    } else if (last.role === "user" && said.includes("please edit")) {
      send({ role: "assistant", tool_calls: [{ index: 0, id: "edit-" + messages.length, type: "function", function: { name: "write", arguments: JSON.stringify({ path: "greeting.txt", content: "good morning\n" }) } }] })
      send({}, "tool_calls")
    } else if (last.role === "user" && said.includes("slowly")) {
      for (const word of slow.split(/(?<= )/)) { send({ content: word }); await new Promise((r) => setTimeout(r, 40)) }
      send({}, "stop")
    } else {
      for (const word of `I heard: ${said}`.split(/(?<= )/)) send({ content: word })
      send({}, "stop")
    }
    res.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "fake", choices: [], usage: { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105, prompt_tokens_details: { cached_tokens: 40 } } })}\n\n`)
    res.end("data: [DONE]\n\n")
  })
  await new Promise((done) => server.listen(0, "127.0.0.1", done))
  return { url: `http://127.0.0.1:${server.address().port}/v1`, close: () => { server.closeAllConnections(); server.close() } }
}

/** fill makes a home with these sessions, or with those for the whole page, and a demo unless it is bare. */
function fill(dir, env, o) {
  if (o.bare) mkdirSync(join(dir, "sessions"))
  else execFileSync(coppice, ["demo"], { env })
  for (const [name, text] of Object.entries(o.files ?? { long: long(100_000), hostile: hostile(), bushy: bushy(10_000), leaky: leaky() })) writeFileSync(join(dir, "sessions", name + ".jsonl"), text)
}

export async function openHome({ empty = false, ...o } = {}) {
  const dir = mkdtempSync(join(tmpdir(), "coppice-web-"))
  const env = { ...process.env, HOME: dir, COPPICE_HOME: join(dir, "sessions"), XDG_CACHE_HOME: join(dir, "cache") }
  if (!empty) fill(dir, env, o)
  const model = await fakeModel()
  Object.assign(env, { COPPICE_PROVIDER: "openai-chat", COPPICE_MODEL: "fake", COPPICE_BASE_URL: model.url })
  const server = spawn(coppice, ["serve", "--addr", "127.0.0.1:0", "--tools"], { env, cwd: dir, stdio: ["ignore", "ignore", "pipe"] })
  let said = ""
  const [url, token] = await new Promise((done, fail) => {
    server.stderr.on("data", (d) => {
      said += d
      const m = /at (http:\S+)[^]*(cop_\w+)/.exec(said)
      if (m) done([m[1], m[2]])
    })
    server.on("exit", () => fail(new Error(said)))
  })
  const reader = execFileSync(coppice, ["token", "add", "reader"], { env, encoding: "utf8" }).match(/cop_\w+/)[0]
  const api = async (method, path, body, as = token) => {
    const r = await fetch(url + path, { method, headers: { Authorization: "Bearer " + as, "Content-Type": "application/json" }, body: body && JSON.stringify(body) })
    if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${await r.text()}`)
    return r.json()
  }
  return { url, token, reader, api, close: () => new Promise((done) => { model.close(); server.on("exit", done); server.kill() }).then(() => rmSync(dir, { recursive: true, force: true })) }
}

/** proxy has a server below a path, as one in front of it may. */
export async function proxy(url, prefix) {
  const server = createServer((req, res) => {
    if (!req.url.startsWith(prefix + "/")) { res.writeHead(404).end(); return }
    const on = request(url + req.url.slice(prefix.length), { method: req.method, headers: { ...req.headers, "x-forwarded-prefix": prefix } }, (r) => { res.writeHead(r.statusCode, r.headers); r.pipe(res) })
    on.on("error", () => res.destroy())
    res.on("close", () => on.destroy())
    req.pipe(on)
  })
  const listen = (port) => new Promise((done) => server.listen(port, "127.0.0.1", done))
  await listen(0)
  const { port } = server.address()
  return { url: `http://127.0.0.1:${port}`, close: () => { server.closeAllConnections(); server.close() }, again: () => listen(port) }
}

export const axeSource = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8")
