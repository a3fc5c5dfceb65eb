// One entry of a conversation, as the server drew it, with its pictures.
import { memo } from "preact/compat"
import { useEffect, useRef, useState } from "preact/hooks"
import { bytes, get, path, type Row, type Rows } from "./api"
import { useTrusted } from "./drawn"
import { complain, copy, counted, exact, go, Link } from "./ui"

const names: Record<string, string> = { user: "User", assistant: "Assistant", tool: "Tool", system: "System", compaction: "Compacted" }
const nameOf = (r: Row) => r.entry.note ? "Note by " + r.entry.note : names[r.kind] ?? r.kind
const classOf = (r: Row) => r.entry.note ? "left" : r.kind in names ? r.kind : r.entry.role ? "other" : r.kind === "summary" || r.kind === "merge" ? "summary" : "note"

type EntryProps = { row: Row, session: string, here: boolean, follows: boolean, leaf: string, total: number, onHere: (i: number) => void }

export const Entry = memo(function Entry({ row, session, here, follows, leaf, total, onHere }: EntryProps) {
  const body = useRef<HTMLDivElement>(null)
  const [whole, setWhole] = useState<string>()
  const html = whole ?? row.html, inner = useTrusted(html)
  useEffect(() => {
    body.current!.querySelectorAll<HTMLElement>(row.kind === "system" ? ".wide, .text" : ".wide").forEach((w) => { w.tabIndex = 0 }) // they scroll
    return pictures(body.current!, session)
  }, [html])
  const all = () => get<Rows>(path`/web/rows/${session}`, { at: row.entry.id, leaf, from: 0, count: 1, limit: 16 << 20 }).then((r) => setWhole(r.rows[0]?.html ?? ""), complain)
  const own = path`/s/${session}/e/${row.entry.id}`
  const copyIt = () => void textIn(session, row.entry.id, leaf).then((text) => copy(text, "the message as Markdown"), complain)
  return <article class={`${classOf(row)}${here ? " here" : ""}${follows ? " follows" : ""}${row.work?.calls ? " works" : row.work ? " thinks" : ""}`} data-i={row.index} aria-posinset={row.index + 1} aria-setsize={total} aria-label={nameOf(row)} onClick={() => onHere(row.index)}>
    <header>{!follows && <b dir="auto">{nameOf(row)}</b>}{row.label && <mark dir="auto">{row.label}</mark>}
      {!follows && row.entry.facts?.map((f) => <small>{f}</small>)}
      <span class="end">{["user", "assistant", "system"].includes(row.kind) && <button class="plain copy" onClick={copyIt} aria-label="Copy as Markdown" title="Copy as Markdown"><svg viewBox="0 0 16 16" width="12" height="12" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true"><path d="M5.5 5.5h8v8h-8zM2.5 10.5v-8h8" /></svg></button>}
      <Link to={own} class="at" title={`${exact(row.entry.time)} · ${row.entry.id}`}><time>{row.entry.time ? new Date(row.entry.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : "#"}</time></Link></span></header>
    <div ref={body} class="body" dangerouslySetInnerHTML={inner} />
    {row.cut && whole === undefined && <button class="all" onClick={all}>Show all of it</button>}
    {row.subagents?.map((name) => <p class="media">↳ <Link to={path`/s/${name}`}>subagent {name}</Link></p>)}
    {row.others && <nav class="others" aria-label="Other branches">{row.others.map((b) => <Link to={path`/s/${session}/e/${b.entry}`}>another branch, {counted(b.length, "entry", "entries")}</Link>)}
      <button onClick={() => go(path`/s/${session}/tree?at=${row.entry.id}`)}>Tree</button></nav>}
  </article>
})

type Whole = { rows: { entry: { message?: { content: { text?: { content: string } }[] } } }[] }

/** textIn is all that a message says: the texts of models are Markdown. */
async function textIn(session: string, at: string, leaf: string): Promise<string> {
  const { rows } = await get<Whole>(path`/v1/sessions/${session}/rows`, { at, leaf, from: 0, count: 1, limit: 16 << 20 })
  return rows[0]?.entry.message?.content.map((c) => c.text?.content ?? "").filter(Boolean).join("\n\n") ?? ""
}

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
