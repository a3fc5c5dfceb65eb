// A list of conversations of which only some are in memory: the pinned ones, or those that are
// grouped by project, and some pages of the others. Below one that was unfolded come those that came from it.
import { useMemo, useRef, useState } from "preact/hooks"
import { get, type Problem, type Session } from "./api"
import { complain, useAsked, usePages } from "./ui"

/** Asking is what a list answers. */
export type Asking = { filter: string, sort: string, byProject: boolean, withEmpty: boolean }

export type Shelved = { s: Session, depth: number, group: string, first: boolean }

const pageSize = 100, mostGrouped = 1000

type Listed = { sessions: Session[], total?: number, next?: string, unknown?: Unknown[] }
export type Unknown = { filter: string, value: string, did_you_mean?: string[], known?: string[] }

const days = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" }), months = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric" })

/** dayOf returns the day of a time; of those that are long ago the month says enough. */
export function dayOf(time: string, now = new Date()): string {
  const at = new Date(time), day = (d: Date, back = 0) => new Date(d.getFullYear(), d.getMonth(), d.getDate() - back).getTime()
  if (day(at) === day(now)) return "today"
  if (day(at) === day(now, 1)) return "yesterday"
  return at < now && at.getTime() > now.getTime() - 7 * 864e5 ? days.format(at) : months.format(at)
}

/** grouped puts the conversations of a project together, the project with the latest first. */
function grouped(all: Session[]): [Session, string][] {
  const groups = new Map<string, Session[]>()
  for (const s of all) {
    const group = s.pinned ? "pinned" : s.cwd ?? "no project"
    groups.set(group, [...groups.get(group) ?? [], s])
  }
  const pinned = groups.get("pinned") ?? []
  groups.delete("pinned")
  return [...pinned.map((s): [Session, string] => [s, "pinned"]), ...[...groups].flatMap(([group, of]) => of.map((s): [Session, string] => [s, group]))]
}

export function useShelf(q: Asking) {
  const on = [q.filter, q.sort, q.byProject, q.withEmpty]
  const common = { filter: q.filter, sort: q.sort, nonempty: !q.withEmpty }
  const list = (more: Record<string, string | number | boolean>, signal?: AbortSignal) => get<Listed>("/v1/sessions", { ...common, ...more }, signal)
  const [rootsOf, setRootsOf] = useState({ filter: q.filter, roots: true })
  const roots = rootsOf.filter !== q.filter || rootsOf.roots, setRoots = (roots: boolean) => setRootsOf({ filter: q.filter, roots })
  const fixed = useAsked(async (signal) => {
    if (q.byProject) {
      const r = await list({ roots: true, limit: mostGrouped }, signal)
      return { rows: grouped(r.sessions), cut: !!r.next, unknown: r.unknown }
    }
    const r = await list({ roots: true, pinned: "true", limit: pageSize }, signal)
    return { rows: r.sessions.map((s): [Session, string] => [s, "pinned"]), cut: false, unknown: r.unknown }
  }, on)
  const rest = { pinned: "false", roots, all: !roots }
  const pages = usePages<Session>(pageSize, async (from, _, signal) => {
    if (q.byProject) return { rows: [] }
    const r = await list({ ...rest, limit: pageSize, page: from / pageSize + 1 }, signal).catch((e: Problem) => {
      if (from && e.kind === "invalid") return { sessions: [] } // there are fewer pages now
      throw e
    })
    if (from === 0 && q.filter && roots && !r.sessions.length) setRoots(false) // if only subagents pass the filters, they are listed
    return { rows: r.sessions }
  }, [...on, roots])
  // All of them have to be looked at to count them, so that is asked only if the list has changed.
  const first = useRef(""), whole = pages.total <= pageSize
  if (pages.at(0)) first.current = pages.kept().filter(([i]) => i < pageSize).map(([, s]) => s.id).sort().join()
  const size = useAsked(async (signal) => whole || q.byProject ? undefined : (await list({ ...rest, limit: 1, total: true }, signal)).total, [...on, roots, first.current, whole])
  const total = whole ? pages.total : Math.max(size.value ?? 0, pages.total)
  const [open, setOpen] = useState(new Map<string, Session[]>())
  const rows = fixed.value?.rows ?? []

  /** spots are where rows come in that belong to the one before. */
  const spots = useMemo(() => {
    const out: { at: number, rows: Shelved[] }[] = []
    if (!open.size) return out
    const below = (id: string, depth: number, above: string[]): Shelved[] => above.includes(id) ? [] :
      (open.get(id) ?? []).flatMap((s) => [{ s, depth, group: "", first: false }, ...below(s.id, depth + 1, [...above, id])])
    const look = (at: number, s: Session) => { if (open.has(s.id)) out.push({ at, rows: below(s.id, 1, []) }) }
    rows.forEach(([s], i) => look(i, s))
    pages.kept().forEach(([i, s]) => look(rows.length + i, s))
    return out.sort((a, b) => a.at - b.at)
  }, [open, rows, pages.n])

  const count = rows.length + total + spots.reduce((n, s) => n + s.rows.length, 0)
  const byDay = !q.byProject && (q.sort === "updated" || q.sort === "created")
  const plain = (i: number): [Session, string] | undefined => {
    if (i < rows.length) return rows[i]
    const s = pages.at(i - rows.length)
    return s && [s, byDay ? dayOf(q.sort === "created" ? s.created : s.updated) : rows.length ? "all others" : ""]
  }
  const at = (i: number): Shelved | undefined => {
    for (const spot of spots) {
      if (i <= spot.at) break
      i -= spot.rows.length
      if (i <= spot.at) return spot.rows[i + spot.rows.length - spot.at - 1]
    }
    const row = plain(i)
    return row && { s: row[0], depth: 0, group: row[1], first: i === 0 || plain(i - 1)?.[1] !== row[1] }
  }
  return {
    count, at, total: rows.length + total, cut: fixed.value?.cut ?? false, ready: !!fixed.value && pages.ready, error: pages.error ?? fixed.error,
    unknown: fixed.value?.unknown, n: pages.n,
    isOpen: (id: string) => open.has(id),
    need: (from: number, to: number) => { // what is unfolded only moves rows down
      const unfolded = spots.reduce((n, s) => n + s.rows.length, 0)
      pages.need(Math.max(0, from - rows.length - unfolded), Math.min(total, to - rows.length))
    },
    /** fold shows or hides what came from a conversation. */
    fold: (s: Session) => {
      if (open.has(s.id)) { setOpen(new Map([...open].filter(([id]) => id !== s.id))); return }
      if (!s.forks && !s.subagents) return
      get<Listed>("/v1/sessions", { parent: s.id, limit: mostGrouped }).then((r) => setOpen(new Map(open).set(s.id, r.sessions)), complain)
    },
    renew: async () => { fixed.again(); await pages.renew() },
  }
}
