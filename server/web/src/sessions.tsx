// The list of conversations, and search as one types.
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { type Found, get, type Hit, path } from "./api"
import { ago, cost, counted, exact, Failed, FixedList, go, highlighted, Link, moves, narrow, short, useKeys, useMay, usePages, Who } from "./ui"
import { AgentSign } from "./agent"
import { sessionActions, sessionKeys } from "./actions"
import { Complete, useValues } from "./complete"
import { useLive } from "./live"
import { type Shelved, type Unknown, useShelf } from "./shelf"

type Props = { active: boolean, open: string, onSelect: (id: string) => void, query: string }

export function Sessions(p: Props) {
  const { filters, list_filters } = useContext(Who)
  const [query, type] = useState(p.query)
  const [asked, ask] = useState(p.query)
  const values = useValues(filters)
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const t = setTimeout(() => ask(values.complete(query, document.activeElement === box.current)), 120)
    return () => clearTimeout(t)
  }, [query, values.n])
  useEffect(() => { // an address with a search can be kept
    if (p.active) go(asked ? "/?q=" + encodeURIComponent(asked) : "/", true)
  }, [asked])
  useEffect(() => { // who comes back by a link, such as a column of a chart, asks for something else
    if (p.active && p.query && p.query !== asked) { type(p.query); ask(p.query) }
  }, [p.active])
  const leave = () => { box.current!.blur(); ask(values.complete(query, false)) }
  const clear = () => { type(""); ask("") }
  const isList = (asked.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []).every((word) => list_filters.some((name) => word.startsWith(name + ":") && word.length > name.length + 1))
  return <section class={p.active ? "sessions active" : "sessions"} aria-label="Conversations">{p.active && <h1 class="hide">Conversations</h1>}
    <form role="search" onSubmit={(e) => e.preventDefault()}>
      <Complete box={box} query={query} type={type} values={values} onLeave={leave} />
    </form>
    {isList ? <All {...p} filter={asked} onClear={clear} /> : <Hits {...p} query={asked} onClear={clear} />}
  </section>
}

// ---- all of them, or those that pass filters

/** orders are the groups and orders of the list: what the server sorts by, and whether it is by project. */
const orders: Record<string, [words: string, sort: string]> = {
  day: ["by day", "updated"], project: ["by project", "updated"], created: ["by creation", "created"], title: ["by title", "title"], messages: ["by messages", "messages"], tokens: ["by tokens", "tokens"], size: ["by size", "size"],
}
const orderKey = "coppice-order"

function All(p: Props & { filter: string, onClear: () => void }) {
  const may = useMay("write")
  const [order, setOrder] = useState(() => { const was = localStorage.getItem(orderKey) ?? ""; return was in orders ? was : "day" })
  const [withEmpty, setEmpty] = useState(false)
  const shelf = useShelf({ filter: p.filter, sort: orders[order][1], byProject: order === "project", withEmpty })
  useLive(undefined, true, shelf.renew)
  const [cur, setCur] = useState(0)
  const [marked, mark] = useState<string[]>([])
  const selected = useRef(""), row = shelf.at(cur)
  const move = (i: number) => { selected.current = shelf.at(i)?.s.id ?? ""; setCur(i) }
  const question = [p.filter, order, withEmpty].join("\n"), before = useRef(question)
  useEffect(() => {
    if (before.current !== question) { before.current = question; selected.current = ""; setCur(0); return }
    for (let by = 0; selected.current && by < 300; by++) { // what is selected stays selected
      for (const i of [cur + by, cur - by]) if (i >= 0 && shelf.at(i)?.s.id === selected.current) { setCur(i); return }
    }
    if (shelf.ready && cur >= shelf.count && cur) move(Math.max(0, shelf.count - 1))
  }, [question, shelf.n, shelf.count])
  useEffect(() => { if (row) p.onSelect(row.s.id) }, [row?.s.id])
  const choose = (to: string) => { localStorage.setItem(orderKey, to); setOrder(to) }
  const toggle = (id: string) => mark(marked.includes(id) ? marked.filter((m) => m !== id) : [...marked, id])
  const open = (r?: Shelved) => { if (r) go(addressOf(r)) }
  const chosen = marked.length ? marked : row ? [row.s.id] : []
  useKeys(p.active ? {
    ...moves(cur, shelf.count, move), Enter: () => open(row), " ": () => { if (row) shelf.fold(row.s) }, ...sessionKeys(chosen, may),
    m: () => { if (row) { toggle(row.s.id); move(Math.min(cur + 1, shelf.count - 1)) } }, b: () => choose(order === "project" ? "day" : "project"), e: () => setEmpty(!withEmpty),
    ".": () => void sessionActions(chosen, may),
    ...(marked.length || p.filter ? { Escape: () => marked.length ? mark([]) : p.onClear() } : {}),
  } : {})
  return <>
    <div class="count"><span role="status">{shelf.ready ? shelf.cut ? "the latest " + shelf.total.toLocaleString("en") : counted(shelf.total, "conversation") : "…"}</span>
      {marked.length > 0 && <button onClick={() => void sessionActions(marked, may)} title=".">{marked.length} marked …</button>}
      <button aria-pressed={withEmpty} onClick={() => setEmpty(!withEmpty)} title="Those in which nothing was said (e)">empty ones</button>
      <select aria-label="Order" title="b: by day or by project" value={order} onChange={(e) => choose(e.currentTarget.value)}>{Object.entries(orders).map(([name, [words]]) => <option value={name}>{words}</option>)}</select></div>
    <Failed error={shelf.error} />
    {shelf.ready && !shelf.count && !shelf.error && <Nothing filter={p.filter} unknown={shelf.unknown} />}
    <FixedList label="conversations" count={shelf.count} height={66} cur={cur} at={shelf.at} need={shelf.need} onCur={move} to={addressOf} onMark={(i) => { const r = shelf.at(i); if (r) toggle(r.s.id) }}
      row={(r) => r ? <SessionRow r={r} by={shelf.isAnswered ? order : ""} here={r.s.id === p.open} marked={marked.includes(r.s.id)} open={shelf.isOpen(r.s.id)} fold={() => shelf.fold(r.s)} /> : <span class="wait" />} />
  </>
}

const addressOf = (r: Shelved) => path`/s/${r.s.id}`

function SessionRow({ r: { s, depth, first }, by, here, marked, open, fold }: { r: Shelved, by: string, here: boolean, marked: boolean, open: boolean, fold: () => void }) {
  const below = s.forks + s.subagents
  return <div class={`session${here ? " current" : ""}${marked ? " marked" : ""}${first ? " first" : ""}`}>
    {first && <span class="group" dir="auto">{by === "project" && !s.pinned && s.cwd || s.group || "all others"}</span>}
    <b dir="auto" style={{ paddingLeft: `${Math.min(depth, 8)}rem` }}>{depth > 0 && <small>{s.relation} </small>}
      {below > 0 && <span class="fold" title={`${counted(s.forks, "fork")}, ${counted(s.subagents, "subagent")} (Space)`} onClick={(e) => { e.preventDefault(); e.stopPropagation(); fold() }}>{open ? "▾" : `▸${below}`} </span>}
      {s.pinned && "★ "}{s.title || "untitled"}</b><time title={exact(s.updated)}>{ago(s.updated)}</time>
    <span class="facts" style={{ paddingLeft: `${Math.min(depth, 8)}rem` }}><AgentSign name={s.agent} /> <span class="hide">{s.agent} · </span>{[s.archived && "archived", s.problems > 0 && "damaged", by !== "project" && s.project, counted(s.messages, "message"), s.branches > 1 && counted(s.branches, "branch", "branches"), s.tokens && short(s.tokens) + " tokens"].filter(Boolean).join(" · ")}</span>
    <span class="tags">{s.tags.map((t) => "#" + t).join(" ")}{s.cost && s.cost.cost_micro_usd > 0 && <small title={cost(s.cost)}> {narrow(s.cost)}</small>}</span>
  </div>
}

function Nothing({ filter, unknown, found }: { filter: string, unknown?: Unknown[], found?: Found }) {
  const { filters } = useContext(Who), may = useMay("write")
  if (!filter) return <div class="empty"><h2>There are no conversations yet</h2><ol>
    <li>Bring in those of the agents on the machine of the server:<br /><code>coppice import --all</code></li>
    <li>See which agents there are, without importing anything:<br /><code>coppice import</code></li>
    <li>{may ? <><Link to="/new">Begin a conversation</Link> here <kbd>c</kbd></> : <>Begin one in a terminal: <code>coppice chat</code></>}</li></ol></div>
  return <div class="empty"><p>Nothing was found.</p>
    {unknown?.map((u) => <p>No session has {u.filter}:{u.value}{u.did_you_mean?.length ? `; did you mean ${u.did_you_mean.join(", ")}` : u.known?.length ? `; there are ${u.known.join(", ")}` : ""}.</p>)}
    {found?.did_you_mean?.length ? <p>Did you mean {found.did_you_mean.join(", or ")}?</p> : null}
    {found?.not_filters?.map((name) => <p>{name}: is not a filter; there are {filters.join(", ")}.</p>)}</div>
}

// ---- those in which something was said

const foundAtATime = 50

function Hits(p: Props & { onClear: () => void }) {
  const may = useMay("write")
  const [found, setFound] = useState<Found>()
  const hits = usePages<Hit>(foundAtATime, async (from, count, signal) => {
    const r = await get<Found>("/v1/search", { query: p.query, typing: true, by_session: true, offset: from, limit: count }, signal)
    if (from === 0) setFound(r)
    return { total: r.matches, rows: r.hits }
  }, [p.query])
  const [cur, move] = useState(0)
  useEffect(() => move(0), [p.query])
  const hit = hits.at(cur)
  useEffect(() => { if (hit) p.onSelect(hit.session) }, [hit?.session])
  const open = (h?: Hit) => { if (h) go(addressOfHit(h)) }
  useKeys(p.active ? { ...moves(cur, hits.total, move), Enter: () => open(hit), Escape: p.onClear, ...(hit ? { ...sessionKeys([hit.session], may), ".": () => void sessionActions([hit.session], may) } : {}) } : {})
  return <>
    <p class="count" role="status">{hits.ready && found ? (found.bounded ? "more than " : "") + counted(hits.total, "conversation") : "searching…"}</p>
    <Failed error={hits.error} />
    {hits.ready && !hits.total && !hits.error && <Nothing filter={p.query} unknown={found?.unknown} found={found} />}
    <FixedList label="hits" count={hits.total} height={92} cur={cur} at={hits.at} need={hits.need} onCur={move} to={addressOfHit}
      row={(h) => h ? <div class={h.session === p.open ? "session hit current" : "session hit"}>
        <b dir="auto">{h.title || "untitled"}</b><time title={exact(h.updated)}>{ago(h.updated)}</time>
        <span class="snippet" dir="auto">{highlighted(h.snippet, h.highlights)}</span>
        <span class="facts"><AgentSign name={h.agent} /> <span class="hide">{h.agent} · </span>{[h.project, h.tool || h.role || h.kind, (h.hits ?? 0) > 1 ? counted(h.hits!, "hit") : ""].filter(Boolean).join(" · ")}</span></div> : <span class="wait" />} />
  </>
}

const addressOfHit = (h: Hit) => path`/s/${h.link || h.session}/e/${h.entry}` + (h.highlights.length ? path`?q=${matched(h)}` : "")

/** matched is the first text in a hit that matched, so that the search can go on from there. */
const matched = (h: Hit) => new TextDecoder().decode(new TextEncoder().encode(h.snippet).slice(...h.highlights[0]))
