// What was used: when, by which models, projects and agents, with which tools.
import { useState } from "preact/hooks"
import { type Count, get, path, type Usage } from "./api"
import { AgentSign } from "./agent"
import { cost, Failed, money, narrow, short, useAsked, useTitle } from "./ui"
import { type Active, only, Rank, type Ranked, Stacked, useWidth, Year } from "./pictures"

type Bin = Usage & { key: string, until: string, part_tokens: number[], part_costs: number[] }
type Result = {
  messages: number, total: Usage, cached_percent?: number, bin: string, bins: Bin[], parts: Usage[], rest: number, active: Active[]
  models: Usage[], projects: Usage[], agents: Usage[], sessions: Usage[], tools: Count[], failed: Count[], spent: Record<string, number>, titles?: Record<string, string>
}

const spans: [string, number][] = [["7 days", 7], ["30 days", 30], ["90 days", 90], ["a year", 365], ["all", 0]]
const dividers = ["model", "project", "agent"]
const tokens = (u: Usage) => u.input + u.cache_read + u.cache_write + u.output + u.recorded
const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone
/** midnight is when the day some days ago began. */
const midnight = (days: number) => { const t = new Date(); t.setHours(0, 0, 0, 0); t.setDate(t.getDate() - days); return t.toISOString() }
/** here is today's date where the reader is. */
const here = () => { const t = new Date(); return new Date(+t - t.getTimezoneOffset() * 6e4).toISOString().slice(0, 10) }
const stats = (query: Record<string, string | number | undefined>, signal: AbortSignal) => get<Result>("/v1/stats", { time_zone: zone(), ...query }, signal)

function Choice<T extends string | number>({ label, all, is, set }: { label: string, all: [string, T][], is: T, set: (to: T) => void }) {
  return <span role="group" aria-label={label}>{all.map(([name, to]) => <button aria-pressed={to === is} onClick={() => set(to)}>{name}</button>)}</span>
}

export function Stats() {
  const [days, setDays] = useState(30), [by, divide] = useState("model"), [bin, setBin] = useState("")
  const [measure, setMeasure] = useState("cost")
  const [box, width] = useWidth<HTMLElement>()
  const columns = Math.max(12, Math.floor(width / 120) * 12) // a column and its gap have at least ten pixels
  const asked = useAsked(async (signal) => width ? stats({ since: days ? midnight(days - 1) : undefined, by, bin, columns }, signal) : undefined, [days, by, bin, columns, width > 0])
  const year = useAsked((signal) => stats({ since: midnight(378) }, signal), [])
  const r = asked.value
  useTitle("Usage")
  const name = (u: Usage, i: number) => r!.rest > 0 && i === r!.parts.length - 1 ? `${r!.rest} others` : u.key || "none"
  const isMoney = measure === "cost" && !!r?.total.cost_micro_usd
  return <section class="stats" aria-label="Usage" ref={box}><h1>Usage</h1>
    <Failed error={asked.error ?? year.error} />
    {year.value && <Year days={year.value.active} today={here()} />}
    <p class="tools"><Choice label="Time" all={spans} is={days} set={setDays} /></p>
    {r && <div aria-busy={asked.busy}>
      <dl class="totals"><div><dt>Cost</dt><dd>{cost(r.total)}</dd></div><div><dt>Tokens</dt><dd>{short(tokens(r.total))}</dd></div><div><dt>From the cache</dt><dd>{r.cached_percent === undefined ? "–" : r.cached_percent + "%"}</dd></div><div><dt>Messages</dt><dd>{short(r.messages)}</dd></div></dl>
      <h2>{isMoney ? "Cost" : "Tokens"} by {r.bin}</h2>
      <p class="tools"><Choice label="Measure" all={[["Cost", "cost"], ["Tokens", "tokens"]]} is={isMoney ? "cost" : "tokens"} set={setMeasure} />
        <Choice label="Divided by" all={dividers.map((d) => ["by " + d, d])} is={by} set={divide} />
        <Choice label="Length of a column" all={[["auto", ""], ["days", "day"], ["weeks", "week"], ["months", "month"]].filter(([, b]) => fits(b, days || spanOf(r.bins), columns)) as [string, string][]} is={bin} set={setBin} /></p>
      {r.bins.length ? <Stacked title={isMoney ? "Cost" : "Tokens"} bin={r.bin} bins={r.bins} show={isMoney ? money : short}
        parts={r.parts.map((u, i) => ({ name: name(u, i), to: u.key && !(r.rest > 0 && i === r.parts.length - 1) ? only(by, u.key) : undefined, unknown: isMoney && narrow(u) === "?", values: r.bins.map((b) => isMoney ? b.part_costs[i] : b.part_tokens[i]) }))} />
        : <p class="soft">Nothing was used in this time.</p>}
      <div class="ranks">
        <Used title="Models" what="model" rows={r.models} />
        <Used title="Projects" what="project" rows={r.projects} />
        <Used title="Agents" what="agent" rows={r.agents} />
        <Rank title="Most expensive conversations" what="conversation" heads={["tokens", "cost"]} rows={r.sessions.slice(0, 12).map((u) => ({ key: u.key!, name: r.titles?.[u.key!] || u.key!, to: path`/s/${u.key!}`, n: u.cost_micro_usd, cells: [short(tokens(u)), narrow(u)] }))} />
        <Rank title="Tools" what="tool" heads={["calls", "errors"]} rows={r.tools.map((t) => ({ key: t.name, name: t.name || "none", to: t.name ? only("tool", t.name) : undefined, n: t.count, cells: [t.count.toLocaleString("en"), errorsOf(r.failed, t)] }))} />
        <Rank title="Where the time went" what="who" heads={["time", "share"]} rows={timesOf(r.spent)} />
      </div>
    </div>}
  </section>
}

/** errorsOf says how many calls of a tool failed. */
function errorsOf(failed: Count[], tool: Count) {
  const n = failed.find((f) => f.name === tool.name)?.count
  return n ? <span class="bad">{n.toLocaleString("en")} · {Math.max(1, Math.round(100 * n / Math.max(tool.count, n)))}%</span> : ""
}

function timesOf(spent: Record<string, number>): Ranked[] {
  const all = spent.model_ms + spent.tools_ms + spent.person_ms
  const rows: [string, number][] = [["the model", spent.model_ms], ["tools", spent.tools_ms], ["waiting for a person", spent.person_ms]]
  return all ? rows.map(([name, ms]) => ({ key: name, name, n: ms, cells: [lasting(ms), Math.round(100 * ms / all) + "%"] })) : []
}

/** lasting is how long something took, in one unit or two. */
function lasting(ms: number): string {
  const min = Math.floor(ms / 6e4), two = (n: number, unit: string, rest: number, smaller: string) => `${n} ${unit}` + (rest ? ` ${rest} ${smaller}` : "")
  if (min < 1) return Math.round(ms / 1e3) + " s"
  if (min < 60) return min + " min"
  if (min < 1440) return two(Math.floor(min / 60), "h", min % 60, "min")
  return two(Math.floor(min / 1440), "d", Math.floor(min % 1440 / 60), "h")
}

/** spanOf is how many days some bins are. */
const spanOf = (bins: Bin[]) => bins.length ? (Date.parse(bins[bins.length - 1].until) - Date.parse(bins[0].key)) / 864e5 : 0
const fits = (bin: string, days: number, columns: number) => bin === "" || days / ({ day: 1, week: 7 }[bin] ?? 30) <= columns

function Used({ title, what, rows }: { title: string, what: string, rows: Usage[] }) {
  const row = (u: Usage): Ranked => ({
    key: u.key ?? "", name: what === "agent" && u.key ? <><AgentSign name={u.key} /> {u.key}</> : u.key || "none",
    to: u.key ? only(what, u.key) : undefined, n: tokens(u), cells: [short(tokens(u)), narrow(u)],
  })
  return <Rank title={title} what={what} heads={["tokens", "cost"]} rows={rows.map(row)} />
}
