// Following what is appended. A browser has six connections to a server for all of its tabs, so
// the views of a tab share one stream, and a tab that is hidden has none.
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { Problem, stream } from "./api"

/** Heard is told of a session to which something was appended, or of none if anything may have been missed. */
type Heard = (session?: string) => void

const listeners = new Set<Heard>()
let stop: AbortController | undefined
let last = "", begun = false

const tell = (session?: string) => listeners.forEach((f) => f(session))

// Whether the server answers: views may say so, and look again when it is back.
let gone = false
const whenGone = new Set<(gone: boolean) => void>()
const setGone = (is: boolean) => { if (is !== gone) { gone = is; whenGone.forEach((f) => f(is)) } }

/** useGone is whether the server does not answer. */
export function useGone(): boolean {
  const [is, set] = useState(gone)
  useEffect(() => { whenGone.add(set); set(gone); return () => { whenGone.delete(set) } }, [])
  return is
}

/** changed says that the page itself has changed something. */
export const changed = () => tell()

async function listen(signal: AbortSignal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, gone ? 3000 : 30_000)) {
    try {
      await stream("GET", "/v1/follow", { signal, after: last, opened: () => setGone(false) }, (m) => {
        wait = 500
        if (m.id) last = m.id
        if (m.event === "message") tell(m.data.event?.session)
        if (m.event === "reset" || (m.event === "begin" && begun)) tell()
        if (m.event === "begin") begun = true
      })
    } catch (e) {
      if ((e as { status?: number }).status === 401) return
      if (!signal.aborted && !(e instanceof Problem)) setGone(true)
    }
    if (signal.aborted) return
    if (!signal.aborted) await new Promise((r) => setTimeout(r, wait))
  }
}

function look() {
  const wanted = listeners.size > 0 && document.visibilityState === "visible"
  if (wanted && !stop) {
    stop = new AbortController()
    void listen(stop.signal)
  } else if (!wanted && stop) {
    stop.abort()
    stop = undefined
  }
}
document.addEventListener("visibilitychange", look)

/** useLive says when something was appended to a session, soon, or to any other, which may be
 * another part of the same conversation, a little later. It returns what says so again. */
export function useLive(session: string | undefined, on: boolean, changed: () => Promise<void>): () => void {
  const now = useRef(changed), timer = useRef<{ id: ReturnType<typeof setTimeout>, at: number }>(undefined)
  now.current = changed
  const after = useCallback((ms: number) => {
    const at = performance.now() + ms
    if (timer.current && timer.current.at <= at) return
    clearTimeout(timer.current?.id)
    timer.current = { at, id: setTimeout(() => { timer.current = undefined; now.current().catch(() => {}) }, ms) }
  }, [])
  useEffect(() => {
    if (!on) return
    const heard: Heard = (s) => after(s === session || s === undefined ? 80 : 1500)
    listeners.add(heard)
    look()
    return () => {
      listeners.delete(heard)
      clearTimeout(timer.current?.id)
      timer.current = undefined
      setTimeout(look) // another view may come in its place
    }
  }, [session, on])
  return useCallback(() => after(80), [])
}
