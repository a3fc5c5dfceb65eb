// A conversation and the views of it.
import { get, path, Problem, type Session } from "./api"
import { counted, Failed, go, Link, short, useAsked, useKeys, useMay, useTitle } from "./ui"
import { sessionActions, sessionKeys } from "./actions"
import { useLive } from "./live"
import { Transcript } from "./transcript"
import { Tree } from "./tree"
import { Context } from "./context"
import { Compare } from "./compare"
import { Share } from "./share"
import { Images } from "./images"
import { Composer } from "./chat"
import { Picture } from "./picture"
import { useTurn } from "./turns"

const views: [string, string, string][] = [["", "Transcript", ""], ["tree", "Tree", "t"], ["context", "Context", "x"], ["picture", "Picture", "w"], ["images", "Images", "i"], ["share", "Export", "o"]]

export function Conversation({ id, rest, query }: { id: string, rest: string[], query: URLSearchParams }) {
  const about = useAsked((signal) => get<Session>(path`/v1/sessions/${id}`, undefined, signal), [id])
  const s = about.value
  useLive(id, true, async () => about.again())
  useTitle(s && (s.title || "untitled"))
  const may = useMay("write"), turns = useTurn(id)
  const [view, a, b] = rest
  useKeys({ ...sessionKeys([id], may), ".": () => void sessionActions([id], may), Escape: () => go(view && view !== "e" ? path`/s/${id}` : "/"), c: () => document.querySelector<HTMLTextAreaElement>("#say")?.focus() })
  const room = view === "e" || !view ? "" : view
  const inside = () => {
    switch (room) {
      case "tree": return <Tree id={id} at={query.get("at") ?? ""} />
      case "context": return <Context id={id} leaf={query.get("leaf") ?? ""} />
      case "compare": return <Compare id={id} a={a ?? ""} b={b ?? ""} />
      case "picture": return <Picture id={id} />
      case "images": return <Images id={id} />
      case "share": return <Share id={id} />
    }
    return <Transcript id={id} entry={view === "e" ? a : undefined} query={query.get("q") || undefined} turns={turns} foot={may && <Composer id={id} turns={turns} />} />
  }
  if (about.error instanceof Problem && about.error.status === 404) return <Unknown id={id} problem={about.error} />
  return <section class="conversation" aria-label="Conversation">
    <header class="about">
      <Link to="/" class="back" aria-label="Back to the list" title="Back (Esc)">‹</Link>
      <div><h1 dir="auto">{s?.title || (about.busy ? "…" : "untitled")}</h1>
        {s && <p class="facts">{[s.agent, s.project, counted(s.messages, "message"), s.branches > 1 && counted(s.branches, "branch", "branches"), s.tokens && short(s.tokens) + " tokens"].filter(Boolean).join(" · ")}
          {s.tags.map((t) => <span class="tag"> #{t}</span>)}{s.parent && <> · <Link to={path`/s/${s.parent}`} title={s.parent}>{s.relation} of another one</Link></>}</p>}</div>
      <nav class="views" aria-label="Views of the conversation">{views.map(([to, name, key]) =>
        <Link to={path`/s/${id}` + (to && "/" + to)} aria-current={to === room ? "page" : undefined} title={key ? `${name} (${key})` : name}>{name}</Link>)}<button onClick={() => void sessionActions([id], may)} title="What can be done (.)" aria-label="What can be done" aria-haspopup="dialog">…</button></nav>
    </header>
    <Failed error={about.error} />
    {!about.error && inside()}
  </section>
}

/** Unknown is there instead of a conversation that does not exist, or not any more. */
function Unknown({ id, problem }: { id: string, problem: Problem }) {
  return <section class="unknown" aria-label="Not found">
    <h1>There is no conversation “{id.length > 40 ? id.slice(0, 40) + "…" : id}”</h1>
    <p role="alert">It may have been deleted, or the address is not complete. {problem.hint}</p>
    <p class="tools"><Link to="/" class="button">All conversations</Link><Link to={`/?q=${encodeURIComponent(id)}`} class="button">Search for it</Link></p>
  </section>
}
