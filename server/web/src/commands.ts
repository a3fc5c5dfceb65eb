// The commands of the composer: those of the terminal chat that make sense on a page.
import { get, path, post, put, type Rows } from "./api"
import { copyMarkdown, done, fork } from "./actions"
import { go, say } from "./ui"

/** Within is what a command may use of the composer. */
export type Within = {
  id?: string
  resume: (again: boolean) => void
  attach: () => void
  setModel: (name: string) => void
  setThinking: (level: string) => void
  setTools: (on: boolean) => void
  allow: (rules: string[]) => void
}

export type Command = { name: string, takes?: string, does: string, begun?: boolean, run: (w: Within, argument: string) => unknown }

const needs = (argument: string, what: string) => { if (!argument) throw new Error(what); return argument }
const lastOf = async (id: string) => (await get<Rows>(path`/web/rows/${id}`, { from: -1, count: 1 })).rows[0].entry.id

/** Those with begun need a conversation in which something was said. */
export const commands: Command[] = [
  { name: "new", does: "begin another conversation", run: () => go("/new") },
  { name: "resume", does: "finish what was interrupted", begun: true, run: (w) => w.resume(false) },
  { name: "retry", does: "answer the last message again, on a branch", begun: true, run: (w) => w.resume(true) },
  { name: "model", takes: "PROVIDER/MODEL", does: "change who answers", run: (w, a) => w.setModel(needs(a, "Which model? Type it as provider/model, or choose one below.")) },
  { name: "thinking", takes: "LEVEL", does: "change how much the model thinks", run: (w, a) => w.setThinking(a) },
  { name: "tools", takes: "on|off", does: "let the model work on the machine of the server, or not", run: (w, a) => w.setTools(a !== "off" && a !== "none") },
  { name: "approve", takes: "RULE", does: "allow calls without asking", begun: true, run: (w, a) => { w.allow([needs(a, "Which rule? For example bash(go test:*)")]); say(`${a} is allowed from the next message on`) } },
  { name: "compact", takes: "WHAT MATTERS", does: "replace the beginning with a summary", begun: true, run: async (w, a) => {
    say("writing a summary…")
    const r = await post<{ entry?: string }>(path`/v1/sessions/${w.id!}/compact`, { auto: a ? { instructions: a } : {} })
    done("compacted", r.entry ? () => post(path`/v1/sessions/${w.id!}/revert`, { entry: r.entry }) : undefined)
  } },
  { name: "undo", does: "take back the last compaction", begun: true, run: async (w) => { await post(path`/v1/sessions/${w.id!}/revert`, {}); done("the compaction is taken back; the model is sent everything again") } },
  { name: "branch", takes: "ENTRY", does: "go back to an entry and continue from there", begun: true, run: async (w, a) => { await post(path`/v1/sessions/${w.id!}/branch`, { entry: needs(a, "To which entry? The tree shows them: /tree") }); done("the next message follows " + a) } },
  { name: "fork", takes: "ENTRY", does: "copy the conversation, and continue in the copy", begun: true, run: (w, a) => fork(w.id!, a || undefined) },
  { name: "label", takes: "NAME", does: "name the last entry", begun: true, run: async (w, a) => {
    const entry = await lastOf(w.id!), as = (label: string) => put(path`/v1/sessions/${w.id!}/entries/${entry}/label`, { label })
    await as(needs(a, "Which name?"))
    done(`labelled “${a}”`, () => as(""))
  } },
  { name: "attach", does: "send images and files with the message", run: (w) => w.attach() },
  { name: "context", does: "show what the model is sent", begun: true, run: (w) => go(path`/s/${w.id!}/context`) },
  { name: "tree", does: "show this conversation with its branches", begun: true, run: (w) => go(path`/s/${w.id!}/tree`) },
  { name: "search", takes: "QUERY", does: "search all conversations", run: (_, a) => go("/?q=" + encodeURIComponent(a)) },
  { name: "load", takes: "ID", does: "continue another conversation", run: (_, a) => go(path`/s/${needs(a, "Which conversation? Give its id, or choose it in the list.")}`) },
  { name: "list", does: "go to the list of conversations", run: () => go("/") },
  { name: "copy", does: "copy the conversation as Markdown", begun: true, run: (w) => copyMarkdown(w.id!) },
  { name: "export", does: "save the conversation, or take it to another agent", begun: true, run: (w) => go(path`/s/${w.id!}/share`) },
]

/** commandIn is the command that a text is, if it is one: a beginning of a name is enough. A space
 * before the slash makes it a message. */
export function commandIn(text: string, id?: string): { found: Command[], name: string, argument: string } | undefined {
  const m = /^\/(\w*)(?:\s+([^]*))?$/.exec(text)
  if (!m) return undefined
  const all = commands.filter((c) => !c.begun || id), exact = all.find((c) => c.name === m[1])
  return { found: exact && m[2] !== undefined ? [exact] : exact ? [exact, ...all.filter((c) => c !== exact && c.name.startsWith(m[1]))] : all.filter((c) => c.name.startsWith(m[1])), name: m[1], argument: (m[2] ?? "").trim() }
}
