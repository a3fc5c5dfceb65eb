// Taking turns: saying something, listening to what comes of it from wherever it was said, and
// deciding about calls. A turn belongs to the server: it goes on when the page is closed, and
// any page can listen to it.
import { useEffect, useRef, useState } from "preact/hooks"
import { get, path, post, Problem, stream } from "./api"
import { changed, useLive } from "./live"
import { type Asked, begun, ended, type Event, heard, idle, type Turn, unshown } from "./turn"
import { complain, go, say } from "./ui"

/** Options say how the model answers. */
export type Options = { provider?: string, model?: string, thinking?: string, tools: boolean, allow: string[] }
export type Decision = { decision: "allow" | "deny", reason?: string } | { rules: string[] }
/** Part is something beside the text of a message: an image, or a file. */
export type Part = { type: "image" | "file" | "text", [of: string]: unknown }

/** What was begun on another view of this page, by its conversation. */
const handed = new Map<string, Turn>()
/** allowed are the rules that were given in this page, by conversation. */
const allowed = new Map<string, string[]>()

// Not the status of the conversation itself, for which all of it may have to be read.
const isRunning = (id: string) => get<{ turns: { session: string }[] }>("/v1/turns").then((r) => r.turns.some((t) => t.session === id), () => false)

const pause = (ms: number) => new Promise((r) => setTimeout(r, ms))

/** requestOf is what both a message and a resumption say about how the model answers. */
const requestOf = (o: Options, id?: string) => ({
  questions: "wait", ...(o.model ? { provider: o.provider, model: o.model } : {}), ...(o.thinking ? { thinking: o.thinking } : {}),
  ...(o.tools ? { tools: ["all"], allow: [...o.allow, ...(allowed.get(id ?? "") ?? [])] } : {}),
})

/** useTurn is the turn of a conversation, or of one that begins. */
export function useTurn(id?: string) {
  const [turn, set] = useState<Turn>(() => handed.get(id ?? "") ?? idle)
  const [known, know] = useState(!id || handed.has(id)) // whether a turn runs
  const st = useRef({ turn, stop: new AbortController() }).current
  const put = (t: Turn) => { if (t !== st.turn) { st.turn = t; set(t) } }
  const session = () => id ?? st.turn.session

  /** on takes an event. A conversation that has just begun goes on at its own address. */
  const on = (e: Event) => {
    put(heard(st.turn, e))
    if (!id && st.turn.session) {
      handed.set(st.turn.session, st.turn)
      go(path`/s/${st.turn.session}`, true)
    }
  }

  /** listen hears a stream of a turn, and says whether the turn has ended. */
  const listen = async (method: string, url: string, o: { body?: unknown, after?: string }): Promise<boolean> => {
    let over = false, failed: { message?: string, detail?: string } | undefined
    await stream(method, url, { ...o, signal: st.stop.signal }, (m) => {
      if (m.event === "message") on(m.data.event)
      if (m.event === "error") failed = m.data.error
      over ||= m.event === "error" || m.event === "result"
    })
    if (failed) put(ended(st.turn, failed.detail ?? failed.message ?? "the turn failed"))
    return over
  }

  /** watch listens until the turn has ended, also when the server is gone for a while. */
  const watch = async (of: string) => {
    for (let wait = 500; !st.stop.signal.aborted; wait = Math.min(wait * 2, 10_000)) {
      try {
        if (await listen("GET", path`/v1/sessions/${of}/turn/events`, { after: st.turn.newest ? String(st.turn.newest) : undefined })) break
      } catch (e) {
        if (e instanceof Problem) break // it knows of no turn: it ended
      }
      await pause(wait)
    }
    if (!st.stop.signal.aborted) over()
  }

  /** over is called at the end of a turn: what was said arrives among the rows now. */
  const over = () => {
    put(ended(st.turn))
    handed.delete(session() ?? "")
    changed()
    setTimeout(() => { if (!st.turn.on) put({ ...idle, facts: st.turn.facts, problem: st.turn.problem, newest: st.turn.newest }) }, 2500)
  }

  /** begin asks for a turn, and hears it to its end. It says whether the server took it. */
  const begin = async (url: string, body: object, first: Turn): Promise<boolean> => {
    put({ ...first, facts: st.turn.facts, newest: st.turn.newest })
    try {
      if (!await listen("POST", url, { body }) && !st.stop.signal.aborted) throw new Error("the connection broke")
      if (!st.stop.signal.aborted) over()
      return true
    } catch (e) {
      if (st.stop.signal.aborted) return true
      if (!(e instanceof Problem) && st.turn.newest > first.newest && session()) { void watch(session()!); return true }
      put({ ...idle, problem: (e as Error).message })
      return false
    }
  }

  const join = async () => {
    if (id && !st.turn.on && await isRunning(id) && !st.turn.on && !st.stop.signal.aborted) { put({ ...st.turn, on: true }); void watch(id) }
    if (!st.stop.signal.aborted) know(true)
  }
  useLive(id, !!id && !turn.on, join)
  useEffect(() => {
    st.stop = new AbortController()
    if (id && handed.has(id)) void watch(id)
    else void join()
    return () => st.stop.abort()
  }, [id])

  const decide = async ({ call }: Asked, d: Decision) => {
    try {
      const { waiting } = await post<{ waiting?: boolean }>(path`/v1/sessions/${session()!}/turn/approve`, { call: call.id, ...d })
      if ("rules" in d) allowed.set(session()!, [...allowed.get(session()!) ?? [], ...d.rules])
      if (waiting) say("Allowed from now on; that does not cover this call, so it still waits")
      else put({ ...st.turn, asks: st.turn.asks.filter((a) => a.call.id !== call.id) })
    } catch (e) {
      complain(e as Error)
    }
  }

  return {
    turn, known, decide,
    send: (text: string, content: Part[], o: Options) => begin("/v1/turns", { ...(id ? { session: id } : {}), text, content, ...requestOf(o, id) }, begun(text, content.length, id)),
    resume: (o: Options, again = false) => begin(path`/v1/sessions/${id!}/turn/resume`, { ...(again ? { again } : {}), ...requestOf(o, id) }, begun("", 0, id)),
    steer: (text: string, content: Part[]) => post(path`/v1/sessions/${session()!}/turn/steer`, { text, content }),
    takeBack: async () => {
      const { queued } = await post<{ queued: { content: { text?: { content: string } }[] }[] }>(path`/v1/sessions/${session()!}/turn/take_back`, {})
      put({ ...st.turn, queued: [] })
      changed()
      return queued.flatMap((q) => q.content.map((c) => c.text?.content ?? "")).filter(Boolean).join("\n\n")
    },
    cancel: () => { if (session()) post(path`/v1/sessions/${session()!}/turn/cancel`, {}).catch(complain) },
    allow: (rules: string[]) => { if (id) allowed.set(id, [...allowed.get(id) ?? [], ...rules]) },
    /** shown forgets what is among the rows by now. */
    shown: (isShown: (entry: string) => boolean) => put(unshown(st.turn, isShown)),
    forget: () => put({ ...st.turn, problem: undefined }),
  }
}

export type Turns = ReturnType<typeof useTurn>
