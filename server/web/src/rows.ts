// Fetching the rows of a conversation: those around a place, those next to them, and new ones.
import { useEffect, useRef, useState } from "preact/hooks"
import { get, path, type Rows } from "./api"
import { caughtUp, chunk, endOf, grown, hasEnd, indexOf, missing, type Window, windowOf } from "./window"
import { useLive } from "./live"
import { complain } from "./ui"

const rowText = 16 << 10 // how much text a row has until one asks for all of it
const above = 20 // rows before the one that is asked for

/** To is a place: an entry, a row, or the end. */
export type To = { at: string } | { i: number } | "end"

type Hooks = {
  /** arrived is called before the rows around a place are shown, with the row of it. */
  arrived: (w: Window, i: number, to: To) => void
  /** note is called before rows come or go elsewhere. It says whether one looks at the end, and
   * wants to see what comes. */
  note: () => boolean
  /** appended is called when there is something new at the end, with what is shown now. */
  appended: (w: Window, news: number, follows: boolean) => void
}

type Fetching = {
  win?: Window // what is shown, for those that began before it was
  leaf: string // of the branch that is shown; "" is the one that grows
  busy: boolean // something is on its way; only show may overtake it
  turn: number // counts what was asked for by show: only the latest answer is wanted
  stop: AbortController // ends with the conversation
}

/** useRows keeps a window of the rows of a conversation. */
export function useRows(id: string, entry: string | undefined, leaf: string | undefined, hooks: Hooks) {
  const [win, setWin] = useState<Window>()
  const [error, fail] = useState<Error>()
  const st = useRef<Fetching>({ leaf: leaf ?? "", busy: false, turn: 0, stop: new AbortController() }).current
  st.win = win

  const ask = (q: { from?: number, count?: number, at?: string, limit?: number, leaf?: string }) =>
    get<Rows>(path`/web/rows/${id}`, { count: chunk, limit: rowText, leaf: st.leaf, ...q }, st.stop.signal)

  /** around fetches the rows around a place, and finds the row of it. */
  const around = async (to: To): Promise<[Rows, number]> => {
    if (to === "end") {
      const r = await ask({ from: -chunk, count: 2 * chunk })
      return [r, r.total - 1]
    }
    if ("i" in to) return [await ask({ from: Math.max(0, to.i - above), count: 2 * chunk }), to.i]
    const r = await ask({ at: to.at, from: -above, count: 2 * chunk })
    // On the way to the leaf that grows, what is appended is shown, too.
    const live = await ask({ from: 0, count: 1, limit: 1, leaf: "" })
    st.leaf = live.leaf === r.leaf ? "" : r.leaf
    return [r, indexOf(r, to.at)]
  }

  const show = async (to: To) => {
    const turn = ++st.turn, { stop } = st
    st.busy = true
    try {
      const [r, i] = await around(to)
      if (turn !== st.turn) return
      const w = windowOf(r)
      hooks.arrived(w, i, to)
      setWin(w)
      fail(undefined)
    } catch (e) {
      if (!stop.signal.aborted) fail(e as Error)
    } finally {
      if (turn === st.turn) st.busy = false
    }
  }

  /** more adds rows at one end, unless something is on its way. */
  const more = async (down: boolean) => {
    const w = st.win, wanted = w && missing(w, down)
    if (!wanted || st.busy) return
    const { turn, stop } = st
    st.busy = true
    try {
      const r = await ask(wanted)
      if (st.win === w) {
        hooks.note()
        setWin(grown(w, r, down))
      }
    } catch (e) {
      if (!stop.signal.aborted) complain(e as Error)
    }
    if (turn === st.turn) st.busy = false // else show is on its way
  }

  /** stay drops what show has asked for. */
  const stay = () => { st.turn++; st.busy = false }

  useEffect(() => {
    st.stop = new AbortController()
    st.leaf = leaf ?? ""
    void show(entry ? { at: entry } : "end")
    return () => st.stop.abort()
  }, [id, entry, leaf])

  const again = useLive(win?.name ?? id, !leaf && !st.leaf, async () => {
    const w = st.win
    if (!w) return
    while (st.busy) await new Promise((r) => setTimeout(r, 50))
    if (st.win !== w) { again(); return }
    const r = await ask({ from: hasEnd(w) ? Math.max(0, endOf(w) - 1) : w.total, count: chunk })
    if (st.win !== w) return
    const follows = hooks.note(), next = caughtUp(w, r, follows)
    if (!next) { void show("end"); return }
    setWin(next)
    hooks.appended(next, r.total - w.total, follows)
  })

  return { win, error, show, more, stay, now: () => st.win, isBusy: () => st.busy, leaf: () => st.leaf }
}
