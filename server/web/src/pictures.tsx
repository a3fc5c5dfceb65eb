// Charts, drawn by hand: what lies beside each other is in per cent and what lies above each other
// in pixels, so they fit every width. Every bar is a link to what it counts.
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { counted, Link } from "./ui"

/** useWidth is how wide an element is. */
export function useWidth<T extends HTMLElement>() {
  const box = useRef<T>(null), [width, set] = useState(0)
  useLayoutEffect(() => {
    const b = box.current!, look = () => set(b.clientWidth), seen = new ResizeObserver(look)
    look()
    seen.observe(b)
    return () => seen.disconnect()
  }, [])
  return [box, width] as const
}

/** said leads to what was said in some time: from a day on, until before another. */
export const said = (from: string, until: string) => "/?q=" + encodeURIComponent(`kind:text since:${from} until:${until}`)
/** only leads to what passes a filter. */
export const only = (filter: string, value: string) => "/?q=" + encodeURIComponent(filter + ":" + (/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value))

const day = (key: string, o: Intl.DateTimeFormatOptions) => new Date(key + "T12:00:00Z").toLocaleDateString(undefined, { timeZone: "UTC", ...o })
export const plusDays = (key: string, n: number) => new Date(Date.parse(key + "T12:00:00Z") + n * 864e5).toISOString().slice(0, 10)

/** nameOf is what a bin is called. */
export function nameOf(bin: string, key: string): string {
  if (bin === "month") return day(key, { month: "long", year: "numeric" })
  const text = day(key, { weekday: bin === "day" ? "short" : undefined, day: "numeric", month: "short", year: "numeric" })
  return bin === "week" ? "the week of " + text : text
}

const shortOf = (bin: string, key: string) => bin === "month" ? day(key, { month: "short", year: "2-digit" }) : day(key, { day: "numeric", month: "short" })

// ---- stacked columns

/** Part is a model, say. If nothing is known about its values, they are unknown, and not 0. */
export type Part = { name: string, to?: string, unknown: boolean, values: number[] }
type Columns = { title: string, bin: string, bins: { key: string, until: string }[], parts: Part[], show: (n: number) => string }

const height = 180

/** nice is a number that is not less than n, of which the half has one digit, too, so that the axis can say both. */
function nice(n: number): number {
  if (n <= 0) return 1
  const unit = 10 ** Math.floor(Math.log10(n))
  return [1, 2, 4, 6, 8, 10].map((m) => m * unit).find((m) => m >= n)!
}

/** Patterns tell the parts apart without colours. */
function Patterns({ id }: { id: string }) {
  const lines = ["", "M0 6L6 0", "", "M0 3H6", "M0 6L6 0M0 0L6 6", "M3 0V6"]
  return <defs>{lines.map((d, i) => <pattern id={id + i} width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" class={"part" + i} />{d && <path d={d} class="stroke" />}{i === 2 && <circle cx="3" cy="3" r="1.3" class="stroke" />}</pattern>)}</defs>
}

export function Stacked({ title, bin, bins, parts, show }: Columns) {
  const [box, width] = useWidth<HTMLDivElement>()
  const [at, look] = useState(-1)
  const sums = bins.map((_, i) => parts.reduce((n, p) => n + p.values[i], 0)), all = sums.reduce((a, b) => a + b, 0)
  const top = nice(Math.max(...sums, 0)), n = bins.length, y = (v: number) => height * (1 - v / top)
  const every = Math.max(1, Math.ceil(n / Math.max(1, Math.floor(width / 76)))), id = "p" + title.replace(/\W/g, "")
  const here = at >= 0 && at < n ? at : -1
  return <figure class="chart">
    <div ref={box}><svg width="100%" height={height + 22} role="group" aria-label={`${title}: ${show(all)} in ${counted(n, bin)}`} onPointerLeave={() => look(-1)}>
      <Patterns id={id} />
      {[0, 0.5, 1].map((f) => <><line class="grid" x2="100%" y1={y(top * f) + 0.5} y2={y(top * f) + 0.5} /></>)}
      {bins.map((b, i) => {
        let from = height
        return <Link to={said(b.key, b.until)} tabIndex={-1} onPointerEnter={() => look(i)} aria-label={`${nameOf(bin, b.key)}: ${show(sums[i])}`}>
          <title>{nameOf(bin, b.key)}: {show(sums[i])}</title><rect class="back" x={`${100 * i / n}%`} width={`${100 / n}%`} height={height} />
          {parts.map((p, k) => {
            const h = height * p.values[i] / top
            from -= h
            return h > 0 && <rect fill={`url(#${id}${k})`} x={`${100 * (i + 0.09) / n}%`} width={`${82 / n}%`} y={from} height={Math.max(h - (h > 2 ? 0.6 : 0), 0.6)} />
          })}
        </Link>
      })}
      {[0.5, 1].map((f) => <text x="0" y={y(top * f) + 13}>{show(top * f)}</text>)}
      {bins.map((b, i) => i % every === 0 && (i + every <= n || i === 0 || n - i > every / 2) && <text x={i ? `${100 * (i + 0.5) / n}%` : 0} y={height + 16} text-anchor={i ? "middle" : "start"}>{shortOf(bin, b.key)}</text>)}
    </svg></div>
    <table class="legend"><caption aria-live="off">{here < 0 ? "All of it" : nameOf(bin, bins[here].key)}: <b>{show(here < 0 ? all : sums[here])}</b></caption>
      <tbody>{parts.map((p, k) => <tr><th scope="row" dir="auto"><svg width="14" height="11" aria-hidden="true"><rect width="14" height="11" fill={`url(#${id}${k})`} /></svg>{p.to ? <Link to={p.to}>{p.name}</Link> : p.name}</th>
        <td class="right">{p.unknown ? "?" : show(here < 0 ? p.values.reduce((a, b) => a + b, 0) : p.values[here])}</td></tr>)}</tbody></table>
    <Behind of={title}><table><thead><tr><th>{bin}</th>{parts.map((p) => <th class="right" dir="auto">{p.name}</th>)}<th class="right">all</th></tr></thead>
      <tbody>{bins.map((b, i) => sums[i] > 0 && <tr><th scope="row"><Link to={said(b.key, b.until)}>{nameOf(bin, b.key)}</Link></th>{parts.map((p) => <td class="right">{p.unknown ? "?" : show(p.values[i])}</td>)}<td class="right">{show(sums[i])}</td></tr>)}</tbody></table></Behind>
  </figure>
}

/** Behind has the numbers of a chart. They are drawn when somebody wants to see them. */
export function Behind({ of, children }: { of: string, children: ComponentChildren }) {
  const [open, set] = useState(false)
  return <details class="behind" onToggle={(e) => set(e.currentTarget.open)}><summary>The numbers</summary>{open && <div class="wide" tabIndex={0} role="region" aria-label={"The numbers of " + of}>{children}</div>}</details>
}

// ---- a year, a square for each day

const cell = 11, gap = 3, left = 30

export type Active = { day: string, messages: number, level: number }

export function Year({ days, today }: { days: Active[], today: string }) {
  const [box, width] = useWidth<HTMLDivElement>()
  const weeks = Math.max(8, Math.min(53, Math.floor((width - left + gap) / (cell + gap))))
  const back = (new Date(today + "T12:00:00Z").getUTCDay() + 6) % 7, first = plusDays(today, -back - 7 * (weeks - 1))
  const by = new Map(days.map((d) => [d.day, d]))
  const cells = Array.from({ length: 7 * weeks - 6 + back }, (_, i) => plusDays(first, i))
  const inView = cells.map((key) => by.get(key)?.messages ?? 0), active = inView.filter((n) => n > 0).length
  const months = cells.filter((key, i) => i % 7 === 0 && (i === 0 || key.slice(0, 7) !== cells[i - 7].slice(0, 7)))
  return <figure class="year chart"><figcaption class="facts">{counted(inView.reduce((a, b) => a + b, 0), "message")} on {counted(active, "day")} of the last {weeks} weeks</figcaption>
    <div ref={box}>{width > 0 && <svg width="100%" height={7 * (cell + gap) + 16} role="group" aria-label={`Messages by day in the last ${weeks} weeks`}>
      {months.map((key, k) => {
        const x = left + Math.floor(cells.indexOf(key) / 7) * (cell + gap)
        const next = months[k + 1]
        return (!next || cells.indexOf(next) - cells.indexOf(key) > 14) && x < width - 24 && <text x={x} y="10">{day(key, { month: "short" })}</text>
      })}
      {["Mon", "Wed", "Fri"].map((name, k) => <text x="0" y={16 + (2 * k) * (cell + gap) + 10}>{name}</text>)}
      {cells.map((key, i) => {
        const n = inView[i], x = left + Math.floor(i / 7) * (cell + gap), y = 16 + (i % 7) * (cell + gap)
        const rect = <rect class={"l" + (by.get(key)?.level ?? 0)} x={x} y={y} width={cell} height={cell}><title>{nameOf("day", key)}: {counted(n, "message")}</title></rect>
        return n ? <Link to={said(key, plusDays(key, 1))} tabIndex={-1} aria-label={`${nameOf("day", key)}: ${counted(n, "message")}`}>{rect}</Link> : rect
      })}
    </svg>}</div>
    <Behind of="the year"><table><thead><tr><th>week of</th>{["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map((d) => <th class="right">{d}</th>)}</tr></thead>
      <tbody>{Array.from({ length: weeks }, (_, w) => weeks - 1 - w).filter((w) => inView.slice(7 * w, 7 * w + 7).some((n) => n)).map((w) => <tr><th scope="row">{nameOf("day", cells[7 * w]).replace(/^\S+ /, "")}</th>
        {Array.from({ length: 7 }, (_, d) => { const n = inView[7 * w + d], key = cells[7 * w + d]; return <td class="right">{n ? <Link to={said(key, plusDays(key, 1))}>{n}</Link> : ""}</td> })}</tr>)}</tbody></table></Behind>
  </figure>
}

// ---- rows with a bar

export type Ranked = { key: string, name: ComponentChildren, to?: string, n: number, cells: ComponentChildren[] }

/** Rank is a table whose rows are links, with a bar in each. */
export function Rank({ title, what, heads, rows, most = 12 }: { title: string, what: string, heads: string[], rows: Ranked[], most?: number }) {
  const [all, showAll] = useState(false)
  if (!rows.length) return null
  const top = Math.max(...rows.map((r) => r.n), 1), shown = all ? rows : rows.slice(0, most)
  const classOf = (i: number) => i === heads.length - 1 && heads.length > 1 ? "right cost" : "right num"
  return <section><h2>{title}</h2><table class="rank"><thead><tr><th>{what}</th><th class="meter"><span class="hide">share</span></th>{heads.map((h, i) => <th class={classOf(i)}>{h}</th>)}</tr></thead>
    <tbody>{shown.map((r) => <tr key={r.key}><th scope="row" dir="auto" title={typeof r.name === "string" ? r.name : undefined}>{r.to ? <Link to={r.to}>{r.name}</Link> : r.name}</th>
      <td class="meter"><svg width="100%" height="10" aria-hidden="true">{r.n > 0 && <><rect class="part0" width={`${100 * r.n / top}%`} height="10" /><rect class="part0" width="1.5" height="10" /></>}</svg></td>
      {r.cells.map((c, i) => <td class={classOf(i)}>{c}</td>)}</tr>)}</tbody></table>
    {rows.length > most && <p class="tools"><button onClick={() => showAll(!all)} aria-expanded={all}>{all ? "fewer" : `all ${rows.length}`}</button></p>}</section>
}
