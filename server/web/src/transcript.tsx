// A conversation, of which only what is near the view is in the document, however long it is.
// Which rows there are is said by window.ts, rows.ts fetches them, and hold.ts keeps the view still.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { get, path, type Row } from "./api"
import { complain, copy, counted, Failed, go, linkTo, say, useKeys } from "./ui"
import { fork } from "./actions"
import { Arriving } from "./arriving"
import { Entry } from "./entry"
import { Finder, useHighlights } from "./find"
import { Outline } from "./outline"
import { didWords, failedIn, type Run, runsOf } from "./runs"
import { isAhead, type Turn, unshown } from "./turn"
import type { Turns } from "./turns"
import { useHold } from "./hold"
import { type To, useRows } from "./rows"
import { endOf, has, hasEnd, shownNear, stepped, type Window } from "./window"

type Props = { id: string, entry?: string, leaf?: string, query?: string, turns: Turns, foot?: preact.ComponentChildren }

export function Transcript({ id, entry, leaf, query, turns, foot }: Props) {
  const box = useRef<HTMLDivElement>(null), inner = useRef<HTMLDivElement>(null), coming = useRef<HTMLDivElement>(null)
  const [cur, now, setCur] = useCursor()
  const [fresh, setFresh] = useState(0)
  const [text, setText] = useState<string | undefined>(query), toType = useRef(false)
  const [outline, setOutline] = useState(false)
  const [tools, setTools] = useKept("tools"), [thinking, setThinking] = useKept("thinking")
  const folds = useRuns()

  const hold = useHold(box, inner, () => rows.now())
  const rows = useRows(id, entry, leaf, {
    arrived: (w, i, to) => { if (to !== "end") folds.reveal(w.rows, i); hold.begin(i, to === "end"); setCur(shownNear(w.rows, i)) },
    note: () => hold.note(),
    appended: (w, news, follows) => {
      if (follows) setCur(shownNear(w.rows, w.total - 1))
      else if (news > 0) setFresh((n) => n + news)
    },
  })
  const { win } = rows
  const isAtEnd = !!win && hasEnd(win) && !rows.leaf()
  const turn = useComing(turns, rows.now), ids = win?.rows.map((r) => r.entry.id) ?? []
  const shown = win?.rows.filter((r, i) => !(r.draft ? turn.answer || !turns.known : r.kind === "assistant" && isAhead(turn, ids, i))) ?? []
  const runs = runsOf(shown), runAt = (i: number) => runs.find((r) => r.first <= i && i <= r.last && !folds.isOpen(r))
  const isOut = (i: number) => { // it is folded away, or not wanted
    const run = runAt(i), work = win!.rows[i - win!.from]?.work
    return run && run.first !== i || work && !(work.calls ? tools : thinking)
  }
  const seek = useSeek(id, rows, now, (i) => goTo(i))
  const est = win ? Math.min(60, 8_000_000 / Math.max(win.total, 1)) : 60 // the height of a row that is not there

  /** show shows what is elsewhere. The next key goes from there, even before it has come. */
  const show = (to: To) => {
    if (to === "end") now.current = (rows.now()?.total ?? 1) - 1
    else if ("i" in to) now.current = to.i
    return rows.show(to)
  }

  const goTo = async (i: number, unfolds = true) => {
    const w = rows.now()
    if (!w) return
    if (!has(w, i)) { await show({ i }); return }
    rows.stay()
    if (unfolds && folds.reveal(w.rows, i)) await new Promise(requestAnimationFrame)
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
    if (coming.current) seen.observe(coming.current)
    return () => seen.disconnect()
  }, [!!win])

  const step = (by: 1 | -1) => {
    const w = rows.now()
    let to = w && stepped(w, now.current, by)
    while (to !== undefined && has(w!, to) && isOut(to)) to = stepped(w!, to, by)
    if (to !== undefined) void goTo(to, false)
  }
  const page = (by: number) => {
    const b = box.current!, w = rows.now()
    b.scrollTop += by * (b.clientHeight - 60)
    hold.note()
    if (w && hold.top() !== undefined) setCur(shownNear(w.rows, hold.top()!))
  }
  const find = () => { toType.current = true; setText((f) => f ?? ""); document.getElementById("find")?.focus() }
  useEffect(() => { // who says something wants to see what comes of it
    if (!turn.said || turn.said.entry) return
    if (isAtEnd) hold.end()
    else void show("end")
  }, [turn.said])
  const current = win?.rows[cur - win.from]
  useKeys({
    ...keysOfKinds((back, kind) => void seek(back, { kind })), ...useFolds(inner, cur, folds.turnAll, () => { const run = runAt(cur); if (run) folds.turn(run); return !!run }),
    j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1), PageDown: () => page(1), PageUp: () => page(-1),
    g: () => void show({ i: 0 }), Home: () => void show({ i: 0 }), G: () => void show("end"), End: () => void show("end"),
    "]": () => { if (current?.others?.length) go(path`/s/${id}/e/${current.others[0].entry}`); else void seek(false, { kind: "branch" }) },
    "[": () => void seek(true, { kind: "branch" }),
    "/": find, l: () => setOutline((on) => !on),
    n: () => text && void seek(false, { text }), N: () => text && void seek(true, { text }),
    y: () => current && void copy(linkTo(path`/s/${id}/e/${current.entry.id}`), "a link to this entry"),
    t: () => go(path`/s/${id}/tree` + (current ? path`?at=${current.entry.id}` : "")), x: () => go(path`/s/${id}/context` + (current ? path`?leaf=${current.entry.id}` : "")),
    f: () => current && void fork(id, current.entry.id),
    ...(text !== undefined ? { Escape: () => setText(undefined) } : {}),
  })
  useHighlights(inner, text, win)

  const one = (row: Row, before?: Row) => <Entry key={row.entry.id} row={row} session={id} here={row.index === cur} follows={before?.kind === "assistant" && row.kind === "assistant" && !row.label} leaf={rows.leaf()} total={win!.total} onHere={setCur} />
  return <div class={`transcript${tools ? "" : " no-tools"}${thinking ? "" : " no-thinking"}`}>
    <div class="reader" role="toolbar" aria-label="Reading">
      <button class="plain" aria-pressed={outline} onClick={() => setOutline(!outline)} title="Outline (l)">Outline</button>
      <button class="plain" aria-pressed={text !== undefined} onClick={() => text === undefined ? find() : setText(undefined)} title="Find (/)">Find</button>
      <button class="plain" aria-pressed={tools} onClick={() => setTools(!tools)} title="Show the calls of tools">Tools</button>
      <button class="plain" aria-pressed={thinking} onClick={() => setThinking(!thinking)} title="Show what the model thought">Thinking</button>
      {win && <span class="place" role="status">{win.total ? `${((cur < 0 ? 0 : cur) + 1).toLocaleString("en")} of ${win.total.toLocaleString("en")}` : turn.on ? "" : "Nothing was said yet."}</span>}
    </div>
    {text !== undefined && <Finder text={text} onText={setText} onSeek={(back) => void seek(back, { text })} focus={toType.current} />}
    <Failed error={rows.error} />
    <div class="reading">
      {outline && win && <Outline id={id} leaf={rows.leaf()} total={win.total} cur={cur} onGo={(i) => { if (matchMedia("(max-width: 72rem)").matches) setOutline(false); void goTo(i) }} onClose={() => setOutline(false)} />}
      <div class="column"><h2 class="hide">Messages</h2><div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label="Messages">
        <div style={{ height: `${(win?.from ?? 0) * est}px` }} />
        <div class="rows" ref={inner} role="feed" aria-label="Entries" aria-busy={!win}>{!win && !rows.error && <Waiting />}{drawn(shown, runs, folds, one, cur, setCur)}</div>
        <div style={{ height: `${win ? (win.total - endOf(win)) * est : 0}px` }} />
        <div class="rows coming" ref={coming}>{isAtEnd && <Arriving turn={turn} />}</div>
      </div>
      {fresh > 0 && <div class="news"><button class="main" onClick={() => { setFresh(0); void show("end") }}>{counted(fresh, "new entry", "new entries")} ↓</button></div>}
      {foot}</div>
    </div>
  </div>
}

/** useComing is the turn without what is among the rows already. */
function useComing(turns: Turns, now: () => Window | undefined): Turn {
  const from = useRef(0), { said } = turns.turn, win = now(), isNew = !!said && !said.entry
  useMemo(() => { if (isNew) from.current = now()?.total ?? 0 }, [isNew])
  const isShown = (id: string) => !win || !hasEnd(win) || win.rows.some((r) => r.entry.id === id)
  const t = win && hasEnd(win) ? unshown(turns.turn, isShown) : turns.turn
  useEffect(() => { if (t !== turns.turn) turns.shown(isShown) })
  const came = isNew && win?.rows.some((r) => r.index >= from.current && r.kind === "user") // before the event that says which it is
  return came ? { ...t, said: undefined } : t
}

/** Waiting is there while the first rows are on their way. */
const Waiting = () => <div class="waiting" aria-hidden="true"><span class="wait" /><span class="wait" /><span class="wait" /></div>

type Folds = ReturnType<typeof useRuns>

/** drawn draws rows, and the runs among them as a line, with what is in them if they are open. */
function drawn(rows: Row[], runs: Run[], folds: Folds, one: (row: Row, before?: Row) => preact.ComponentChild, cur: number, onHere: (i: number) => void) {
  const out: preact.ComponentChild[] = []
  let last: Row | undefined
  for (const row of rows) {
    if (!row.html && !row.others && !row.label) continue
    const run = runs.find((r) => r.first <= row.index && row.index <= r.last), open = !run || folds.isOpen(run)
    if (run && row.index === run.first) out.push(<RunLine key={"run " + run.key} run={run} open={open} here={!open && run.first <= cur && cur <= run.last} onTurn={() => { onHere(run.first); folds.turn(run) }} />)
    if (open) out.push(one(row, run?.first === row.index ? undefined : last))
    last = row
  }
  return out
}

/** RunLine says what a run of calls did. It is an entry of its own while it is folded. */
function RunLine({ run, open, here, onTurn }: { run: Run, open: boolean, here: boolean, onTurn: () => void }) {
  const failed = failedIn(run.rows)
  return <article class={`run${here ? " here" : ""}${open ? " open" : ""}`} aria-label="Calls" {...(open ? {} : { "data-i": run.first })}>
    <button class="plain" aria-expanded={open} onClick={onTurn}>{didWords(run.rows)}{failed > 0 && <span class="bad"> · {failed} failed</span>}</button></article>
}

/** useRuns remembers which runs are open, by any of their entries: what is before and after them may
 * not be there yet. */
function useRuns() {
  const [state, set] = useState({ all: false, open: new Set<string>() })
  const isOpen = (run: Run) => state.all !== run.rows.some((r) => state.open.has(r.entry.id))
  const turn = (run: Run) => set((was) => {
    const open = new Set(was.open), had = run.rows.some((r) => open.has(r.entry.id))
    run.rows.forEach((r) => had ? open.delete(r.entry.id) : open.add(r.entry.id))
    return { ...was, open }
  })
  return {
    isOpen, turn, turnAll: (all: boolean) => set({ all, open: new Set() }),
    /** reveal opens the run that has a row, and says whether it was folded. */
    reveal: (rows: Row[], i: number): boolean => {
      const run = runsOf(rows).find((r) => r.first <= i && i <= r.last)
      if (!run || isOpen(run)) return false
      turn(run)
      return true
    },
  }
}

/** useKept is whether something is shown. It is remembered in the browser. */
function useKept(what: string): [boolean, (on: boolean) => void] {
  const key = "coppice-show-" + what
  const [on, set] = useState(() => localStorage.getItem(key) !== "no")
  return [on, (on) => { localStorage.setItem(key, on ? "yes" : "no"); set(on) }]
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
function useFolds(inner: { current: HTMLElement | null }, cur: number, turnRuns: (open: boolean) => void, turnRun: () => boolean) {
  const tools = useRef(false)
  const all = (what: string) => [...(inner.current?.querySelectorAll<HTMLDetailsElement>(what) ?? [])]
  const turn = (details: HTMLDetailsElement[], open = !details[0]?.open) => details.forEach((d) => { d.open = open })
  return {
    " ": () => { if (!turnRun()) turn(all(`article[data-i="${cur}"] details`)) },
    z: () => { tools.current = !tools.current; turnRuns(tools.current); requestAnimationFrame(() => turn(all("details.tool"), tools.current)) },
    Z: () => turn(all("details.thinking")),
  }
}
