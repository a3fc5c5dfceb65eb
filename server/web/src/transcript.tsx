// A conversation, of which only what is near the view is in the document, however long it is.
// Which rows there are is said by window.ts, rows.ts fetches them, and hold.ts keeps the view still.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { get, path, type Row } from "./api"
import { complain, copy, counted, Failed, go, linkTo, say, useKeys } from "./ui"
import { fork } from "./actions"
import { Entry } from "./entry"
import { Finder, useHighlights } from "./find"
import { useHold } from "./hold"
import { type To, useRows } from "./rows"
import { endOf, has, shownNear, stepped } from "./window"

type Props = { id: string, entry?: string, leaf?: string, query?: string, foot?: preact.ComponentChildren }

export function Transcript({ id, entry, leaf, query, foot }: Props) {
  const box = useRef<HTMLDivElement>(null), inner = useRef<HTMLDivElement>(null)
  const [cur, now, setCur] = useCursor()
  const [fresh, setFresh] = useState(0)
  const [text, setText] = useState<string | undefined>(query), toType = useRef(false)

  const hold = useHold(box, inner, () => rows.now())
  const rows = useRows(id, entry, leaf, {
    arrived: (w, i, to) => { hold.begin(i, to === "end"); setCur(shownNear(w.rows, i)) },
    note: () => hold.note(),
    appended: (w, news, follows) => {
      if (follows) setCur(shownNear(w.rows, w.total - 1))
      else if (news > 0) setFresh((n) => n + news)
    },
  })
  const { win } = rows
  const seek = useSeek(id, rows, now, (i) => goTo(i))
  const est = win ? Math.min(60, 8_000_000 / Math.max(win.total, 1)) : 60 // the height of a row that is not there

  /** show shows what is elsewhere. The next key goes from there, even before it has come. */
  const show = (to: To) => {
    if (to === "end") now.current = (rows.now()?.total ?? 1) - 1
    else if ("i" in to) now.current = to.i
    return rows.show(to)
  }

  const goTo = async (i: number) => {
    const w = rows.now()
    if (!w) return
    if (!has(w, i)) { await show({ i }); return }
    rows.stay()
    setCur(shownNear(w.rows, i))
    inner.current?.querySelector(`article[data-i="${now.current}"]`)?.scrollIntoView({ block: "nearest" })
    hold.note()
  }

  const look = () => {
    const b = box.current, w = rows.now(), n = inner.current
    if (!b || !w || !n || rows.isBusy()) return
    const view = b.getBoundingClientRect(), there = n.getBoundingClientRect()
    if (there.top > view.bottom || there.bottom < view.top) { // the scroll bar was dragged to where there is nothing yet
      const i = Math.min(w.total - 1, Math.floor((b.scrollTop / Math.max(1, b.scrollHeight - b.clientHeight)) * w.total))
      void show({ i }).then(look)
      return
    }
    const follows = hold.note()
    if (there.top > view.top - view.height) void rows.more(false)
    else if (there.bottom < view.bottom + view.height) void rows.more(true)
    if (follows) setFresh(0)
  }

  useLayoutEffect(hold.put, [win])
  useEffect(() => { // images come later, people unfold what is folded, and the composer grows
    const seen = new ResizeObserver(() => { hold.put(); look() })
    if (inner.current) seen.observe(inner.current)
    if (box.current) seen.observe(box.current)
    return () => seen.disconnect()
  }, [!!win])

  const step = (by: 1 | -1) => {
    const w = rows.now(), to = w && stepped(w, now.current, by)
    if (to !== undefined) void goTo(to)
  }
  const page = (by: number) => {
    const b = box.current!, w = rows.now()
    b.scrollTop += by * (b.clientHeight - 60)
    hold.note()
    if (w && hold.top() !== undefined) setCur(shownNear(w.rows, hold.top()!))
  }
  const current = win?.rows[cur - win.from]
  useKeys({
    ...keysOfKinds((back, kind) => void seek(back, { kind })), ...useFolds(inner, cur),
    j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1), PageDown: () => page(1), PageUp: () => page(-1),
    g: () => void show({ i: 0 }), Home: () => void show({ i: 0 }), G: () => void show("end"), End: () => void show("end"),
    "]": () => { if (current?.others?.length) go(path`/s/${id}/e/${current.others[0].entry}`); else void seek(false, { kind: "branch" }) },
    "[": () => void seek(true, { kind: "branch" }),
    "/": () => { toType.current = true; setText((f) => f ?? ""); document.getElementById("find")?.focus() },
    n: () => text && void seek(false, { text }), N: () => text && void seek(true, { text }),
    y: () => current && void copy(linkTo(path`/s/${id}/e/${current.entry.id}`), "a link to this entry"),
    t: () => go(path`/s/${id}/tree` + (current ? path`?at=${current.entry.id}` : "")), x: () => go(path`/s/${id}/context` + (current ? path`?leaf=${current.entry.id}` : "")),
    f: () => current && void fork(id, current.entry.id),
    ...(text !== undefined ? { Escape: () => setText(undefined) } : {}),
  })
  useHighlights(inner, text, win)

  let last: Row | undefined
  return <div class="transcript">
    {text !== undefined && <Finder text={text} onText={setText} onSeek={(back) => void seek(back, { text })} focus={toType.current} />}
    <Failed error={rows.error} />
    <div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label="Messages">
      <div style={{ height: `${(win?.from ?? 0) * est}px` }} />
      <div class="rows" ref={inner} role="feed" aria-label="Entries" aria-busy={!win}>{win?.rows.map((row) => {
        if (!row.html && !row.others && !row.label) return null
        const follows = last?.kind === "assistant" && row.kind === "assistant" && !row.label
        last = row
        return <Entry key={row.entry.id} row={row} session={id} here={row.index === cur} follows={follows} leaf={rows.leaf()} total={win.total} onHere={setCur} />
      })}</div>
      <div style={{ height: `${win ? (win.total - endOf(win)) * est : 0}px` }} />
    </div>
    {win && <div class="place"><span role="status">{win.total ? `${((cur < 0 ? 0 : cur) + 1).toLocaleString("en")} of ${win.total.toLocaleString("en")}` : "Nothing was said yet."}</span>
      {fresh > 0 && <button class="main" onClick={() => { setFresh(0); void show("end") }}>{counted(fresh, "new entry", "new entries")} ↓</button>}</div>}
    {foot}
  </div>
}

/** useCursor is the row that keys act on: as it is drawn, and as it is already, because keys come
 * faster than drawings. */
function useCursor(): [number, { current: number }, (i: number) => void] {
  const [cur, draw] = useState(-1), now = useRef(-1)
  return [cur, now, useCallback((i: number) => { now.current = i; draw(i) }, [])]
}

/** useSeek goes to the next row that has a text or is of a kind. */
function useSeek(id: string, rows: { leaf: () => string }, now: { current: number }, goTo: (i: number) => Promise<void>) {
  const under = useRef<AbortController>(undefined)
  return async (back: boolean, q: { kind?: string, text?: string }) => {
    under.current?.abort()
    const stop = under.current = new AbortController()
    const none = () => say(`there is no ${back ? "earlier" : "later"} ${q.kind ?? `“${q.text}”`}`)
    if (back && now.current <= 0) { none(); return }
    try {
      const r = await get<{ found: boolean, index: number }>(path`/v1/sessions/${id}/seek`, { leaf: rows.leaf(), from: now.current + (back ? -1 : 1), back, ...q }, stop.signal)
      if (r.found) await goTo(r.index)
      else none()
    } catch (e) {
      if (!stop.signal.aborted) complain(e as Error)
    }
  }
}

const kinds = { p: "prompt", e: "error", d: "edit", m: "compaction" }

/** keysOfKinds go to the next row of a kind, and with Shift to the one before. */
const keysOfKinds = (seek: (back: boolean, kind: string) => void) =>
  Object.fromEntries(Object.entries(kinds).flatMap(([k, kind]) => [[k, () => seek(false, kind)], [k.toUpperCase(), () => seek(true, kind)]]))

/** useFolds unfold and fold: what is in the current row, all calls of tools, all thinking. */
function useFolds(inner: { current: HTMLElement | null }, cur: number) {
  const tools = useRef(false)
  const all = (what: string) => [...(inner.current?.querySelectorAll<HTMLDetailsElement>(what) ?? [])]
  const turn = (details: HTMLDetailsElement[], open = !details[0]?.open) => details.forEach((d) => { d.open = open })
  return {
    " ": () => turn(all(`article[data-i="${cur}"] details`)),
    z: () => { tools.current = !tools.current; turn(all("details.tool"), tools.current) },
    Z: () => turn(all("details.thinking")),
  }
}
