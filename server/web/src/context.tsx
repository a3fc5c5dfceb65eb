// What the model would be sent now, what is left out, and what fills the window.
import { get, path, post } from "./api"
import { counted, exact, Failed, FixedList, go, Link, moves, short, useAsked, useKeys } from "./ui"
import { useState } from "preact/hooks"

type Line = { entry: string, kind: string, gist: string, tokens: number, bytes: number, source: string, category: string }
type Result = {
  leaf: string, provider?: string, model?: string, thinking_level?: string, tokens: number, uncounted: number, compaction?: string
  measured: { tokens: number, room?: number, counter: string, entries: number, categories: { category: string, entries: number, tokens: number }[] }
  left_out: { reason: string, entry_id?: string, count?: number, detail?: string }[], lines?: Line[]
}

type Request = { session: string, id: string, time: string, cached_percent?: number, usage?: { input?: number, cache_read?: number, cache_write?: number }, changed?: string, why?: string, error?: string }

/** Requests are the last ones that were sent, and where they missed the provider's cache. */
function Requests({ all }: { all: Request[] }) {
  if (!all.length) return null
  return <details open><summary>The last requests, and where they missed the cache</summary><ul>{[...all].reverse().map((r) => {
    const u = r.usage, sent = (u?.input ?? 0) + (u?.cache_read ?? 0) + (u?.cache_write ?? 0)
    return <li><Link to={path`/s/${r.session}/e/${r.id}`}>{exact(r.time)}</Link>{u && ` · ${counted(sent, "token")} sent`}{r.cached_percent !== undefined && `, ${r.cached_percent}% from the cache`}{[r.why, r.error].filter(Boolean).map((why) => <> · {why}</>)}</li>
  })}</ul></details>
}

export function Context({ id, leaf }: { id: string, leaf: string }) {
  const asked = useAsked((signal) => post<Result>(path`/v1/sessions/${id}/context`, { brief: true, ...(leaf ? { leaf } : {}) }, signal), [id, leaf])
  const sent = useAsked((signal) => get<{ requests: Request[] }>(path`/v1/sessions/${id}/requests`, undefined, signal), [id])
  const requests = sent.value?.requests ?? [], missed = requests.at(-1)?.changed
  const [cur, move] = useState(0)
  const r = asked.value, lines = r?.lines ?? []
  const open = (i = cur) => { if (lines[i]) go(path`/s/${id}/e/${lines[i].entry}`) }
  useKeys({ ...moves(cur, lines.length, move), Enter: () => open() })
  if (!r) return <Failed error={asked.error} />
  const m = r.measured, room = m.room || Math.max(m.tokens, 1)
  return <div class="context">
    <p class="facts">{[r.model && `${r.provider ?? ""}/${r.model}`, r.thinking_level && `thinking ${r.thinking_level}`, `${short(m.tokens)} tokens` + (m.room ? ` of ${short(m.room)}` : ""), `counted by ${m.counter}`, counted(m.entries, "entry", "entries")].filter(Boolean).join(" · ")}</p>
    <table class="bars"><caption class="hide">Tokens by category</caption><tbody>{m.categories.filter((c) => c.tokens).map((c, i) => <tr><th scope="row">{c.category.toLowerCase().replaceAll("_", " ")}</th>
      <td><svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class={`hue${i % 6}`} width={Math.max(0.3, 100 * c.tokens / room)} height="4" /></svg></td><td class="right">{c.tokens.toLocaleString("en")}</td><td class="right soft">{counted(c.entries, "entry", "entries")}</td></tr>)}</tbody></table>
    {r.left_out.length > 0 && <details open={r.left_out.length < 6}><summary>Left out or changed: {r.left_out.length}</summary><ul>{r.left_out.slice(0, 50).map((l) =>
      <li>{l.reason}{l.count ? `, ${counted(l.count, "entry", "entries")}` : ""}{l.entry_id && <> · <Link to={path`/s/${id}/e/${l.entry_id}`} title={l.entry_id}>{l.entry_id.length > 13 ? l.entry_id.slice(0, 8) + "…" : l.entry_id}</Link></>}{l.detail && <> · {l.detail}</>}</li>)}</ul></details>}
    <Requests all={requests} />
    <FixedList label="context" count={lines.length} height={28} cur={cur} at={(i) => lines[i]} need={nothing} onCur={move}
      row={(l) => l && <div class="node live" onDblClick={() => open()}><b>{l.kind}</b>{l.entry === missed && <mark>the cache missed from here</mark>}<span dir="auto">{l.gist}</span><small>{l.tokens.toLocaleString("en")} {l.source === "estimate" ? "est." : ""}</small></div>} />
  </div>
}
const nothing = () => {}
