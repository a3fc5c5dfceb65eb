// A conversation, of which only what is near the view is in the document, however long it is.
import { memo } from "preact/compat"
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { bytes, get, path, type Row, type Rows } from "./api"
import { complain, copy, counted, exact, Failed, go, Link, linkTo, say, useKeys } from "./ui"
import { useLive } from "./live"
import { fork } from "./actions"

const chunk = 30 // rows are fetched so many at a time
const most = 150 // and at most so many are in the document
const rowText = 16 << 10 // how much text a row has until one asks for all of it

/** html marks HTML that the server made of a session. This is the one place where text becomes
 * elements, and render/html of the server is the one place that makes such text. */
export const trusted: { createHTML(s: string): string } =
  (globalThis as any).trustedTypes?.createPolicy("coppice", { createHTML: (s: string) => s }) ?? { createHTML: (s: string) => s }

type Window = { name: string, from: number, rows: Row[], total: number, leaf: string }

type Props = { id: string, entry?: string, leaf?: string, query?: string, foot?: preact.ComponentChildren }

export function Transcript({ id, entry, leaf, query, foot }: Props) {
  const box = useRef<HTMLDivElement>(null), inner = useRef<HTMLDivElement>(null)
  const [win, setWin] = useState<Window>()
  const [cur, showCur] = useState(-1)
  const [error, fail] = useState<Error>()
  const [fresh, setFresh] = useState(0)
  const [find, setFind] = useState<string | undefined>(query)
  const it = useRef({ anchor: undefined as { i: number, top: number } | undefined, stick: false, held: 0, busy: false, win, stop: new AbortController(), leaf: leaf ?? "", seek: undefined as AbortController | undefined, cur: -1, turn: 0, toFind: false, folded: false })
  const st = it.current
  st.win = win
  const est = win ? Math.min(60, 8_000_000 / Math.max(win.total, 1)) : 60

  /** setCur moves at once, even if it takes a while until people see it: keys come fast. */
  const setCur = useCallback((i: number) => { st.cur = i; showCur(i) }, [])

  const ask = (q: { from?: number, count?: number, at?: string, limit?: number, leaf?: string }) =>
    get<Rows>(path`/web/rows/${id}`, { count: chunk, limit: rowText, leaf: st.leaf, ...q }, st.stop.signal)

  /** show shows the rows around an index, or around an entry. */
  const show = async (to: { i?: number, at?: string }) => {
    const turn = ++st.turn
    st.busy = true
    if (to.i !== undefined) st.cur = to.i < 0 ? (st.win?.total ?? 1) - 1 : to.i
    try {
      const r = to.at !== undefined ? await ask({ at: to.at, from: -20, count: 2 * chunk }) : await ask({ from: to.i! < 0 ? -chunk : Math.max(0, to.i! - 20), count: 2 * chunk })
      if (to.at !== undefined) { // on the way to the leaf, what is appended is shown, too
        const live = await ask({ from: 0, count: 1, limit: 1, leaf: "" })
        st.leaf = live.leaf === r.leaf ? "" : r.leaf
      }
      if (turn !== st.turn) return
      let i = to.i ?? 0
      if (to.at !== undefined) i = r.rows.find((row) => row.entry.id === to.at || row.entry.id.startsWith(to.at!))?.index ?? r.from
      else if (i < 0) i = r.total - 1
      st.stick = to.i !== undefined && to.i < 0
      st.anchor = { i, top: 60 }
      setWin({ name: r.session, from: r.from, rows: r.rows, total: r.total, leaf: r.leaf })
      setCur(shownNear(r.rows, i))
      fail(undefined)
    } catch (e) {
      if (!st.stop.signal.aborted) fail(e as Error)
    } finally {
      if (turn === st.turn) st.busy = false
    }
  }

  /** more adds rows at one end, and takes as many away at the other. */
  const more = async (down: boolean) => {
    const w = st.win
    if (!w || st.busy || (down ? w.from + w.rows.length >= w.total : w.from === 0)) return
    st.busy = true
    try {
      const from = down ? w.from + w.rows.length : Math.max(0, w.from - chunk)
      const r = await ask({ from, count: down ? chunk : w.from - from })
      if (st.win === w) {
        note()
        let rows = down ? w.rows.concat(r.rows) : r.rows.concat(w.rows), first = down ? w.from : from
        if (rows.length > most) {
          if (down) { first += rows.length - most; rows = rows.slice(-most) } else rows = rows.slice(0, most)
        }
        setWin({ name: r.session, from: first, rows, total: r.total, leaf: r.leaf })
      }
    } catch (e) {
      if (!st.stop.signal.aborted) complain(e as Error)
    }
    st.busy = false
  }

  const elements = () => [...(inner.current?.querySelectorAll<HTMLElement>(":scope > article") ?? [])]

  /** note remembers which row is where, so that it stays there when others come and go. */
  const note = () => {
    const b = box.current
    if (!b) return
    const top = b.getBoundingClientRect().top
    const atEnd = b.scrollTop + b.clientHeight >= b.scrollHeight - 4
    // What comes late (images, the composer) moves the end, not the person who was there.
    const stays = st.stick && b.scrollTop >= st.held - 1
    st.stick = (atEnd || stays) && !!st.win && st.win.from + st.win.rows.length >= st.win.total
    for (const e of elements()) {
      const r = e.getBoundingClientRect()
      if (r.bottom > top) { st.anchor = { i: Number(e.dataset.i), top: r.top - top }; return }
    }
  }

  /** hold puts the row that was noted back to its place. */
  const hold = () => {
    const b = box.current
    if (!b || !st.anchor) return
    if (st.stick) { b.scrollTop = b.scrollHeight; st.held = b.scrollTop; return }
    const e = inner.current?.querySelector<HTMLElement>(`article[data-i="${shownNear(st.win?.rows ?? [], st.anchor.i)}"]`)
    if (e) b.scrollTop += e.getBoundingClientRect().top - b.getBoundingClientRect().top - st.anchor.top
  }

  const look = () => {
    const b = box.current, w = st.win, n = inner.current
    if (!b || !w || !n || st.busy) return
    const view = b.getBoundingClientRect(), rows = n.getBoundingClientRect()
    if (rows.top > view.bottom || rows.bottom < view.top) { // the scroll bar was dragged to where there is nothing yet
      const i = Math.min(w.total - 1, Math.floor((b.scrollTop / Math.max(1, b.scrollHeight - b.clientHeight)) * w.total))
      void show({ i }).then(look)
      return
    }
    note()
    if (rows.top > view.top - view.height) void more(false).then(() => {})
    else if (rows.bottom < view.bottom + view.height) void more(true)
    if (st.stick) setFresh(0)
  }

  useEffect(() => {
    st.stop = new AbortController()
    st.leaf = leaf ?? ""
    void show(entry ? { at: entry } : { i: -1 })
    return () => st.stop.abort()
  }, [id, entry, leaf])

  useLayoutEffect(hold, [win])
  useEffect(() => { // images come later, people unfold what is folded, and the composer grows
    const seen = new ResizeObserver(() => { hold(); look() })
    if (inner.current) seen.observe(inner.current)
    if (box.current) seen.observe(box.current)
    return () => seen.disconnect()
  }, [!!win])

  const changed = useLive(win?.name ?? id, !leaf && !st.leaf, async () => {
    const w = st.win
    if (!w) return
    while (st.busy) await new Promise((r) => setTimeout(r, 50))
    if (st.win !== w) { changed(); return }
    const end = w.from + w.rows.length, atEnd = end >= w.total
    const r = await ask({ from: atEnd ? Math.max(0, end - 1) : w.total, count: chunk })
    if (st.win !== w) return
    const news = r.total - w.total
    if (atEnd && r.rows[0] && w.rows.length && r.rows[0].entry.id !== w.rows[w.rows.length - 1].entry.id) { // the conversation went another way
      void show({ i: -1 })
      return
    }
    note()
    if (!st.stick && news > 0) setFresh((n) => n + news)
    if (!atEnd) { setWin({ ...w, total: r.total }); return }
    let rows = w.rows.slice(0, -1).concat(r.rows[0]?.html === w.rows[w.rows.length - 1]?.html ? [w.rows[w.rows.length - 1], ...r.rows.slice(1)] : r.rows), from = w.from
    if (rows.length > most && st.stick) { from += rows.length - most; rows = rows.slice(-most) }
    setWin({ name: r.session, from, rows, total: r.total, leaf: r.leaf })
    if (st.stick) setCur(shownNear(rows, r.total - 1))
  })

  const goTo = async (i: number) => {
    const w = st.win
    if (!w) return
    if (i < w.from || i >= w.from + w.rows.length) { await show({ i }); return }
    const near = shownNear(w.rows, i)
    st.turn++ // what was on its way is no longer wanted
    st.busy = false
    setCur(near)
    inner.current?.querySelector(`article[data-i="${near}"]`)?.scrollIntoView({ block: "nearest" })
    note()
  }

  const step = (by: number) => {
    const w = st.win
    if (!w) return
    let i = (st.cur < 0 ? w.from : st.cur) + by
    const dir = Math.sign(by)
    while (i >= w.from && i < w.from + w.rows.length && !w.rows[i - w.from].html) i += dir
    if (i < 0 || i >= w.total) return
    if (i < w.from || i >= w.from + w.rows.length) { void show({ i }).then(() => {}); return }
    void goTo(i)
  }

  const seek = async (back: boolean, q: { kind?: string, text?: string }) => {
    st.seek?.abort()
    const stop = st.seek = new AbortController()
    const what = q.kind ?? `“${q.text}”`
    if (back && st.cur <= 0) { say(`there is no earlier ${what}`); return }
    try {
      const r = await get<{ found: boolean, index: number }>(path`/v1/sessions/${id}/seek`, { leaf: st.leaf, from: st.cur + (back ? -1 : 1), back, ...q }, stop.signal)
      if (!r.found) say(back ? `there is no earlier ${what}` : `there is no later ${what}`)
      else await goTo(r.index)
    } catch (e) {
      if (!stop.signal.aborted) complain(e as Error)
    }
  }
  const kinds = { p: "prompt", e: "error", d: "edit", m: "compaction" }
  const page = (by: number) => { const b = box.current!; b.scrollTop += by * (b.clientHeight - 60); note(); if (st.anchor) setCur(shownNear(st.win?.rows ?? [], st.anchor.i)) }
  const current = win?.rows[cur - (win?.from ?? 0)]
  useKeys({
    ...Object.fromEntries(Object.entries(kinds).flatMap(([k, kind]) => [[k, () => void seek(false, { kind })], [k.toUpperCase(), () => void seek(true, { kind })]])),
    j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1), PageDown: () => page(1), PageUp: () => page(-1),
    g: () => void show({ i: 0 }), Home: () => void show({ i: 0 }), G: () => void show({ i: -1 }), End: () => void show({ i: -1 }),
    " ": () => inner.current?.querySelector(`article[data-i="${cur}"]`)?.querySelectorAll("details").forEach((d, _, all) => { d.open = d === all[0] ? !d.open : all[0].open }),
    z: () => { st.folded = !st.folded; inner.current?.querySelectorAll<HTMLDetailsElement>("details.tool").forEach((d) => { d.open = st.folded }) },
    Z: () => inner.current?.querySelectorAll<HTMLDetailsElement>("details.thinking").forEach((d, _, all) => { d.open = d === all[0] ? !d.open : all[0].open }),
    "]": () => { if (current?.others?.length) go(path`/s/${id}/e/${current.others[0].entry}`); else void seek(false, { kind: "branch" }) },
    "[": () => void seek(true, { kind: "branch" }),
    "/": () => { st.toFind = true; setFind((f) => f ?? ""); findBox.current?.focus() },
    n: () => find && void seek(false, { text: find }), N: () => find && void seek(true, { text: find }),
    y: () => current && void copy(linkTo(path`/s/${id}/e/${current.entry.id}`), "a link to this entry"),
    t: () => go(path`/s/${id}/tree` + (current ? path`?at=${current.entry.id}` : "")), x: () => go(path`/s/${id}/context` + (current ? path`?leaf=${current.entry.id}` : "")),
    f: () => current && void fork(id, current.entry.id),
    ...(find !== undefined ? { Escape: () => setFind(undefined) } : {}),
  })
  useHighlights(inner, find, win)
  const findBox = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => { if (st.toFind) { st.toFind = false; findBox.current?.focus() } }, [find === undefined])

  let last: Row | undefined
  return <div class="transcript">
    {find !== undefined && <form class="find" role="search" onSubmit={(e) => { e.preventDefault(); void seek(false, { text: find }); (document.activeElement as HTMLElement)?.blur() }}>
      <input ref={findBox} id="find" type="search" value={find} onInput={(e) => setFind(e.currentTarget.value)} aria-label="Find in this conversation" placeholder="Find in this conversation" />
      <button title="Previous (N)" type="button" onClick={() => void seek(true, { text: find })}>↑</button><button title="Next (n)">↓</button>
      <button type="button" onClick={() => setFind(undefined)} aria-label="Close">✕</button></form>}
    <Failed error={error} />
    <div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label="Messages">
      <div style={{ height: `${(win?.from ?? 0) * est}px` }} />
      <div class="rows" ref={inner} role="feed" aria-label="Entries" aria-busy={!win}>{win?.rows.map((row) => {
        if (!row.html && !row.others && !row.label) return null
        const follows = last?.kind === "assistant" && row.kind === "assistant" && !row.label
        last = row
        return <Entry key={row.entry.id} row={row} session={id} here={row.index === cur} follows={follows} leaf={st.leaf} total={win.total} onHere={setCur} />
      })}</div>
      <div style={{ height: `${win ? (win.total - win.from - win.rows.length) * est : 0}px` }} />
    </div>
    {win && <div class="place"><span role="status">{win.total ? `${((cur < 0 ? 0 : cur) + 1).toLocaleString("en")} of ${win.total.toLocaleString("en")}` : "Nothing was said yet."}</span>
      {fresh > 0 && <button class="main" onClick={() => { setFresh(0); void show({ i: -1 }) }}>{counted(fresh, "new entry", "new entries")} ↓</button>}</div>}
    {foot}
  </div>
}

/** shownNear is the row at or before an index that shows something, or else the next one. */
function shownNear(rows: Row[], i: number): number {
  const from = rows[0]?.index ?? 0
  for (let k = i - from; k >= 0; k--) if (rows[k]?.html) return rows[k].index
  return rows.find((r) => r.html && r.index >= i)?.index ?? i
}

const names: Record<string, string> = { user: "User", assistant: "Assistant", tool: "Tool", system: "System", compaction: "Compacted" }
const nameOf = (r: Row) => r.entry.note ? "Note by " + r.entry.note : names[r.kind] ?? r.kind
const classOf = (r: Row) => r.entry.note ? "left" : r.kind in names ? r.kind : r.entry.role ? "other" : r.kind === "summary" || r.kind === "merge" ? "summary" : "note"

type EntryProps = { row: Row, session: string, here: boolean, follows: boolean, leaf: string, total: number, onHere: (i: number) => void }

const Entry = memo(function Entry({ row, session, here, follows, leaf, total, onHere }: EntryProps) {
  const body = useRef<HTMLDivElement>(null)
  const [whole, setWhole] = useState<string>()
  const html = whole ?? row.html
  useEffect(() => {
    body.current!.querySelectorAll<HTMLElement>(".wide").forEach((w) => { w.tabIndex = 0 }) // they scroll
    return pictures(body.current!, session)
  }, [html])
  const all = () => get<Rows>(path`/web/rows/${session}`, { at: row.entry.id, leaf, from: 0, count: 1, limit: 16 << 20 }).then((r) => setWhole(r.rows[0]?.html ?? ""), complain)
  const own = path`/s/${session}/e/${row.entry.id}`
  return <article class={`${classOf(row)}${here ? " here" : ""}${follows ? " follows" : ""}`} data-i={row.index} aria-posinset={row.index + 1} aria-setsize={total} aria-label={nameOf(row)} onClick={() => onHere(row.index)}>
    <header>{!follows && <b dir="auto">{nameOf(row)}</b>}{row.label && <mark dir="auto">{row.label}</mark>}
      {!follows && row.entry.facts?.map((f) => <small>{f}</small>)}
      <Link to={own} class="at" title={`${exact(row.entry.time)} · ${row.entry.id}`}><time>{row.entry.time ? new Date(row.entry.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : "#"}</time></Link></header>
    <div ref={body} class="body" dangerouslySetInnerHTML={{ __html: trusted.createHTML(html) as string }} />
    {row.cut && whole === undefined && <button class="all" onClick={all}>Show all of it</button>}
    {row.subagents?.map((name) => <p class="media">↳ <Link to={path`/s/${name}`}>subagent {name}</Link></p>)}
    {row.others && <nav class="others" aria-label="Other branches">{row.others.map((b) => <Link to={path`/s/${session}/e/${b.entry}`}>another branch, {counted(b.length, "entry", "entries")}</Link>)}
      <button onClick={() => go(path`/s/${session}/tree?at=${row.entry.id}`)}>Tree</button></nav>}
  </article>
})

const kindsOfImages = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]

/** pictures fetches the images of an element when they come into view. */
function pictures(body: HTMLElement, session: string) {
  const wanted = body.querySelectorAll<HTMLElement>("p.media[data-entry]")
  if (!wanted.length) return
  const stop = new AbortController(), made: string[] = []
  const seen = new IntersectionObserver((all) => {
    for (const { target, isIntersecting } of all) {
      if (!isIntersecting) continue
      seen.unobserve(target)
      const p = target as HTMLElement
      picture(session, p.dataset.entry!, p.dataset.blob!, p.textContent ?? "", stop.signal).then((img) => { made.push(img.src); p.replaceChildren(img) }, () => {})
    }
  }, { rootMargin: "400px" })
  wanted.forEach((p) => seen.observe(p))
  return () => { stop.abort(); seen.disconnect(); made.forEach((url) => URL.revokeObjectURL(url)) }
}

async function picture(session: string, entry: string, blob: string, alt: string, signal: AbortSignal): Promise<HTMLImageElement> {
  const got = await bytes(blob ? path`/v1/sessions/${session}/blobs/${blob}` : path`/v1/sessions/${session}/images/${entry}`, undefined, signal)
  const kind = kindsOfImages.find((k) => got.type === k) ?? kindsOfImages.find((k) => alt.startsWith(k))
  if (!kind) throw new Error("this is no image that a browser should draw")
  const img = new Image()
  img.alt = alt
  img.src = URL.createObjectURL(new Blob([got], { type: kind }))
  await img.decode()
  return img
}

/** useHighlights marks what is looked for, without changing the document. */
function useHighlights(inner: { current: HTMLElement | null }, text: string | undefined, win: unknown) {
  useEffect(() => {
    const marks = (CSS as any).highlights as Map<string, unknown> | undefined
    if (!marks) return
    marks.delete("match")
    const words = (text ?? "").trim().toLowerCase()
    if (!words || !inner.current) return
    const ranges: Range[] = []
    const walk = document.createTreeWalker(inner.current, NodeFilter.SHOW_TEXT)
    while (walk.nextNode() && ranges.length < 1000) {
      const node = walk.currentNode as Text, low = node.data.toLowerCase()
      for (let at = low.indexOf(words); at >= 0 && low.length === node.data.length; at = low.indexOf(words, at + words.length)) {
        const r = new Range()
        r.setStart(node, at)
        r.setEnd(node, at + words.length)
        ranges.push(r)
      }
    }
    marks.set("match", new (globalThis as any).Highlight(...ranges))
    return () => { marks.delete("match") }
  }, [text, win])
}
