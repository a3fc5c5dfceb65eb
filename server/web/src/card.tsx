// What a person needs to take up a conversation again.
import { type Card, get, path, type Rows } from "./api"
import { AgentSign } from "./agent"
import { useTrusted } from "./drawn"
import { cost, counted, exact, Failed, Link, useAsked } from "./ui"

export function CardView({ id }: { id: string }) {
  const card = useAsked((signal) => get<Card>(path`/v1/sessions/${id}/card`, undefined, signal), [id])
  const c = card.value, entry = c?.answer_entry
  const answer = useAsked(async (signal) => ({ entry, html: entry ? (await get<Rows>(path`/web/rows/${c!.session.id}`, { at: entry, from: 0, count: 1, limit: 4000 }, signal)).rows[0]?.html ?? "" : "" }), [c?.session.id, entry])
  const inner = useTrusted(answer.value?.html ?? "")
  if (!c) return <section class="card"><Failed error={card.error} /></section>
  const s = c.session, at = (entry: string) => path`/s/${s.id}/e/${entry}`
  return <section class="card" aria-label="Resume card">
    <h1 dir="auto"><Link to={path`/s/${s.id}`}>{s.title || "untitled"}</Link></h1>
    <p class="facts"><AgentSign name={s.agent} /> {[s.agent, s.project, exact(s.updated), counted(s.messages, "message"), c.model, c.spent.responses ? cost(c.spent) : ""].filter(Boolean).join(" · ")}</p>
    {c.unfinished && <p class="stop">This is not finished: it waits for the model, or for a call.</p>}
    {c.last && <><h2>Asked last</h2><p dir="auto" class="asis">{c.last}</p></>}
    {c.answer && <><h2>Answered</h2>{answer.value?.entry === entry && answer.value?.html ? <div class="answer" dangerouslySetInnerHTML={inner} /> : <p dir="auto" class="asis">{c.answer}</p>}{c.answer_entry && <p><Link to={at(c.answer_entry)}>Read on</Link></p>}</>}
    {c.step && <><h2>Last step</h2><p dir="auto" class="step"><Link to={at(c.step.entry)}><code>{c.step.gist}</code></Link>{c.step.outcome && <span class={c.step.failed ? "bad" : "soft"}> → {c.step.outcome}</span>}</p></>}
    {c.open.length > 0 && <><h2>Open calls</h2><ul>{c.open.map((o) => <li><Link to={at(o.entry)}><code>{o.gist}</code></Link></li>)}</ul></>}
    {c.todos.length > 0 && <><h2>Plan</h2><ul class="todos">{c.todos.map((t) => <li class={({ open: "todo", active: "doing", done: "done" } as Record<string, string>)[t.state]} dir="auto">{t.text}</li>)}</ul></>}
    {c.files.length > 0 && <><h2>Files changed</h2><ul>{c.files.slice(0, 20).map((f) => <li><Link to={at(f.entry)}><code>{f.path}</code></Link>{f.changes > 1 && <small> {f.changes}×</small>}</li>)}</ul></>}
    {c.first && c.first !== c.last && <><h2>Asked first</h2><p dir="auto" class="asis">{c.first}</p></>}
  </section>
}
