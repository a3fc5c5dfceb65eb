// The tree of a conversation: as a list, and as a drawing of its branches.
import { hierarchy, type HierarchyPointNode, tree as layout } from "d3-hierarchy"
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { get, type MapRow, type MapRows, path, post, put } from "./api"
import { complain, copy, counted, Failed, FixedList, go, linkTo, moves, say, useAsked, useKeys, useMay, usePages } from "./ui"
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
    f: () => row && void fork(id, row.entry), y: () => row && void copy(linkTo(path`/s/${id}/e/${row.entry}`), "a link to this entry"),
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

// ---- the drawing, of which only what is in view is in the document

/** Stretch is a run of entries without branches. */
type Stretch = { first: MapRow, rows: MapRow[], entries: number, live: boolean, children: Stretch[] }

/** stretches finds the runs in the rows of a map. */
function stretches(rows: MapRow[]): Stretch[] {
  const roots: Stretch[] = [], of = new Map<string, Stretch>(), after = new Map<string, number>()
  for (const r of rows) if (r.parent) after.set(r.parent, (after.get(r.parent) ?? 0) + 1)
  let last: Stretch | undefined
  for (const r of rows) {
    const parent = r.parent ? of.get(r.parent) ?? last : undefined // what is folded is followed by the next row
    let at = parent
    if (!at || (after.get(r.parent!) ?? 0) > 1) {
      at = { first: r, rows: [], entries: 0, live: !!r.live, children: [] }
      ;(parent ? parent.children : roots).push(at)
    }
    at.rows.push(r)
    at.entries += r.folded || 1
    of.set(r.entry, last = at)
  }
  return roots
}

const bareRows = 10_000

async function wholeMap(id: string, signal: AbortSignal): Promise<MapRow[]> {
  const ask = (from: number) => get<MapRows>(path`/v1/sessions/${id}/map`, { from: from || undefined, count: bareRows, fold: 1, bare: true }, signal)
  const { rows, total } = await ask(0)
  while (rows.length < total) {
    const next = await ask(rows.length)
    if (!next.rows.length) break
    for (const row of next.rows) rows.push(row)
  }
  return rows
}

type Node = HierarchyPointNode<Stretch>
const boxWidth = 200, boxHeight = 46, mostBoxes = 100

function Drawing({ id, kinds }: { id: string, kinds: ComponentChildren }) {
  const map = useAsked((signal) => wholeMap(id, signal), [id])
  useLive(id, true, async () => map.again())
  const texts = usePages<MapRow>(50, (from, count, signal) => get<MapRows>(path`/v1/sessions/${id}/map`, { from: from || undefined, count, fold: 1 }, signal), [id, map.value])
  const svg = useRef<SVGSVGElement>(null)
  const [view, setView] = useState({ x: 0, y: 0, k: 1, w: 800, h: 600 })
  const [cur, move] = useState(0)
  const nodes = useMemo((): Node[] => {
    if (!map.value?.length) return []
    const root = hierarchy<Stretch>({ first: map.value[0], rows: [], entries: 0, live: true, children: stretches(map.value) }, (s) => s.children)
    return layout<Stretch>().nodeSize([58, 250])(root).descendants().filter((n) => n.depth > 0).sort((a, b) => a.data.first.index - b.data.first.index)
  }, [map.value])
  const at = useMemo(() => new Map(nodes.map((n, i) => [n, i])), [nodes])
  const edges = useMemo(() => {
    const e = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity }
    for (const n of nodes) { e.left = Math.min(e.left, n.y); e.right = Math.max(e.right, n.y + boxWidth); e.top = Math.min(e.top, n.x); e.bottom = Math.max(e.bottom, n.x) }
    return e
  }, [nodes])
  const fit = () => {
    const b = svg.current?.getBoundingClientRect()
    if (!b || !nodes.length) return
    const w = edges.right - edges.left + 60, h = edges.bottom - edges.top + 80
    const k = Math.max(0.05, Math.min(1.2, b.width / w, b.height / h))
    const leaf = nodes.find((n) => n.data.rows.some((r) => r.leaf)) ?? nodes[0] // what does not fit is around it
    setView({ k, w: b.width, h: b.height, x: w * k <= b.width ? 16 - edges.left * k : b.width / 2 - leaf.y * k, y: h * k <= b.height ? (b.height - h * k) / 2 - edges.top * k + 40 * k : b.height / 2 - leaf.x * k })
  }
  useLayoutEffect(fit, [nodes.length > 0])
  const see = (n?: Node) => { // the current one is in view
    if (n) setView((v) => {
      const x = n.y * v.k + v.x, y = n.x * v.k + v.y
      return x >= 0 && x + boxWidth * v.k <= v.w && y >= 30 * v.k && y + 30 * v.k <= v.h ? v : { ...v, x: v.w / 2 - (n.y + boxWidth / 2) * v.k, y: v.h / 2 - n.x * v.k }
    })
  }
  const zoom = (f: number, x?: number, y?: number) => {
    const b = svg.current!.getBoundingClientRect()
    const px = x === undefined ? b.width / 2 : x - b.left, py = y === undefined ? b.height / 2 : y - b.top
    setView((v) => { const k = Math.max(0.03, Math.min(3, v.k * f)), g = k / v.k; return { k, x: px - (px - v.x) * g, y: py - (py - v.y) * g, w: b.width, h: b.height } })
  }
  useEffect(() => { // the browser must not scroll the page instead
    const s = svg.current
    const wheel = (e: WheelEvent) => { e.preventDefault(); zoom(Math.exp(-e.deltaY / 400), e.clientX, e.clientY) }
    s?.addEventListener("wheel", wheel, { passive: false })
    return () => s?.removeEventListener("wheel", wheel)
  }, [])
  const drag = (e: PointerEvent) => { if (e.buttons & 1) setView((v) => ({ ...v, x: v.x + e.movementX, y: v.y + e.movementY })) }
  const open = (n = nodes[cur]) => { if (n) go(path`/s/${id}/e/${n.data.first.entry}`) }
  const to = (i: number) => { move(i); see(nodes[i]) }
  useKeys({ ...moves(cur, nodes.length, to), Enter: () => open(), "+": () => zoom(1.3), "-": () => zoom(1 / 1.3), "0": fit })

  const left = (-view.x - 40) / view.k, right = (view.w - view.x + 40) / view.k, top = (-view.y - 40) / view.k, bottom = (view.h - view.y + 40) / view.k
  const seen = nodes.filter((n) => n.x > top && n.x < bottom && n.y + boxWidth > left && n.y < right)
  const small = seen.length > mostBoxes // too many to be read: one path draws them all
  const lines = (live: boolean) => seen.filter((n) => n.data.live === live && n.depth > 1).map((n) => `M${n.parent!.y + boxWidth},${n.parent!.x} C${n.parent!.y + 228},${n.parent!.x} ${n.y - 28},${n.x} ${n.y},${n.x}`).join("")
  useEffect(() => { if (!small) for (const n of seen) texts.need(n.data.first.index, n.data.first.index + Math.min(n.data.rows.length, 5)) })
  return <>
    <p class="tools">{kinds}<button onClick={() => zoom(1.3)} aria-label="Larger" title="+">+</button><button onClick={() => zoom(1 / 1.3)} aria-label="Smaller" title="-">−</button><button onClick={fit} title="0">All of it</button>
      <span class="soft">{counted(nodes.length, "stretch", "stretches")}</span></p>
    <Failed error={map.error} />
    <svg ref={svg} class="drawing" onPointerMove={drag} role="group" aria-label="Branches">
      <g transform={`translate(${view.x} ${view.y}) scale(${view.k})`}>
        <path d={lines(false)} /><path class="live" d={lines(true)} />
        {small ? [false, true].map((live) => <path class={live ? "boxes live" : "boxes"} d={seen.filter((n) => n.data.live === live).map((n) => `M${n.y},${n.x - 23}h200v46h-200z`).join("")} />) : seen.map((n) => {
          const i = at.get(n)!, rows = n.data.rows.slice(0, 5).map((r) => texts.at(r.index) ?? r)
          const said = rows.find((r) => r.role === "user" && r.gist) ?? rows.find((r) => r.gist) ?? n.data.first
          const label = n.data.rows.find((r) => r.label)?.label
          return <g key={n.data.first.entry} transform={`translate(${n.y} ${n.x})`} class={`stretch${n.data.live ? " live" : ""}${i === cur ? " here" : ""}`} role="link" tabIndex={0}
            onFocus={() => move(i)} onClick={() => open(n)} onKeyDown={(e) => { if (e.key === "Enter") { e.stopPropagation(); open(n) } }}>
            <rect y="-23" width={boxWidth} height={boxHeight} rx="7" />
            <text x="10" y="-5">{cut(label ? "★ " + label : said.gist || said.kind || "", 25)}</text><text x="10" y="13" class="small">{counted(n.data.entries, "entry", "entries")}{n.data.rows.some((r) => r.leaf) ? " · the leaf" : ""}</text>
            <title>{said.gist}</title>
          </g>
        })}
      </g>
    </svg>
  </>
}

const cut = (s: string, n: number) => { const c = [...s]; return c.length > n ? c.slice(0, n - 1).join("") + "…" : s }
