// The tree of a conversation: as a list, and as a drawing of its branches.
import { hierarchy, tree as layout } from "d3-hierarchy"
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { get, type MapRow, type MapRows, path, post, put } from "./api"
import { complain, copy, counted, Failed, FixedList, go, moves, say, useAsked, useKeys, useMay, usePages } from "./ui"
import { done, fork } from "./actions"
import { ask } from "./dialogs"
import { useLive } from "./live"

const pageSize = 200

export function Tree({ id, at }: { id: string, at: string }) {
  const [drawn, draw] = useState(false)
  const kinds = <span class="choice"><button aria-pressed={!drawn} onClick={() => draw(false)}>List</button><button aria-pressed={drawn} onClick={() => draw(true)}>Drawing</button></span>
  return <div class="tree">
    {drawn ? <Drawing id={id} kinds={kinds} /> : <Listed id={id} at={at} kinds={kinds} />}
  </div>
}

function Listed({ id, at, kinds }: { id: string, at: string, kinds: ComponentChildren }) {
  const [fold, setFold] = useState(-1)
  const [cur, move] = useState(0)
  const [mark, setMark] = useState<MapRow>()
  const may = useMay("write")
  const pages = usePages<MapRow>(pageSize, async (from, count, signal) => get<MapRows>(path`/v1/sessions/${id}/map`, { from: from || undefined, count, fold }, signal), [id, fold])
  useLive(id, true, pages.renew)
  useEffect(() => { // begin at an entry, or at the leaf
    const stop = new AbortController()
    get<MapRows>(path`/v1/sessions/${id}/map`, { at: at || "leaf", count: 1, fold }, stop.signal).then((r) => move(r.from), () => {})
    return () => stop.abort()
  }, [id, at, fold])
  const row = pages.at(cur)
  const open = () => { if (row) go(path`/s/${id}/e/${row.entry}`) }
  const toMark = () => { if (row) setMark(mark?.entry === row.entry ? undefined : row) }
  const compare = () => {
    if (!row) return
    if (!mark) { setMark(row); say("this entry is marked; choose the one to compare it with, and press = again"); return }
    go(path`/s/${id}/compare/${mark.entry}/${row.entry}`)
  }
  const branch = () => {
    if (!row || !may) return
    const to = (entry: string) => post<{ left: string }>(path`/v1/sessions/${id}/branch`, { entry })
    to(row.entry).then(({ left }) => done("the conversation continues from here", () => to(left)), complain)
  }
  const label = async () => {
    if (!row || !may) return
    const was = row.label ?? "", as = (label: string) => put(path`/v1/sessions/${id}/entries/${row.entry}/label`, { label })
    const text = await ask("Label", was, "Empty removes it.")
    if (text !== undefined && text !== was) as(text).then(() => done(text ? `labelled ${text}` : `removed the label ${was}`, () => as(was)), complain)
  }
  useKeys({
    ...moves(cur, pages.total, move), Enter: open, " ": toMark, z: () => setFold(fold === 0 ? -1 : 0), "=": compare, b: branch, l: () => void label(),
    f: () => row && void fork(id, row.entry), y: () => row && void copy(location.origin + path`/s/${id}/e/${row.entry}`, "a link to this entry"),
  })
  return <>
    <p class="tools">{kinds}<button onClick={() => setFold(fold === 0 ? -1 : 0)} aria-pressed={fold === 0} title="z">Unfold</button>
      <button onClick={open} title="Enter">Open</button>{may && <><button onClick={branch} title="b">Continue from here</button><button onClick={() => void label()} title="l">Label</button><button onClick={() => row && void fork(id, row.entry)} title="f">Fork</button></>}
      <button onClick={compare} title="=">Compare{mark ? " with the mark" : ""}</button><span class="soft">{counted(pages.total, "row")}</span></p>
    <Failed error={pages.error} />
    <FixedList label="tree" count={pages.total} height={28} cur={cur} at={pages.at} need={pages.need} onCur={move}
      row={(r) => r ? <div class={`node${r.live ? " live" : ""}${r.leaf ? " leaf" : ""}${r.entry === mark?.entry ? " marked" : ""}`} onDblClick={open}>
        <span class="lanes" aria-hidden="true">{r.lanes}</span>
        {r.folded ? <i class="soft">… {counted(r.folded, "entry", "entries")}</i> : <><b class={r.role === "user" ? "asks" : ""}>{r.kind}</b>{r.label && <mark dir="auto">{r.label}</mark>}<span dir="auto">{r.gist}</span>{r.subagents?.length ? <small>↳ {counted(r.subagents.length, "subagent")}</small> : null}</>}
      </div> : <span class="wait" />} />
  </>
}

// ---- the drawing

/** Stretch is a run of entries without branches. */
type Stretch = { first: MapRow, rows: MapRow[], entries: number, live: boolean, children: Stretch[] }

const mostRows = 5000

/** stretches finds the runs in the rows of a map: what branches off is indented by two. */
export function stretches(rows: MapRow[]): Stretch[] {
  const roots: Stretch[] = [], open: (Stretch | undefined)[] = []
  for (const r of rows) {
    const depth = r.lanes.length / 2, begins = r.lanes.endsWith("─")
    let at = begins ? undefined : open[depth]
    if (at && at.children.length) { // the trunk goes on after its branches
      const onward: Stretch = { first: r, rows: [], entries: 0, live: !!r.live, children: [] }
      at.children.push(onward)
      at = open[depth] = onward
    }
    if (!at) {
      at = { first: r, rows: [], entries: 0, live: !!r.live, children: [] }
      const parent = begins && depth > 0 ? open[depth - 1] : undefined
      ;(parent ? parent.children : roots).push(at)
      open[depth] = at
    }
    open.length = depth + 1
    at.rows.push(r)
    at.entries += r.folded || 1
  }
  return roots
}

async function wholeMap(id: string, signal: AbortSignal): Promise<MapRows> {
  const ask = (from: number) => get<MapRows>(path`/v1/sessions/${id}/map`, { from: from || undefined, count: 1000, fold: 1 }, signal)
  const all = await ask(0)
  while (all.rows.length < Math.min(all.total, mostRows)) {
    const next = await ask(all.rows.length)
    if (!next.rows.length) break
    all.rows.push(...next.rows)
  }
  return all
}

function Drawing({ id, kinds }: { id: string, kinds: ComponentChildren }) {
  const map = useAsked((signal) => wholeMap(id, signal), [id])
  const svg = useRef<SVGSVGElement>(null)
  const [view, setView] = useState({ x: 0, y: 0, k: 1 })
  const [cur, move] = useState(0)
  const nodes = useMemo(() => {
    if (!map.value) return []
    const roots = stretches(map.value.rows)
    const root = hierarchy<Stretch>({ first: map.value.rows[0], rows: [], entries: 0, live: true, children: roots } as Stretch, (s) => s.children)
    return layout<Stretch>().nodeSize([58, 250])(root).descendants().filter((n) => n.depth > 0)
  }, [map.value])
  const fit = () => {
    const b = svg.current?.getBoundingClientRect()
    if (!b || !nodes.length) return
    const xs = nodes.map((n) => n.y), ys = nodes.map((n) => n.x)
    const w = Math.max(...xs) - Math.min(...xs) + 260, h = Math.max(...ys) - Math.min(...ys) + 80
    const k = Math.max(0.05, Math.min(1.2, b.width / w, b.height / h))
    setView({ k, x: -Math.min(...xs) * k + 16, y: (b.height - h * k) / 2 - Math.min(...ys) * k + 30 * k })
  }
  useLayoutEffect(fit, [nodes])
  const zoom = (f: number, x?: number, y?: number) => {
    const b = svg.current!.getBoundingClientRect()
    const px = x === undefined ? b.width / 2 : x - b.left, py = y === undefined ? b.height / 2 : y - b.top
    setView((v) => { const k = Math.max(0.03, Math.min(3, v.k * f)), g = k / v.k; return { k, x: px - (px - v.x) * g, y: py - (py - v.y) * g } })
  }
  useEffect(() => { // the browser must not scroll the page instead
    const s = svg.current
    const wheel = (e: WheelEvent) => { e.preventDefault(); zoom(Math.exp(-e.deltaY / 400), e.clientX, e.clientY) }
    s?.addEventListener("wheel", wheel, { passive: false })
    return () => s?.removeEventListener("wheel", wheel)
  }, [])
  const drag = (e: PointerEvent) => {
    if (e.buttons & 1) setView((v) => ({ ...v, x: v.x + e.movementX, y: v.y + e.movementY }))
  }
  const open = (n = nodes[cur]) => { if (n) go(path`/s/${id}/e/${n.data.first.entry}`) }
  useKeys({ ...moves(cur, nodes.length, move), Enter: () => open(), "+": () => zoom(1.3), "-": () => zoom(1 / 1.3), "0": fit })
  const total = map.value?.total ?? 0
  return <>
    <p class="tools">{kinds}<button onClick={() => zoom(1.3)} aria-label="Larger" title="+">+</button><button onClick={() => zoom(1 / 1.3)} aria-label="Smaller" title="-">−</button><button onClick={fit} title="0">All of it</button>
      <span class="soft">{counted(nodes.length, "stretch", "stretches")}{total > mostRows ? `; the drawing has the first ${mostRows} of ${total} rows, the list has all` : ""}</span></p>
    <Failed error={map.error} />
    <svg ref={svg} class="drawing" onPointerMove={drag} role="group" aria-label="Branches">
      <g transform={`translate(${view.x} ${view.y}) scale(${view.k})`}>
        {nodes.filter((n) => n.parent && n.parent.depth > 0).map((n) => <path class={n.data.live ? "live" : ""} d={`M${n.parent!.y + 200},${n.parent!.x} C${n.parent!.y + 228},${n.parent!.x} ${n.y - 28},${n.x} ${n.y},${n.x}`} />)}
        {nodes.map((n, i) => {
          const said = n.data.rows.find((r) => r.role === "user" && r.gist) ?? n.data.rows.find((r) => r.gist) ?? n.data.first
          const label = n.data.rows.find((r) => r.label)?.label
          return <g transform={`translate(${n.y} ${n.x})`} class={`stretch${n.data.live ? " live" : ""}${i === cur ? " here" : ""}`} role="link" tabIndex={0}
            onFocus={() => move(i)} onClick={() => open(n)} onKeyDown={(e) => { if (e.key === "Enter") { e.stopPropagation(); open(n) } }}>
            <rect y="-23" width="200" height="46" rx="7" />
            <text x="10" y="-5">{cut(label ? "★ " + label : said.gist ?? "", 25)}</text><text x="10" y="13" class="small">{counted(n.data.entries, "entry", "entries")}{n.data.rows.some((r) => r.leaf) ? " · the leaf" : ""}</text>
            <title>{said.gist}</title>
          </g>
        })}
      </g>
    </svg>
  </>
}

const cut = (s: string, n: number) => { const c = [...s]; return c.length > n ? c.slice(0, n - 1).join("") + "…" : s }
