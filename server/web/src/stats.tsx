// What was used, by day, model, project and tool.
import { useEffect, useRef, useState } from "preact/hooks"
import uPlot from "uplot"
import { type Count, get, path, type Usage } from "./api"
import { cost, counted, Failed, Link, short, useAsked, useTitle } from "./ui"

type Result = {
  messages: number, total: Usage, cached_percent?: number, days: Usage[], models: Usage[], projects: Usage[], agents: Usage[], sessions: Usage[], tools: Count[], hours: number[], titles?: Record<string, string>
}

const spans: [string, number][] = [["7 days", 7], ["30 days", 30], ["90 days", 90], ["a year", 365], ["all", 0]]
const tokens = (u: Usage) => u.input + u.cache_read + u.cache_write + u.output + u.recorded

export function Stats() {
  const [days, setDays] = useState(30)
  const asked = useAsked((signal) => get<Result>("/v1/stats", {
    since: days ? new Date(Date.now() - days * 864e5).toISOString() : undefined, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  }, signal), [days])
  const r = asked.value
  useTitle("Usage")
  return <section class="stats" aria-label="Usage"><h1>Usage</h1>
    <p class="tools" role="group" aria-label="Time">{spans.map(([name, n]) => <button aria-pressed={n === days} onClick={() => setDays(n)}>{name}</button>)}</p>
    <Failed error={asked.error} />
    {r && <>
      <dl class="totals"><div><dt>Cost</dt><dd>{cost(r.total)}</dd></div><div><dt>Tokens</dt><dd>{short(tokens(r.total))}</dd></div><div><dt>From the cache</dt><dd>{r.cached_percent === undefined ? "–" : r.cached_percent + "%"}</dd></div><div><dt>Messages</dt><dd>{short(r.messages)}</dd></div></dl>
      <Chart title="Tokens by day" days={r.days} of={tokens} show={short} />
      <Chart title="Cost by day" days={r.days} of={(u) => u.cost_micro_usd} show={(n) => "$" + String(+(n / 1e6).toPrecision(3))} />
      <div class="tables"><Table title="Models" rows={r.models} /><Table title="Projects" rows={r.projects} /><Table title="Agents" rows={r.agents} />
        <Table title="Conversations" rows={r.sessions.slice(0, 15)} name={(key) => <Link to={path`/s/${key}`}>{r.titles?.[key] ?? key}</Link>} />
        <section><h2>Tools</h2><div class="wide"><table><tbody>{r.tools.slice(0, 15).map((t) => <tr><th scope="row">{t.name}</th><td class="right">{t.count.toLocaleString("en")}</td></tr>)}</tbody></table></div></section></div>
    </>}
  </section>
}

function Table({ title, rows, name }: { title: string, rows: Usage[], name?: (key: string) => preact.ComponentChildren }) {
  if (!rows.length) return null
  return <section><h2>{title}</h2><div class="wide"><table><thead><tr><th>{title.replace(/s$/, "")}</th><th class="right">Tokens</th><th class="right">Cost</th></tr></thead>
    <tbody>{rows.slice(0, 15).map((u) => <tr><th scope="row" dir="auto">{u.key ? name?.(u.key) ?? u.key : "none"}</th><td class="right">{short(tokens(u))}</td><td class="right">{cost(u)}</td></tr>)}</tbody></table></div></section>
}

function Chart({ title, days, of, show }: { title: string, days: Usage[], of: (u: Usage) => number, show: (n: number) => string }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const b = box.current!
    if (!days.length) return
    const all = filled(days)
    const css = (name: string) => getComputedStyle(b).getPropertyValue(name).trim()
    let plot: uPlot | undefined
    const draw = () => {
      plot?.destroy()
      const axis = { stroke: css("--soft"), grid: { stroke: css("--edge"), width: 1 }, ticks: { show: false }, font: "12px system-ui" }
      plot = new uPlot({
        width: b.clientWidth, height: 190, cursor: { points: { show: false }, drag: { x: false, y: false } }, legend: { show: true },
        scales: { x: { range: (_, from, to) => [from - 43200, to + 43200] } },
        axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(show) }],
        series: [{ label: "Day", value: (_, t) => t == null ? "" : new Date(t * 1000).toLocaleDateString() }, { label: title, stroke: css("--accent"), fill: css("--accent"), points: { show: false }, paths: uPlot.paths.bars!({ size: [0.7, 40] }), value: (_, v) => v == null ? "" : show(v) }],
      }, [all.map(([at]) => at), all.map(([, u]) => u ? of(u) : 0)], b)
    }
    draw()
    const seen = new ResizeObserver(() => plot?.setSize({ width: b.clientWidth, height: 190 })), dark = matchMedia("(prefers-color-scheme: dark)")
    seen.observe(b)
    dark.addEventListener("change", draw)
    return () => { seen.disconnect(); dark.removeEventListener("change", draw); plot?.destroy() }
  }, [days])
  const sum = days.reduce((n, u) => n + of(u), 0)
  return <figure class="chart"><figcaption>{title}</figcaption><div ref={box} role="img" aria-label={`${title}: ${show(sum)} on ${counted(days.length, "day")}`} /></figure>
}

/** filled adds the days on which nothing was said. */
function filled(days: Usage[]): [number, Usage | undefined][] {
  const by = new Map(days.map((u) => [u.key!, u])), keys = [...by.keys()].sort()
  const out: [number, Usage | undefined][] = []
  for (let t = Date.parse(keys[0] + "T12:00:00Z"); t <= Date.parse(keys[keys.length - 1] + "T12:00:00Z"); t += 864e5) out.push([t / 1000, by.get(new Date(t).toISOString().slice(0, 10))])
  return out
}
