// The list of conversations, and search as one types.
import { useEffect, useRef, useState } from "preact/hooks"
import { type Found, get, type Hit, type Session } from "./api"
import { ago, counted, exact, Failed, FixedList, go, highlighted, moves, useAsked, useKeys, usePages, short } from "./ui"
import { sessionKeys } from "./actions"
import { useLive } from "./live"

const pageSize = 100

type Props = { active: boolean, open: string, selected: string, onSelect: (id: string) => void, query: string }

export function Sessions(p: Props) {
  const [query, type] = useState(p.query)
  const [asked, ask] = useState(p.query)
  const box = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const t = setTimeout(() => ask(query.trim()), 120)
    return () => clearTimeout(t)
  }, [query])
  useEffect(() => { // an address with a search can be kept
    if (p.active) go(asked ? "/?q=" + encodeURIComponent(asked) : "/", true)
  }, [asked])
  const keyed = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown" || e.key === "Enter") {
      e.preventDefault()
      box.current!.blur()
      if (asked !== query.trim()) ask(query.trim())
    }
  }
  return <section class={p.active ? "sessions active" : "sessions"} aria-label="Conversations">{p.active && <h1 class="hide">Conversations</h1>}
    <form role="search" onSubmit={(e) => e.preventDefault()}>
      <input id="search" ref={box} type="search" value={query} onInput={(e) => type(e.currentTarget.value)} onKeyDown={keyed}
        aria-label="Search everything that was said" placeholder="Search  (agent: project: tag: tool: since:)" autocomplete="off" spellcheck={false} />
    </form>
    {asked ? <Hits {...p} query={asked} /> : <All {...p} />}
  </section>
}

function All(p: Props) {
  const pages = usePages<Session>(pageSize, async (from, _, signal) => {
    const r = await get<{ sessions: Session[], total: number }>("/v1/sessions", { limit: pageSize, page: from / pageSize + 1, total: true, nonempty: true, roots: false }, signal)
    return { total: r.total, rows: r.sessions }
  }, [])
  useLive(undefined, true, pages.renew)
  const [cur, move] = useState(0)
  useEffect(() => {
    const s = pages.at(cur)
    if (s) p.onSelect(s.id)
  }, [cur, pages.n])
  const at = pages.at(cur)
  useKeys(p.active ? { ...moves(cur, pages.total, move), Enter: () => { if (at) go(`/s/${encodeURIComponent(at.id)}`) }, ...(at ? sessionKeys(at.id, at) : {}) } : {})
  return <>
    <p class="count" role="status">{pages.ready ? counted(pages.total, "conversation") : "…"}</p>
    <Failed error={pages.error} />
    <FixedList label="conversations" count={pages.total} height={66} cur={cur} at={pages.at} need={pages.need} onCur={move}
      onOpen={(i) => { const s = pages.at(i); if (s) go(`/s/${encodeURIComponent(s.id)}`) }} row={(s) => s ? <SessionRow s={s} open={s.id === p.open} /> : <span class="wait" />} />
  </>
}

function SessionRow({ s, open }: { s: Session, open: boolean }) {
  return <div class={open ? "session current" : "session"}>
    <b dir="auto">{s.pinned ? "★ " : ""}{s.title || "untitled"}</b><time title={exact(s.updated)}>{ago(s.updated)}</time>
    <span class="facts">{[s.relation, s.agent, s.project, counted(s.messages, "message"), s.branches > 1 ? counted(s.branches, "branch", "branches") : "", s.tokens ? short(s.tokens) + " tokens" : ""].filter(Boolean).join(" · ")}</span>
    <span class="tags">{s.tags.map((t) => "#" + t).join(" ")}</span>
  </div>
}

function Hits(p: Props) {
  const found = useAsked((signal) => get<Found>("/v1/search", { query: p.query, by_session: true, limit: 200 }, signal), [p.query])
  const [cur, move] = useState(0)
  const hits = found.value?.hits ?? []
  useEffect(() => move(0), [p.query])
  useEffect(() => { if (hits[cur]) p.onSelect(hits[cur].session) }, [cur, found.value])
  const open = (h?: Hit) => { if (h) go(`/s/${encodeURIComponent(h.link || h.session)}/e/${encodeURIComponent(h.entry)}?q=${encodeURIComponent(p.query)}`) }
  useKeys(p.active ? { ...moves(cur, hits.length, move), Enter: () => open(hits[cur]), ...(hits[cur] ? sessionKeys(hits[cur].session) : {}) } : {})
  const v = found.value
  return <>
    <p class="count" role="status">{found.busy && !v ? "searching…" : v ? (v.bounded ? "more than " : "") + counted(v.matches, "conversation") : ""}</p>
    <Failed error={found.error} />
    {v && !hits.length && <div class="empty">Nothing was found.
      {v.unknown?.map((u) => <p>{u.filter}:{u.value} is not known; there are {u.known.slice(0, 8).join(", ")}.</p>)}
      {v.did_you_mean?.length ? <p>Did you mean {v.did_you_mean.join(", or ")}?</p> : null}</div>}
    <FixedList label="hits" count={hits.length} height={92} cur={cur} at={(i) => hits[i]} need={nothing} onCur={move} onOpen={(i) => open(hits[i])}
      row={(h) => h && <div class={h.session === p.open ? "session hit current" : "session hit"}>
        <b dir="auto">{h.title || "untitled"}</b><time title={exact(h.updated)}>{ago(h.updated)}</time>
        <span class="snippet" dir="auto">{highlighted(h.snippet, h.highlights)}</span>
        <span class="facts">{[h.agent, h.project, h.kind, (h.hits ?? 0) > 1 ? counted(h.hits!, "hit") : ""].filter(Boolean).join(" · ")}</span></div>} />
  </>
}
const nothing = () => {}
