// Two branches beside each other: where they part, and what each of them did.
import { type Count, get, path } from "./api"
import { Drawn, textOf } from "./drawn"
import { counted, Failed, Link, money, short, useAsked, useKeys, go } from "./ui"

type Side = { entries: number, prompts: number, calls: number, tools: Count[], errors: number, files: { path: string, changes: number, entry: string }[], tokens: number, cost_micro_usd: number, answer?: string, answer_entry?: string }
type Step = { entry: string, kind: string, gist: string, outcome?: string, failed: boolean }
type Result = { session: string, other?: string, a: string, b: string, ancestor: string, shared: number, side_a: Side, side_b: Side, steps?: { a?: Step, b?: Step, same: boolean }[] }

const mostSteps = 300

export function Compare({ id, a, b }: { id: string, a: string, b: string }) {
  const asked = useAsked((signal) => get<Result>(path`/v1/sessions/${id}/compare`, { a, b, brief: true }, signal), [id, a, b])
  const r = asked.value
  useKeys({ p: () => { if (r?.ancestor) go(path`/s/${id}/e/${r.ancestor}`) }, Escape: () => go(path`/s/${id}/tree`) })
  if (!r) return <Failed error={asked.error} />
  const other = r.other ?? id, steps = r.steps ?? []
  return <div class="compare">
    <p class="facts">They share {counted(r.shared, "entry", "entries")}{r.ancestor && <>, the last of which is <Link to={path`/s/${id}/e/${r.ancestor}`} title="p">{r.ancestor}</Link></>}.</p>
    <div class="sides"><Sum id={id} name={r.a} side={r.side_a} /><Sum id={other} name={r.b} side={r.side_b} /></div>
    <h2 id="steps">Step by step</h2>
    <div class="wide" tabIndex={0} role="region" aria-labelledby="steps"><table class="steps"><thead><tr><th scope="col">{r.a}</th><th scope="col">{r.b}</th></tr></thead>
      <tbody>{steps.slice(0, mostSteps).map((s) => <tr class={s.same ? "same" : ""}><td>{s.a && <One id={id} s={s.a} />}</td><td>{s.b && <One id={other} s={s.b} />}</td></tr>)}</tbody></table></div>
    {steps.length > mostSteps && <p class="soft">These are the first {mostSteps} of {steps.length} steps.</p>}
  </div>
}

function Sum({ id, name, side }: { id: string, name: string, side: Side }) {
  return <section aria-label={name}><h2><Link to={path`/s/${id}/e/${name}`}>{name}</Link></h2>
    <p class="facts">{[counted(side.entries, "entry", "entries"), counted(side.prompts, "prompt"), counted(side.calls, "call"), side.errors ? `${side.errors} failed` : "", side.tokens ? short(side.tokens) + " tokens" : "", side.cost_micro_usd ? money(side.cost_micro_usd) : ""].filter(Boolean).join(" · ")}</p>
    {side.tools.length > 0 && <p>{side.tools.map((t) => <><code>{t.name}</code> {t.count}× </>)}</p>}
    {side.files.length > 0 && <ul>{side.files.slice(0, 20).map((f) => <li><Link to={path`/s/${id}/e/${f.entry}`}><code>{f.path}</code></Link></li>)}</ul>}
    {side.answer && <Drawn class="body last" what={{ content: [textOf(side.answer)] }} before={side.answer} />}
  </section>
}

const One = ({ id, s }: { id: string, s: Step }) => <Link to={path`/s/${id}/e/${s.entry}`}><b>{s.kind}</b> <span dir="auto">{s.gist}</span>{s.outcome && <span class={s.failed ? "bad" : "soft"}> → {s.outcome}</span>}</Link>
