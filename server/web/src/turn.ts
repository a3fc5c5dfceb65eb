// A turn as a value: what has been said and is not yet among the rows of the conversation. Events
// of the server change it; nothing here fetches or draws.

export type Call = { id: string, name: string, input: unknown, reason?: string }
export type Edit = { path: string, to?: string }
export type Question = { dir: string, rules?: string[], no_rules?: string, edits?: Edit[] }
export type Facts = { provider: string, model: string, was?: string, dir?: string, tools?: string[], warnings?: string[] }
export type Asked = { call: Call, question: Question }

export type Event = {
  type: string, number: number, session: string, text?: string, missed?: number
  entry?: { id: string, message?: { role: string } }
  update?: { type: string, text?: string, call?: Call }
  call?: Call, question?: Question, facts?: Facts, notice?: { text?: string }
  error?: { message: string } | string, retry?: { wait?: number, reason?: string }
}

/** Answer is a message that arrives. It has an entry when it is in the log. */
export type Answer = { thinking: string, text: string, call?: string, entry?: string }

export type Turn = {
  on: boolean
  session?: string
  said?: { text: string, files: number, entry?: string } // one's own message
  answer?: Answer
  logged: string[] // the messages of the turn that are in the log
  running: { call: Call, text: string }[]
  asks: Asked[]
  queued: string[] // entries that the model has not heard
  facts?: Facts
  doing?: string // what takes long besides
  problem?: string
  newest: number // the number of the last event
}

export const idle: Turn = { on: false, logged: [], running: [], asks: [], queued: [], newest: 0 }

/** begun is a turn that was asked for just now. */
export const begun = (text: string, files: number, session?: string): Turn => ({ ...idle, on: true, session, said: text || files ? { text, files } : undefined })

/** ended is what is left of a turn when it has ended. */
export const ended = (t: Turn, problem?: string): Turn => ({ ...t, on: false, running: [], asks: [], queued: [], doing: undefined, problem: problem ?? t.problem })

const without = <T extends { call: Call }>(all: T[], call?: Call) => all.filter((one) => one.call.id !== call?.id)

const wordsOf = (e: Event["error"]) => typeof e === "string" ? e : e?.message ?? "something failed"

/** heard is a turn after an event. One that is older than the last changes nothing. */
export function heard(t: Turn, e: Event): Turn {
  if (e.number <= t.newest) return t
  const now = { ...changedBy(t, e), newest: e.number }
  return e.session && !now.session ? { ...now, session: e.session } : now
}

function changedBy(t: Turn, e: Event): Turn {
  switch (e.type) {
    case "turn_start": return { ...t, on: true, facts: e.facts, doing: undefined, problem: undefined, session: e.session || t.session }
    case "message_start": return { ...t, answer: { thinking: "", text: "" }, doing: undefined }
    case "message_update": return { ...t, answer: grown(t.answer, e.update!) }
    case "message_dropped": return { ...t, answer: undefined }
    case "message_end": return logged(t, e.entry!)
    case "queued": return { ...t, queued: [...t.queued, e.entry!.id] }
    case "tool_waiting": return { ...t, asks: [...without(t.asks, e.call), { call: e.call!, question: e.question! }] }
    case "tool_start": return { ...t, asks: without(t.asks, e.call), running: [...without(t.running, e.call), { call: e.call!, text: "" }] }
    case "tool_update": return { ...t, running: t.running.map((r) => r.call.id === e.call!.id ? { ...r, text: e.text ?? "" } : r) }
    case "tool_end": return { ...t, asks: without(t.asks, e.call), running: without(t.running, e.call) }
    case "compaction_start": return { ...t, doing: "writing a summary" }
    case "compaction_end": return { ...t, doing: undefined }
    case "retry": return { ...t, doing: "trying again" }
    case "error": return { ...t, problem: wordsOf(e.error) }
    case "turn_end": return ended(t, e.error ? wordsOf(e.error) : undefined)
  }
  return t
}

function grown(a: Answer | undefined, u: NonNullable<Event["update"]>): Answer {
  const was = a ?? { thinking: "", text: "" }
  switch (u.type) {
    case "text": return { ...was, text: was.text + (u.text ?? "") }
    case "thinking": return { ...was, thinking: was.thinking + (u.text ?? "") }
    case "call_start": return { ...was, call: u.call?.name }
  }
  return was
}

/** logged is a turn when a message of it is in the log: then it will be among the rows. */
function logged(was: Turn, { id, message }: NonNullable<Event["entry"]>): Turn {
  const t = { ...was, logged: [...was.logged, id] }
  switch (message?.role) {
    case "user": return { ...t, queued: [], said: t.said && !t.said.entry ? { ...t.said, entry: id } : t.said }
    case "assistant": return { ...t, answer: t.answer && { ...t.answer, entry: id } }
  }
  return t
}

/** unshown is a turn without what is among the rows already. */
export function unshown(t: Turn, isShown: (entry: string) => boolean): Turn {
  const said = t.said?.entry && isShown(t.said.entry) ? undefined : t.said
  const answer = t.answer?.entry && isShown(t.answer.entry) ? undefined : t.answer
  return said === t.said && answer === t.answer ? t : { ...t, said, answer }
}

/** isAhead is whether a row of an answer came before the event that says so: until then the answer is
 * shown as one that arrives. ids are those of all rows. */
export function isAhead(t: Turn, ids: string[], i: number): boolean {
  if (!t.answer || t.answer.entry || t.logged.includes(ids[i])) return false
  return ids.slice(0, i).some((id) => t.logged.includes(id)) && !ids.slice(i + 1).some((id) => t.logged.includes(id))
}
