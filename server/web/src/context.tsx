// What the model would be sent now, what is left out, and what fills the window.
import { path, post } from "./api"
import { counted, Failed, FixedList, go, Link, moves, short, useAsked, useKeys } from "./ui"
import { useState } from "preact/hooks"

type Line = { entry: string, kind: string, gist: string, tokens: number, bytes: number, source: string, category: string }
type Result = {
  leaf: string, provider?: string, model?: string, thinking_level?: string, tokens: number, uncounted: number, compaction?: string
  measured: { tokens: number, room?: number, counter: string, entries: number, categories: { category: string, entries: number, tokens: number }[] }
  left_out: { reason: string, entry_id?: string, count?: number, detail?: string }[], lines?: Line[]
}

export function Context({ id, leaf }: { id: string, leaf: string }) {
  const asked = useAsked((signal) => post<Result>(path`/v1/sessions/${id}/context`, { brief: true, ...(leaf ? { leaf } : {}) }, signal), [id, leaf])
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
    {r.left_out.length > 0 && <details open><summary>Left out or changed: {r.left_out.length}</summary><ul>{r.left_out.slice(0, 50).map((l) =>
      <li>{l.reason}{l.count ? `, ${counted(l.count, "entry", "entries")}` : ""}{l.entry_id && <> · <Link to={path`/s/${id}/e/${l.entry_id}`}>{l.entry_id}</Link></>}{l.detail && <> · {l.detail}</>}</li>)}</ul></details>}
    <FixedList label="context" count={lines.length} height={28} cur={cur} at={(i) => lines[i]} need={nothing} onCur={move}
      row={(l) => l && <div class="node live" onDblClick={() => open()}><b>{l.kind}</b><span dir="auto">{l.gist}</span><small>{l.tokens.toLocaleString("en")} {l.source === "estimate" ? "est." : ""}</small></div>} />
  </div>
}
const nothing = () => {}
