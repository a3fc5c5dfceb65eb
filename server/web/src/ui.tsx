// Small parts that the views share.
import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { type Me, prefix, Problem } from "./api"

// ---- addresses

export type Place = { parts: string[], query: URLSearchParams }

export const placeOf = (url: { pathname: string, search: string }): Place => ({
  parts: url.pathname.slice(prefix.length).split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(url.search),
})

const moved = new EventTarget()

export function go(to: string, replace = false) {
  if (prefix + to !== location.pathname + location.search) history[replace ? "replaceState" : "pushState"](null, "", prefix + to)
  moved.dispatchEvent(new Event("moved"))
}
addEventListener("popstate", () => moved.dispatchEvent(new Event("moved")))

/** linkTo is an address that can be sent to others. */
export const linkTo = (to: string) => location.origin + prefix + to

export function usePlace(): Place {
  const [place, set] = useState(() => placeOf(location))
  useEffect(() => {
    const look = () => set(placeOf(location))
    moved.addEventListener("moved", look)
    return () => moved.removeEventListener("moved", look)
  }, [])
  return place
}

/** opensElsewhere is whether a click asks the browser for another tab or window. */
export const opensElsewhere = (e: MouseEvent) => e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0

export function Link({ to, onClick, children, ...rest }: { to: string, onClick?: (e: MouseEvent) => void, children: ComponentChildren, [other: string]: unknown }) {
  const follow = (e: MouseEvent) => {
    onClick?.(e)
    if (e.defaultPrevented || opensElsewhere(e)) return
    e.preventDefault()
    go(to)
  }
  return <a href={prefix + to} onClick={follow} {...rest}>{children}</a>
}

/** useTitle names what is open in the title of the document. */
export function useTitle(what?: string) {
  useEffect(() => {
    const title = document.title = what ? what + " – Coppice" : "Coppice"
    return () => { if (document.title === title) document.title = "Coppice" } // what comes next may have its own already
  }, [what])
}

// ---- keys: the same as in the terminal UI. The innermost view is asked first.

export type Keys = Record<string, () => void>
const rooms: { current: Keys }[] = []

export function useKeys(keys: Keys) {
  const mine = useRef(keys)
  mine.current = keys
  useState(() => rooms.push(mine)) // when it is first drawn: a view comes before what is in it
  useEffect(() => () => { rooms.splice(rooms.indexOf(mine), 1) }, [])
}

addEventListener("keydown", (e) => {
  const t = e.target as HTMLElement
  const typing = t.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")
  if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing) return
  if (typing && e.key !== "Escape") return
  if (typing) t.blur()
  if ((e.key === "Enter" || e.key === " ") && t.closest("a, button, summary, input")) return
  if (document.querySelector("dialog[open]")) return
  for (let i = rooms.length - 1; i >= 0; i--) {
    const act = rooms[i].current[e.key]
    if (act) {
      e.preventDefault()
      act()
      return
    }
  }
})

// ---- asking

/** Asked is what has come of a question to the server. */
export type Asked<T> = { value?: T, error?: Error, busy: boolean, again: () => void }

/** useAsked asks whenever what it depends on changes; an older question is given up. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, on: unknown[]): Asked<T> {
  const [state, set] = useState<{ value?: T, error?: Error, busy: boolean }>({ busy: true })
  const [n, again] = useState(0)
  useEffect(() => {
    const stop = new AbortController()
    set((was) => ({ ...was, busy: true }))
    ask(stop.signal).then((value) => set({ value, busy: false }), (error) => { if (!stop.signal.aborted) set({ error, busy: false }) })
    return () => stop.abort()
  }, [...on, n])
  return { ...state, again: () => again((n) => n + 1) }
}

export function Failed({ error }: { error?: Error }) {
  if (!error) return null
  return <p class="failed" role="alert">{error.message}{error instanceof Problem && error.hint ? <small> {error.hint}</small> : null}</p>
}

export const Who = createContext<Me>({ name: "", access: "read", open: false, tools: false, version: "", filters: [], list_filters: [] })
export const useMay = (access: "write" | "admin") => {
  const me = useContext(Who)
  return me.access === "admin" || me.access === access
}

/** say shows a short message for a while, with a button if it can be undone. */
export let say: (text: string, undo?: () => void) => void = () => {}
export function Notices() {
  const [{ text, undo }, set] = useState<{ text: string, undo?: () => void }>({ text: "" })
  useEffect(() => { say = (text, undo) => set({ text, undo }) }, [])
  useEffect(() => {
    if (!text) return
    const t = setTimeout(() => set({ text: "" }), undo ? 8000 : 4000)
    return () => clearTimeout(t)
  }, [text, undo])
  return <div class="notices" role="status" aria-live="polite">{text && <span>{text}{undo && <> <button onClick={undo}>Undo <kbd>u</kbd></button></>}</span>}</div>
}

export const complain = (e: Error) => say(e.message)

export async function copy(text: string, what: string) {
  try {
    await navigator.clipboard.writeText(text)
    say(`copied ${what}`)
  } catch {
    say("the browser does not let this page copy")
  }
}

// ---- words

export { cost, counted, money, narrow, short } from "./words"

export function ago(time?: string): string {
  if (!time) return ""
  const then = new Date(time), s = (Date.now() - then.getTime()) / 1000
  if (s < 60) return "now"
  if (s < 3600) return `${Math.floor(s / 60)} min`
  if (s < 86400) return `${Math.floor(s / 3600)} h`
  if (s < 7 * 86400) return `${Math.floor(s / 86400)} d`
  return then.toLocaleDateString(undefined, { day: "numeric", month: "short", ...(s > 300 * 86400 ? { year: "numeric" } : {}) })
}
export const exact = (time?: string) => time ? new Date(time).toLocaleString() : ""

/** highlighted returns a text with marks; the ranges count bytes of UTF-8. */
export function highlighted(text: string, ranges: [number, number][]) {
  const raw = new TextEncoder().encode(text), back = new TextDecoder()
  const out: ComponentChildren[] = []
  let at = 0
  for (const [from, to] of ranges ?? []) {
    if (from < at) continue
    out.push(back.decode(raw.slice(at, from)), <mark>{back.decode(raw.slice(from, to))}</mark>)
    at = to
  }
  out.push(back.decode(raw.slice(at)))
  return out
}

// ---- a list of rows of one height, of which only those in sight are in the document

type ListProps<T> = {
  label: string, count: number, height: number, cur: number, at: (i: number) => T | undefined
  row: (item: T | undefined, i: number) => ComponentChildren, need: (from: number, to: number) => void, onCur?: (i: number) => void
  to?: (item: T) => string, onMark?: (i: number) => void // where a row leads, if it is a link
}

/** A browser cannot lay out a list that is higher than this, so a longer one moves in jumps. */
const maxHeight = 8_000_000

export function FixedList<T>(p: ListProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const [view, set] = useState({ from: 0, to: 40 })
  const whole = Math.min(p.count * p.height, maxHeight), scale = p.count ? whole / (p.count * p.height) : 1
  const look = () => {
    const b = box.current
    if (!b) return
    const first = Math.floor(b.scrollTop / scale / p.height), n = Math.ceil(b.clientHeight / p.height)
    const from = Math.max(0, first - 10), to = Math.min(p.count, first + n + 10)
    set((was) => was.from === from && was.to === to ? was : { from, to })
  }
  useLayoutEffect(() => {
    const b = box.current!, seen = new ResizeObserver(look)
    seen.observe(b)
    return () => seen.disconnect()
  })
  useLayoutEffect(look, [p.count])
  useEffect(() => p.need(view.from, view.to), [view.from, view.to, p.count, p.need])
  useLayoutEffect(() => { // the current row is in sight
    const b = box.current!
    if (p.cur < 0 || !p.count) return
    const top = p.cur * p.height * scale, room = b.clientHeight - p.height
    if (top < b.scrollTop) b.scrollTop = top
    else if (top > b.scrollTop + room) b.scrollTop = top - room
    look()
  }, [p.cur, p.count > 0])
  const rows = []
  const shift = view.from * p.height * (scale - 1)
  for (let i = view.from; i < Math.min(view.to, p.count); i++) {
    const item = p.at(i), to = item && p.to?.(item)
    const row = {
      role: "option", id: `${p.label}-${i}`, "aria-selected": i === p.cur, "aria-posinset": i + 1, "aria-setsize": p.count, class: "row",
      style: { top: `${i * p.height + shift}px`, height: `${p.height}px` }, children: p.row(item, i),
    } as const
    const click = (e: MouseEvent) => {
      if (p.onMark && e.altKey) { e.preventDefault(); p.onMark(i) } else if (opensElsewhere(e)) return
      p.onCur?.(i)
    }
    rows.push(to ? <Link key={i} {...row} to={to} tabIndex={-1} draggable={false} onFocus={() => box.current!.focus()} onClick={click} /> : <div key={i} {...row} onClick={click} />)
  }
  return <div class="list" ref={box} onScroll={look} role="listbox" tabIndex={0} aria-label={p.label} aria-activedescendant={p.cur >= 0 && p.cur < p.count ? `${p.label}-${p.cur}` : undefined}>
    <div class="whole" role="presentation" style={{ height: `${whole}px` }}>{rows}</div>
  </div>
}

/** moves are the keys of a list. */
export function moves(cur: number, count: number, set: (i: number) => void): Keys {
  const to = (i: number) => () => set(Math.max(0, Math.min(count - 1, i)))
  return { ArrowDown: to(cur + 1), j: to(cur + 1), ArrowUp: to(cur - 1), k: to(cur - 1), PageDown: to(cur + 10), PageUp: to(cur - 10), g: to(0), Home: to(0), G: to(count - 1), End: to(count - 1) }
}

/** usePages keeps rows that are fetched page by page, in the order of their indexes. Without a
 * total there are as many as were seen, and perhaps one more. */
export function usePages<T>(size: number, ask: (from: number, count: number, signal: AbortSignal) => Promise<{ total?: number, rows: T[] }>, on: unknown[]) {
  const [state, set] = useState<{ total: number, error?: Error, n: number, ready: boolean }>({ total: 0, n: 0, ready: false })
  const kept = useRef({ pages: new Map<number, T[]>(), asked: new Set<number>(), stop: new AbortController() })
  const seen = (total: number, page: number, rows: T[]) => {
    const end = page * size + rows.length
    return rows.length < size ? end : Math.max(total, end + 1)
  }
  const load = (page: number) => {
    const k = kept.current
    if (k.asked.has(page)) return
    k.asked.add(page)
    ask(page * size, size, k.stop.signal).then(({ total, rows }) => {
      if (k !== kept.current) return
      k.pages.set(page, rows)
      if (k.pages.size > 50) { // what was seen long ago is fetched again
        const [first] = k.pages.keys()
        k.pages.delete(first)
        k.asked.delete(first)
      }
      set((was) => ({ total: total ?? seen(was.total, page, rows), n: was.n + 1, ready: true }))
    }, (error) => {
      k.asked.delete(page)
      if (!k.stop.signal.aborted) set((was) => ({ ...was, error, ready: true }))
    })
  }
  useEffect(() => {
    kept.current.stop.abort()
    set((was) => ({ ...was, total: 0, error: undefined, ready: false }))
    kept.current = { pages: new Map(), asked: new Set(), stop: new AbortController() }
    load(0)
    return () => kept.current.stop.abort()
  }, on)
  return {
    ...state,
    at: (i: number): T | undefined => kept.current.pages.get(Math.floor(i / size))?.[i % size],
    /** kept are the rows in memory, with their indexes. */
    kept: (): [number, T][] => [...kept.current.pages].flatMap(([page, rows]) => rows.map((row, i): [number, T] => [page * size + i, row])),
    /** renew fetches what is kept once more; until it is there, people see what was. */
    renew: async () => {
      const k = kept.current
      for (const page of [...k.pages.keys()].slice(-3)) {
        const r = await ask(page * size, size, k.stop.signal)
        k.pages.set(page, r.rows)
        for (const other of k.pages.keys()) if (other !== page && ![...k.pages.keys()].slice(-3).includes(other)) { k.pages.delete(other); k.asked.delete(other) }
        if (k === kept.current) set((was) => ({ total: r.total ?? seen(was.total, page, r.rows), n: was.n + 1, ready: true }))
      }
    },
    need: (from: number, to: number) => { for (let p = Math.floor(from / size); p * size < to; p++) load(p) },
  }
}
